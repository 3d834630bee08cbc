#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests of report.py, without fio, device or root: python3 -m unittest"""

import contextlib
import io
import json
import os
import tempfile
import unittest

import report
import workload
from report import Run

# 100 ticks busy of 200
STAT = ("cpu  100 0 100 800 0 0 0 0 0 0\nctxt 5000\n"
        "cpu  150 0 140 900 0 5 5 0 0 0\nctxt 8000\n")


def fio(run, iops=1000.0, mean=20000.0):
    """What fio writes, cut down to what is read"""
    work = workload.parse(run.job)
    side = {"total_ios": int(run.ios) or 1500, "iops": iops,
            "lat_ns": {"mean": mean},
            "clat_ns": {"percentile": {"50.000000": 10000,
                                       "99.000000": 30000,
                                       "99.900000": 50000}}}
    none = {"total_ios": 0, "iops": 0, "lat_ns": {"mean": 0}, "clat_ns": {}}
    sides = workload.sides(work.rw)
    return {"fio version": "fio-3.33", "jobs": [{
        "jobname": work.file, "error": 0,
        "job options": {"ioengine": run.engine, "iodepth": run.depth,
                        "rw": work.rw, "bs": workload.size_text(work.block_size)},
        **{name: side if name in sides else none for name in ("read", "write")}}]}


def run_of(round_=1, job="4k-randread", engine="psync", depth=1, variant="raw",
           unit=0, ios=0):
    return Run(*map(str, (round_, job, engine, depth, variant, unit, ios)))


