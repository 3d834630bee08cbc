#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests of suites.py, page.py and compare, without fio, device or root: python3 -m unittest"""

import contextlib
import importlib.machinery
import importlib.util
import io
import os
import pathlib
import tempfile
import unittest
import xml.dom.minidom

import page
import report
import suites
import workload

HERE = pathlib.Path(__file__).resolve().parent
ALL = suites.SUITES | suites.LAPTOP

# no .py, since it is a command
loader = importlib.machinery.SourceFileLoader("compare", str(HERE / "compare"))
compare = importlib.util.module_from_spec(importlib.util.spec_from_loader("compare", loader))
loader.exec_module(compare)


def row(job, variant, value, unit=4096, **more):
    work = workload.parse(job)
    return {"ruler": "fio", "part": "disk", "job": job, "workload": work.rw,
            "block_size": work.block_size, "data_unit": 0 if variant == "raw" else unit,
            "queue_depth": 1, "engine": "psync", "submitters": 1, "variant": variant,
            "value": value, "unit": "iops", "min": value, "max": value, "rounds": 3,
            "latency_p50_us": 10.0, "latency_p99_us": 30.0, "latency_p999_us": 50.0,
            "cpu_percent": 50.0, "cpu_s_per_gb": 2.0, "switches_per_io": 1.0} | more


class Suites(unittest.TestCase):
    def test_every_job_has_a_file(self):
        for suite in ALL.values():
            self.assertIn(suite.part, suites.PARTS)
            self.assertIn(suite.plain, suite.variants)
            for job, engine, *_ in suite.jobs:
                work = workload.parse(job)
                name = work.file if engine == "program" else work.file + ".fio"
                self.assertTrue((HERE / "jobs" / name).exists(), name)

    def test_every_file_is_a_job(self):
        """and begins with the question that it answers"""
        used = {workload.parse(job).file for suite in ALL.values() for job, *_ in suite.jobs}
        for path in (HERE / "jobs").iterdir():
            if path.suffix in (".inc", ".py"):
                continue
            self.assertIn(path.stem, used)
            head = [line for line in path.read_text().splitlines()[:8] if line[:1] in ";#"]
            self.assertIn("?", " ".join(head), path)

    def test_plan(self):
        lines = suites.plan(suites.chosen("all"), "disk", 2)
        self.assertEqual(len(lines), len(set(lines)))
        self.assertEqual(sum(line.startswith("1 ") for line in lines) * 2, len(lines))
        for line in lines:
            self.assertEqual(len(report.Run(*line.split())), 7)
        reading = " ".join(suites.plan(suites.chosen("all"), "disk", 1, readonly=True))
        for word in "write", "copy", "rw":
            self.assertNotIn(word, reading)
        self.assertIn("scaling:4k-randread-x4", reading)
        self.assertEqual(suites.parts(suites.chosen("stream")), ["disk"])
        with self.assertRaises(KeyError):
            suites.chosen("none")


