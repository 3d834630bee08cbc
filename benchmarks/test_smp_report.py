#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests of smp_report.py, without fio, device or root: python3 -m unittest"""

import contextlib
import io
import json
import os
import tempfile
import unittest

import smp_report
from smp_report import Bad, Run


def run_of(round_=1, job="128k-read", engine="psync", depth=1, jobs=1,
           variant="coffer", unit=4096, counted=0):
    return Run(*map(str, (round_, job, engine, depth, jobs, variant, unit, counted)))


def fio_job(run, iops=1000.0, mean=20000.0, p99=30000):
    """What fio writes of a section, cut down to what is read"""
    size, workload = run.job.split("-")
    options = {"rw": workload, "bs": size, "numjobs": run.jobs}
    if workload == "mixed":
        workload = options["rw"] = "randread"
        del options["numjobs"]
    side = {"total_ios": 500, "iops": iops, "lat_ns": {"mean": mean},
            "clat_ns": {"percentile": {"99.000000": p99}}}
    none = {"total_ios": 0, "iops": 0, "lat_ns": {"mean": 0}, "clat_ns": {}}
    reads = "read" in workload
    return {"jobname": smp_report.section(run), "error": 0,
            "job options": options,
            "read": side if reads else none, "write": none if reads else side}


class Report(unittest.TestCase):
    def setUp(self):
        tmp = tempfile.TemporaryDirectory()
        self.addCleanup(tmp.cleanup)
        self.out = tmp.name

    def write(self, runs, jobs=None, text=None):
        """One fio's result for runs of one workload; returns what make_rows takes"""
        name = os.path.join(self.out, ".".join(runs[0][1:5]))
        if text is None:
            text = json.dumps({
                "global options": {"ioengine": runs[0].engine,
                                   "iodepth": runs[0].depth},
                "jobs": jobs or [fio_job(run) for run in runs]})
        with open(f"{name}.json", "w", encoding="utf-8") as f:
            f.write(text)
        with open(f"{name}.switches", "w", encoding="ascii") as f:
            for run in runs:
                if run.counted == "1":
                    # two submitters, each before and after
                    for value in (7100, 7000, 8000, 7900):
                        f.write(f"{smp_report.section(run)} {value}\n")
        return {runs[0][1:5]: runs}

    def bad(self, runs, *words):
        with self.assertRaises(Bad) as caught:
            smp_report.read_group(self.out, runs)
        for word in words:
            self.assertIn(word, str(caught.exception))

    # one fio

    def test_figures(self):
        runs = [run_of(counted=1), run_of(2)]
        self.write(runs)
        self.assertEqual(smp_report.read_group(self.out, runs),
                         [(1000, 20, 30, 2.0), (1000, 20, 30, None)])

    def test_writes_and_mixed(self):
        for job in "128k-write", "4k-randwrite", "4k-mixed":
            runs = [run_of(job=job)]
            self.write(runs)
            self.assertEqual(smp_report.read_group(self.out, runs),
                             [(1000, 20, 30, None)])

    def test_missing_and_cut_off(self):
        runs = [run_of()]
        self.bad(runs, "128k-read.psync.1.1", "No such file")
        self.write(runs)
        name = os.path.join(self.out, "128k-read.psync.1.1.json")
        with open(name, encoding="utf-8") as f:
            whole = f.read()
        for text in "", whole[:len(whole) // 2], whole[:-1], "[]", "{}":
            self.write(runs, text=text)
            self.bad(runs, "128k-read.psync.1.1")

    def test_a_section_is_missing_or_twice(self):
        runs = [run_of(), run_of(2)]
        self.write(runs, [fio_job(runs[0])])
        self.bad(runs, "2.coffer.4096")
        self.write(runs, [fio_job(run) for run in (*runs, runs[0])])
        self.bad(runs, "1.coffer.4096 twice")

    def test_no_switches(self):
        self.write([run_of()])
        self.bad([run_of(counted=1)], "1.coffer.4096")

    def test_sections_that_went_wrong(self):
        run = run_of()
        for change, word in (
                (lambda j: j.update(error=5), "error 5"),
                (lambda j: j["read"].update(total_ios=0), "no I/O"),
                (lambda j: j["job options"].update(bs="4k"), "other options"),
                (lambda j: j["job options"].update(rw="write"), "other options"),
                (lambda j: j["job options"].update(numjobs="2"), "submitters"),
                (lambda j: j["read"].pop("lat_ns"), "lat_ns")):
            job = fio_job(run)
            change(job)
            self.write([run], [job])
            self.bad([run], "1.coffer.4096", word)

    def test_another_depth_or_engine(self):
        self.write([run_of()])
        name = os.path.join(self.out, "128k-read.libaio.8.1")
        for ext in "json", "switches":
            os.rename(os.path.join(self.out, f"128k-read.psync.1.1.{ext}"),
                      f"{name}.{ext}")
        self.bad([run_of(engine="libaio", depth=8)], "other options")

    # plan and rows

    def test_plan(self):
        path = os.path.join(self.out, "plan")

        def plan(*runs):
            with open(path, "w", encoding="ascii") as f:
                f.writelines(" ".join(run) + "\n" for run in runs)
            return smp_report.read_plan(path)
        self.assertEqual(plan(run_of(), run_of(2), run_of(jobs=2)),
                         {("128k-read", "psync", "1", "1"): [run_of(), run_of(2)],
                          ("128k-read", "psync", "1", "2"): [run_of(jobs=2)]})
        for wrong in [], [run_of(), run_of(counted=1)], [run_of(variant="luks")]:
            with self.assertRaises(Bad):
                plan(*wrong)

    def test_row_is_the_best_round(self):
        runs = [run_of(r, counted=int(r == 1)) for r in (1, 2, 3)]
        groups = self.write(runs, [
            fio_job(run, iops, mean, p99) for run, iops, mean, p99 in zip(
                runs, (900.0, 5000.0, 1000.0), (3e4, 1e4, 2e4), (7000, 9000, 8000))])
        self.assertEqual(smp_report.make_rows("brd", groups, self.out), [{
            "ruler": "smp", "device": "brd", "workload": "read",
            "block_size": 131072, "data_unit": 4096, "queue_depth": 1,
            "engine": "psync", "jobs": 1, "variant": "coffer",
            "value": 5000.0, "unit": "iops", "median": 1000.0,
            "min": 900.0, "max": 5000.0, "rounds": 3, "latency_mean_us": 10.0,
            "latency_mean_us_median": 20.0, "latency_p99_us_median": 8.0,
            "switches_per_io": 2.0}])

    def test_row_of_mixed_is_the_least_percentile(self):
        runs = [run_of(r, job="4k-mixed") for r in (1, 2, 3)]
        groups = self.write(runs, [fio_job(run, p99=p99) for run, p99 in zip(
            runs, (7000, 90000, 8000))])
        row, = smp_report.make_rows("brd", groups, self.out)
        self.assertEqual((row["value"], row["unit"], row["median"], row["max"]),
                         (7.0, "us", 8.0, 90.0))

    def test_uneven_rounds(self):
        groups = self.write([run_of(1), run_of(2), run_of(1, variant="dm-crypt")])
        with self.assertRaisesRegex(Bad, "rounds"):
            smp_report.make_rows("brd", groups, self.out)

    # goals

    def rows(self, coffer, crypt, tuned, means=(1, 1, 1), device="null_blk", **run):
        """values, or of a mixed job 99th percentiles"""
        rows = []
        for variant, value, mean in zip(("coffer", "dm-crypt", "dm-crypt-tuned"),
                                        (coffer, crypt, tuned), means):
            r = run_of(variant=variant, **run)
            rows.append(smp_report.row_of(device, r, [
                smp_report.Figures(value, mean, value, 0.5)]))
        return rows

    def goals(self, *args, **kwargs):
        (case, variants), = smp_report.by_case(
            self.rows(*args, **kwargs)).items()
        return [(round(ratio, 3), reached) for _, ratio, _, reached in
                smp_report.goals(case, variants)]

    def test_rate_goal_takes_the_better_mode(self):
        for crypt, tuned in ((100, 10), (10, 100)):
            self.assertEqual(self.goals(90, crypt, tuned, depth=8), [(0.9, True)])
            self.assertEqual(self.goals(89, crypt, tuned, depth=8), [(0.89, False)])

    def test_latency_goal(self):
        for mean, reached in (75, True), (76, False):
            self.assertEqual(
                self.goals(100, 100, 100, (mean, 100, 300)),
                [(1.0, True), (mean / 100, reached)])
            self.assertEqual(
                self.goals(100, 100, 100, (mean, 300, 100))[1],
                (mean / 100, reached))
        for other in ({"device": "brd"}, {"jobs": 2}, {"depth": 8},
                      {"job": "128k-write"}, {"job": "4k-randread"}):
            self.assertEqual(len(self.goals(1, 1, 1, (9, 1, 1), **other)), 1)

    def test_mixed_goal(self):
        for value, reached in (100, True), (101, False):
            for crypt, tuned in (100, 900), (900, 100):
                self.assertEqual(self.goals(value, crypt, tuned, job="4k-mixed"),
                                 [(value / 100, reached)])

    def test_no_goal_without_both_modes(self):
        rows = self.rows(1, 1, 1)
        for missing in range(3):
            (case, variants), = smp_report.by_case(
                rows[:missing] + rows[missing + 1:]).items()
            self.assertEqual(smp_report.goals(case, variants), [])
            self.assertIn("-", "".join(smp_report.report(
                rows[:missing] + rows[missing + 1:])))

    def test_report_names_what_was_missed(self):
        text = "\n".join(smp_report.report(
            self.rows(100, 100, 10, (80, 100, 300))
            + self.rows(50, 100, 10, job="128k-write", depth=8)
            + self.rows(100, 100, 10, job="4k-randread")))
        self.assertIn("MISSED: null_blk 128K read depth 1, 1 at once, data unit "
                      "4096: mean latency 0.80", text)
        self.assertIn("MISSED: null_blk 128K write depth 8, 1 at once, data unit "
                      "4096: I/Os a second 0.50", text)
        self.assertIn("2 of 4 goals reached", text)
        line, = [line.split() for line in text.splitlines()
                 if line.endswith("yes NO")][:1]
        self.assertEqual(line, ["null_blk", "128k-read", "1", "1", "13", "1", "13",
                                "1.00", "yes", "NO"])

    # pieces

    def test_append(self):
        facts = {key: "x" for key in smp_report.SAME}
        old = {"environment": facts | {"cipher_drivers": {"a": "1"}, "store brd": "s"},
               "rows": self.rows(1, 2, 3) + self.rows(4, 5, 6, jobs=2)}
        new = self.rows(7, 8, 9, jobs=2)[:1]
        environment, rows = smp_report.append(
            old, facts | {"cipher_drivers": {"b": "2"}}, new)
        self.assertEqual(rows, old["rows"][:3] + new)
        self.assertEqual(environment["cipher_drivers"], {"a": "1", "b": "2"})
        self.assertEqual(environment["store brd"], "s")
        for key in smp_report.SAME:
            with self.assertRaisesRegex(Bad, f"another {key}"):
                smp_report.append(old, facts | {key: "y", "cipher_drivers": {}}, new)

    def test_all_of_it(self):
        runs = [run_of(variant=v) for v in ("coffer", "dm-crypt", "dm-crypt-tuned")]
        self.write(runs)
        with open(os.path.join(self.out, "plan"), "w", encoding="ascii") as f:
            f.writelines(" ".join(run) + "\n" for run in runs)
        with open(os.path.join(self.out, "environment"), "w",
                  encoding="utf-8") as f:
            f.write("kernel=6.12\nstore=brd, 1 MiB\nscheduler=none\n"
                    "cipher coffer 4096=xts-x\n")
        path = os.path.join(self.out, "smp.json")
        args = [path, f"brd={self.out}", "--", "accel=tcg"]
        with contextlib.redirect_stdout(io.StringIO()) as shown:
            smp_report.main(["smp_report.py", *args])
            smp_report.main(["smp_report.py", "--append", *args])
        self.assertIn("1 of 1 goals reached", shown.getvalue())
        self.assertNotIn("busy", shown.getvalue())
        with contextlib.redirect_stdout(io.StringIO()) as shown:
            smp_report.main(["smp_report.py", *args, "cpus_taken_by_others=0.2"])
        self.assertIn("busy", shown.getvalue())
        with contextlib.redirect_stdout(io.StringIO()):
            smp_report.main(["smp_report.py", *args])
        with open(path, encoding="utf-8") as f:
            result = json.load(f)
        self.assertEqual(result["environment"]["store brd"], "brd, 1 MiB")
        self.assertEqual(len(result["rows"]), 3)
        # another machine's rows are not mixed in, and the good result stays
        with self.assertRaisesRegex(Bad, "another accel"):
            smp_report.main(["smp_report.py", "--append", *args, "accel=kvm"])
        self.write(runs, text="{")
        with self.assertRaises(Bad):
            smp_report.main(["smp_report.py", *args])
        with open(path, encoding="utf-8") as f:
            self.assertEqual(json.load(f), result)


if __name__ == "__main__":
    unittest.main()