class Report(unittest.TestCase):
    def setUp(self):
        tmp = tempfile.TemporaryDirectory()
        self.addCleanup(tmp.cleanup)
        self.out = tmp.name

    def write(self, run, result=None, text=None):
        name = os.path.join(self.out, report.file_of(run))
        text = json.dumps(result or fio(run)) if text is None else text
        for ext, content in ("json", text), ("stat", STAT):
            with open(f"{name}.{ext}", "w", encoding="utf-8") as f:
                f.write(content)

    def plan(self, runs):
        path = os.path.join(self.out, "plan")
        with open(path, "w", encoding="ascii") as f:
            f.writelines(" ".join(run) + "\n" for run in runs)
        return path

    def bad(self, run, *words):
        """Reading this run fails, and the message names it."""
        with self.assertRaises(report.Bad) as caught:
            report.read_run(self.out, run)
        for word in (report.file_of(run), *words):
            self.assertIn(word, str(caught.exception))

    # one run

    def test_figures(self):
        run = run_of()
        self.write(run)
        self.assertEqual(report.read_run(self.out, run),
                         (1000, 20, 10, 30, 50, 0.5, 2))

    def test_notes_of_exec_prerun_are_skipped(self):
        run = run_of()
        self.write(run, text="x : Saving output of prerun in x.prerun.txt\n"
                             "x : Saving output of postrun in y\n"
                   + json.dumps(fio(run), indent=1))
        self.assertEqual(report.read_run(self.out, run).iops, 1000)

    def test_other_words_before_the_json(self):
        run = run_of()
        self.write(run, text="note: depth will be capped at 1\n"
                   + json.dumps(fio(run)))
        self.bad(run)

    def test_writes_are_read_from_the_write_side(self):
        run = run_of(job="128k-write")
        self.write(run)
        self.assertEqual(report.read_run(self.out, run).iops, 1000)

    def test_missing(self):
        self.bad(run_of(), "No such file")

    def test_cut_off(self):
        run = run_of()
        whole = json.dumps(fio(run), indent=1)
        for text in "", whole[:len(whole) // 2], whole[:-1], "[]", "{}":
            self.write(run, text=text)
            self.bad(run)

    def test_missing_parts(self):
        run = run_of()
        for part in "error", "job options", "read", "jobname":
            result = fio(run)
            del result["jobs"][0][part]
            self.write(run, result)
            self.bad(run, part)
        result = fio(run)
        del result["jobs"][0]["read"]["clat_ns"]["percentile"]["99.000000"]
        self.write(run, result)
        self.bad(run, "99.000000")

    def test_no_job_and_two_jobs(self):
        run = run_of()
        for count in 0, 2:
            result = fio(run)
            result["jobs"] *= count
            self.write(run, result)
            self.bad(run)

    def test_fio_error(self):
        run = run_of()
        result = fio(run)
        result["jobs"][0]["error"] = 5
        self.write(run, result)
        self.bad(run, "error 5")

    def test_nothing_done(self):
        run = run_of()
        result = fio(run)
        result["jobs"][0]["read"]["total_ios"] = 0
        self.write(run, result)
        self.bad(run, "no I/O")

    def test_number_of_ios(self):
        run = run_of(ios=4000)
        self.write(run)
        self.assertEqual(report.read_run(self.out, run).mean, 20)
        result = fio(run)
        result["jobs"][0]["read"]["total_ios"] = 3999
        self.write(run, result)
        self.bad(run, "3999")

    def test_another_job_than_planned(self):
        run = run_of()
        for option, value in (("bs", "8k"), ("rw", "read"), ("iodepth", "32"),
                              ("ioengine", "libaio")):
            result = fio(run)
            result["jobs"][0]["job options"][option] = value
            self.write(run, result)
            self.bad(run, "other options")

    def test_cpu_of_garbage(self):
        for line in "", "intr 1 2 3 4 5 6 7 8 9", "cpu 1 2 3 4":
            with self.assertRaises(ValueError):
                report.cpu_times(line)
        run = run_of()
        for stat in ("", STAT.splitlines()[0], STAT + STAT,
                     STAT.replace("ctxt", "intr"), STAT.replace("ctxt 8000", "ctxt")):
            self.write(run)
            with open(os.path.join(self.out, report.file_of(run) + ".stat"),
                      "w", encoding="ascii") as f:
                f.write(stat)
            self.bad(run)
        # iowait is idle, irq and steal are not, guest time is not added again
        self.assertEqual(report.cpu_times("cpu 1 2 4 8 16 32 64 128 256 512"),
                         (231, 255))

    # jobs of other kinds

    def test_names_of_jobs(self):
        for name, parts in (("4k-randread", ("4k-randread", 4096, "randread", 1)),
                            ("stream:1m-write", ("stream", 1048576, "write", 1)),
                            ("scaling:4k-randread-x4", ("scaling", 4096, "randread", 4))):
            self.assertEqual(workload.parse(name), parts)
        for name in "", "read", "4-read", "4k-read-x", "a:b:4k-read", "4g-read":
            with self.assertRaises(ValueError):
                workload.parse(name)

    def test_both_sides(self):
        run = run_of(job="mixed:4k-randrw")
        self.write(run)
        figures = report.read_run(self.out, run)
        self.assertEqual((figures.iops, figures.mean, figures.switches), (2000, 20, 1))

    def test_other_sections_are_not_counted(self):
        run = run_of(job="beside-writers:4k-randread")
        result = fio(run)
        result["jobs"].append({"jobname": "writers", "error": 0})
        self.write(run, result)
        self.assertEqual(report.read_run(self.out, run).iops, 1000)
        result["jobs"][1]["error"] = 28
        self.write(run, result)
        self.bad(run, "error 28")

    def test_submitters(self):
        run = run_of(job="scaling:4k-randread-x4")
        result = fio(run)
        self.write(run, result)
        self.bad(run, "other options")
        result["jobs"][0]["job options"]["numjobs"] = "4"
        self.write(run, result)
        self.assertEqual(report.read_run(self.out, run).iops, 1000)

    def test_program(self):
        run = run_of(job="folder-copy:1m-copy", engine="program")
        self.write(run, {"done": {"bytes": 50 * 1048576, "seconds": 2.5}})
        figures = report.read_run(self.out, run)
        self.assertEqual((figures.iops, figures.p99, figures.switches), (20, None, 60))
        row, = report.make_rows("fio", "disk", [run], self.out, 2)
        self.assertIsNone(row["latency_p99_us"])
        for wrong in ({}, {"done": {"bytes": 0, "seconds": 1}},
                      {"done": {"bytes": 1, "seconds": 0}}, {"done": {"bytes": 1}}):
            self.write(run, wrong)
            self.bad(run)

    def test_noise_is_named(self):
        rows = self.rows(("psync", "raw", 0, 100), ("psync", "coffer", 4096, 100))
        self.assertEqual(list(report.noisy(rows)), [])
        rows[1] |= {"min": 60, "max": 120}
        note, = report.noisy(rows)
        self.assertIn("1 of 2", note)
        self.assertIn("depth 1 coffer", note)

    # the plan

    def test_plan(self):
        runs = [run_of(1), run_of(2)]
        self.assertEqual(report.read_plan(self.plan(runs)), runs)
        for wrong in [], [runs[0], runs[0]], [run_of(variant="luks")]:
            with self.assertRaises(report.Bad):
                report.read_plan(self.plan(wrong))

    def test_one_run_of_many_missing(self):
        runs = [run_of(r, variant=v) for r in (1, 2) for v in ("raw", "linear")]
        for run in runs[:-1]:
            self.write(run)
        with self.assertRaisesRegex(report.Bad, report.file_of(runs[-1])):
            report.make_rows("fio", "ssd", runs, self.out, 2)

    def test_uneven_rounds(self):
        runs = [run_of(1), run_of(2), run_of(1, variant="linear")]
        for run in runs:
            self.write(run)
        with self.assertRaisesRegex(report.Bad, "rounds"):
            report.make_rows("fio", "ssd", runs, self.out, 2)

    # rows and tables

    def test_rows_of_fio(self):
        runs = [run_of(r, variant="coffer", unit=512) for r in (1, 2, 3)]
        for run, iops in zip(runs, (900.0, 5000.0, 1000.0)):
            self.write(run, fio(run, iops))
        self.assertEqual(report.make_rows("fio", "ssd", runs, self.out, 2), [{
            "ruler": "fio", "part": "ssd", "job": "4k-randread",
            "workload": "randread", "block_size": 4096,
            "data_unit": 512, "queue_depth": 1, "engine": "psync",
            "submitters": 1, "variant": "coffer", "value": 1000.0, "unit": "iops",
            "min": 900.0, "max": 5000.0, "rounds": 3, "latency_p50_us": 10.0,
            "latency_p99_us": 30.0, "latency_p999_us": 50.0,
            "cpu_percent": 50.0, "cpu_s_per_gb": 244.141,
            "switches_per_io": 2.0}])

    def test_rows_of_insn(self):
        run = run_of(ios=4000)
        self.write(run, fio(run, mean=7012.34))
        row, = report.make_rows("insn", "brd", [run], self.out, 1)
        self.assertEqual((row["value"], row["unit"]), (7012.3, "insn/io"))

    def rows(self, *values):
        """(engine, variant, unit, value)..."""
        return [{"ruler": "insn", "part": "brd", "job": "4k-randread",
                 "workload": "randread", "block_size": 4096,
                 "data_unit": u, "queue_depth": 1, "engine": e, "variant": v,
                 "value": x, "unit": "insn/io", "min": x, "max": x, "rounds": 1}
                for e, v, u, x in values]

    def test_groups(self):
        groups = report.group(self.rows(
            ("psync", "raw", 0, 1), ("psync", "coffer", 4096, 2),
            ("psync", "coffer", 512, 3), ("io_uring", "raw", 0, 4),
            ("io_uring", "coffer", 4096, 5)))
        self.assertEqual(
            [(key[2], key[4], {v: r["value"] for v, r in g.items()})
             for key, g in groups.items()],
            [("psync", 4096, {"raw": 1, "coffer": 2}),
             ("psync", 512, {"raw": 1, "coffer": 3}),
             ("io_uring", 4096, {"raw": 4, "coffer": 5})])
        self.assertEqual(
            list(report.group(self.rows(("psync", "raw", 0, 1)))),
            [("brd", "4k-randread", "psync", 1, 0)])

    def test_table_of_insn(self):
        text, note = report.insn_tables(self.rows(
            ("psync", "raw", 0, 7000), ("psync", "dm-crypt-tuned", 512, 20000),
            ("psync", "coffer", 512, 15000),
            ("io_uring", "coffer", 4096, 9000)), {})
        self.assertIn("libaio", note)
        lines = [line.split() for line in text.splitlines()]
        self.assertEqual(lines[1], [
            "on", "job", "engine", "depth", "unit", "raw", "tuned", "coffer",
            "coffer/tuned", "goal", "coffer/dm-crypt", "goal"])
        self.assertEqual(lines[2], [
            "brd", "4k-randread", "psync", "1", "512", "7.00", "20.00", "15.00",
            "0.75", "0.82", "-", "0.60"])
        self.assertEqual(lines[3], [
            "brd", "4k-randread", "io_uring", "1", "4096", "-", "-", "9.00",
            "-", "-", "-", "-"])

    def test_throughput_cell(self):
        row = {"value": 1500.0, "min": 1350.0, "max": 1650.0, "block_size": 4096}
        self.assertEqual(report.throughput(row), "1.5k ±10%")
        row["block_size"] = 131072
        self.assertEqual(report.throughput(row), "197 ±10%")

    def test_environment(self):
        path = os.path.join(self.out, "environment")
        with open(path, "w", encoding="utf-8") as f:
            f.write("kernel=6.12\ncipher coffer 512=xts-x\nodd=a=b\n")
        self.assertEqual(report.read_environment(path), {
            "cipher_drivers": {"coffer 512": "xts-x"}, "kernel": "6.12",
            "odd": "a=b"})
        with open(path, "a", encoding="utf-8") as f:
            f.write("cipher dm-crypt 512=\n")
        with self.assertRaisesRegex(report.Bad, "cipher dm-crypt 512"):
            report.read_environment(path)

    def test_all_of_it(self):
        runs = [run_of(1, variant="raw"), run_of(1, variant="coffer", unit=512)]
        for run in runs:
            self.write(run)
        with open(os.path.join(self.out, "environment"), "w",
                  encoding="utf-8") as f:
            f.write("kernel=6.12\ncpus=2\ncipher coffer 512=xts-x\n")
        path = os.path.join(self.out, "fio.json")
        self.plan(runs)
        args = ["report.py", "fio", path, self.out, "--"]
        with contextlib.redirect_stdout(io.StringIO()) as shown:
            report.main([*args, "accel=tcg"])
        self.assertIn("emulated CPU", shown.getvalue())
        with open(path, encoding="utf-8") as f:
            result = json.load(f)
        self.assertEqual(result["environment"]["accel"], "tcg")
        self.assertEqual([r["variant"] for r in result["rows"]],
                         ["raw", "coffer"])
        # a bad run leaves the last good result alone
        self.write(runs[1], text="{")
        with self.assertRaises(report.Bad):
            report.main(args)
        self.assertTrue(os.path.exists(path))


if __name__ == "__main__":
    unittest.main()