class Page(unittest.TestCase):
    def setUp(self):
        tmp = tempfile.TemporaryDirectory()
        self.addCleanup(tmp.cleanup)
        self.dir = tmp.name

    def rows(self):
        for job in ("stream:1m-write", "stream:1m-read"):
            for variant, value in (("raw", 100.0), ("dm-crypt", 50.0),
                                   ("dm-crypt-tuned", 60.0), ("coffer", 80.0)):
                yield row(job, variant, value, engine="libaio", queue_depth=4)

    def write(self, rows):
        path = os.path.join(self.dir, "suite.json")
        report.write_json(path, {"rounds": "3", "accel": "none", "odd": "<&>"}, list(rows))
        return path

    def make(self, rows):
        out = os.path.join(self.dir, "report.html")
        with contextlib.redirect_stdout(io.StringIO()) as shown:
            page.main(["page.py", self.write(rows), out])
        return shown.getvalue(), pathlib.Path(out).read_text(encoding="utf-8")

    def test_figures(self):
        shown, html = self.make(self.rows())
        line, = [x for x in shown.splitlines() if x.startswith("1m-write")]
        self.assertEqual(line.split()[1:8], ["4.3%", "105", "±0%", "50%", "40%", "20%", "1.60"])
        self.assertIn("mean of the overheads", shown)
        for cell in "4.3%", "50%", "40%", "20%", "1.60":
            self.assertIn(f"<td>{cell}</td>", html)
        # one file: nothing is fetched from elsewhere
        for word in "src=", "href=\"http", "@import", "url(http":
            self.assertNotIn(word, html)
        self.assertIn("currentColor", html)
        self.assertNotIn(page.INK, html)
        self.assertIn("&lt;&amp;&gt;", html)
        drawings = html.split("<svg")[1:]
        self.assertEqual(len(drawings), 3)
        for drawing in drawings:
            xml.dom.minidom.parseString("<svg" + drawing[:drawing.index("</svg>")] + "</svg>")

    def test_noise_is_marked(self):
        rows = list(self.rows())
        self.assertNotIn("(noisy)", self.make(rows)[0])
        rows[3] |= {"min": 40.0, "max": 120.0}
        shown, html = self.make(rows)
        self.assertIn("1m-write (noisy)", shown)
        self.assertEqual(html.count('<tr class="noisy">'), 1)

    def test_a_mapping_that_was_not_measured(self):
        shown, _ = self.make(r for r in self.rows() if r["variant"] != "dm-crypt")
        line, = [x for x in shown.splitlines() if x.startswith("1m-write")]
        self.assertEqual(line.split()[4:8], ["-", "40%", "20%", "-"])

    def test_nothing_of_a_suite(self):
        with self.assertRaises(report.Bad):
            self.make([row("4k-other", "raw", 1.0)])


class Compare(unittest.TestCase):
    def setUp(self):
        tmp = tempfile.TemporaryDirectory()
        self.addCleanup(tmp.cleanup)
        self.dir = tmp.name

    def compare(self, a, b):
        paths = []
        for name, rows in (("a", a), ("b", b)):
            paths.append(os.path.join(self.dir, name))
            report.write_json(paths[-1], {}, rows)
        with contextlib.redirect_stdout(io.StringIO()) as shown:
            status = compare.main(["compare", *paths])
        return status, [line.split() for line in shown.getvalue().splitlines()]

    def test_changes(self):
        a = [row("4k-randread", "coffer", 100.0), row("8k-randread", "coffer", 100.0),
             row("4k-randwrite", "coffer", 100.0), row("4k-randread", "raw", 5.0)]
        b = [row("4k-randread", "coffer", 150.0),
             row("8k-randread", "coffer", 80.0, min=79.0, max=81.0),
             row("4k-randwrite", "coffer", 110.0, min=90.0, max=130.0)]
        status, lines = self.compare(a, b)
        self.assertEqual(status, 0)
        self.assertEqual([line[-1] for line in lines[1:4]], ["better", "WORSE", "="])
        self.assertEqual(lines[1][-5:-1], ["100", "150", "1.50", "±0%"])
        self.assertIn("3 in both, 1 only in A, 0 only in B", " ".join(lines[4]))

    def test_less_is_better_of_times(self):
        a = row("4k-randread", "coffer", 100.0)
        a["unit"] = "insn/io"
        status, lines = self.compare([a], [a | {"value": 90.0, "min": 90.0, "max": 90.0}])
        self.assertEqual((status, lines[1][-1]), (0, "better"))

    def test_nothing_in_common(self):
        status, _ = self.compare([row("4k-randread", "raw", 1.0)],
                                 [row("8k-randread", "raw", 1.0)])
        self.assertEqual(status, 1)

    def test_no_result(self):
        for text in "", "[]", "{}", '{"rows": [1]}':
            path = os.path.join(self.dir, "bad")
            pathlib.Path(path).write_text(text, encoding="utf-8")
            with self.assertRaises(report.Bad):
                compare.read(path)


if __name__ == "__main__":
    unittest.main()
