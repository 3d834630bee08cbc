#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Turn what `measure-smp` left behind into a JSON file, tables and goals.

    smp_report.py [--append] JSON DEVICE=DIR... -- [KEY=VALUE...]

DIR holds the plan and the results of a device. With --append, JSON's rows of other
workloads stay, if they are of the same module and machine.

The value of a row is its best round: what disturbs an emulated machine only ever
makes it slower. Median, worst and number of rounds stand beside it.

Invariant: as in report.py, each run of the plan ends up in the result.
"""

import json
import os
import statistics
import sys
from collections import namedtuple

from report import Bad, fio_json, read_environment, write_json
from workload import parse

MODES = ("dm-crypt", "dm-crypt-tuned")
VARIANTS = (*MODES, "coffer", "coffer-inline", "coffer-fanout", "coffer-handover")
MIXED = "4k-mixed"	# 4K random reads beside eight sequential 1M writers
READERS_MIXED = "randread-mixed"
# ratios of coffer to the better of dm-crypt's modes
GOAL_RATE = 0.9			# I/Os a second, at least
GOAL_LATENCY = 0.75		# mean, 128K reads alone on the modelled SSD, at most
GOAL_MIXED = 1.0		# 99th percentile of reads beside writers, at most
# what must not differ between pieces of one result
SAME = ("kernel", "cpu", "cpus", "fio", "qemu", "accel", "coffer module",
        "seconds_per_run")

Run = namedtuple("Run", "round job engine depth jobs variant unit counted")
# of one run; latencies in microseconds; switches: of context, an I/O, or None
Figures = namedtuple("Figures", "iops mean p99 switches")
# what rows have in common that are compared
Case = namedtuple("Case", "device workload block_size data_unit queue_depth "
                          "engine jobs")


def read_plan(path):
    """{(job, engine, depth, jobs): runs}, as measure-smp groups them"""
    with open(path, encoding="ascii") as f:
        runs = [Run(*line.split()) for line in f]
    if not runs or len({run[:7] for run in runs}) != len(runs):
        raise Bad(f"{path}: an empty plan, or a run twice")
    for run in runs:
        if run.variant not in VARIANTS:
            raise Bad(f"{path}: unknown variant {run.variant}")
    groups = {}
    for run in runs:
        groups.setdefault(run[1:5], []).append(run)
    return groups


def section(run):
    return f"{run.round}.{run.variant}.{run.unit}"


def read_switches(path):
    """{section: from the first reading to the last}"""
    readings = {}
    with open(path, encoding="ascii") as f:
        for line in f:
            name, value = line.split()
            readings.setdefault(name, []).append(int(value))
    return {name: max(values) - min(values) for name, values in readings.items()}


def figures_of(job, run, switches):
    """job: what fio says of it"""
    if job["error"]:
        raise ValueError(f"error {job['error']}")
    _, size, workload, _ = parse(run.job)
    options = job["job options"]
    if run.job == MIXED:
        workload = "randread"
    elif options.get("numjobs") != run.jobs:
        raise ValueError("run by another number of submitters than planned")
    if (options["rw"], options["bs"]) != (workload, f"{size // 1024}k"):
        raise ValueError("run with other options than planned")
    side = job["read" if "read" in workload else "write"]
    if side["total_ios"] <= 0 or side["iops"] <= 0:
        raise ValueError("no I/O was done")
    return Figures(side["iops"], side["lat_ns"]["mean"] / 1e3,
                   side["clat_ns"]["percentile"]["99.000000"] / 1e3,
                   switches and switches / side["total_ios"])


def read_group(out, runs):
    """[Figures] of the runs of one fio"""
    name = ".".join(runs[0][1:5])
    try:
        with open(os.path.join(out, f"{name}.json"), encoding="utf-8") as f:
            result = fio_json(f.read())
        switches = read_switches(os.path.join(out, f"{name}.switches"))
        shared = result["global options"]
        if (shared["ioengine"], shared["iodepth"]) != (runs[0].engine,
                                                      runs[0].depth):
            raise ValueError("run with other options than planned")
        jobs = {}
        for job in result["jobs"]:
            if jobs.setdefault(job["jobname"], job) is not job:
                raise ValueError(f"{job['jobname']} twice")
    except OSError as e:
        raise Bad(f"{name}: {e.strerror}: {e.filename}") from e
    except (ValueError, KeyError, TypeError, AttributeError) as e:
        raise Bad(f"{name}: fio's result cannot be used: "
                  f"{type(e).__name__}: {e}") from e
    figures = []
    for run in runs:
        try:
            figures.append(figures_of(
                jobs[section(run)], run,
                switches[section(run)] if run.counted == "1" else None))
        except (ValueError, KeyError, TypeError, AttributeError) as e:
            raise Bad(f"{name}: {section(run)} cannot be used: "
                      f"{type(e).__name__}: {e}") from e
    return figures


def row_of(device, run, figures):
    _, size, workload, _ = parse(run.job)
    mixed = run.job == MIXED
    values = [f.p99 if mixed else f.iops for f in figures]
    switches = [f.switches for f in figures if f.switches is not None]
    return {
        "ruler": "smp", "device": device,
        "workload": READERS_MIXED if mixed else workload,
        "block_size": size, "data_unit": int(run.unit),
        "queue_depth": int(run.depth), "engine": run.engine,
        "jobs": int(run.jobs), "variant": run.variant,
        "value": round(min(values) if mixed else max(values), 1),
        "unit": "us" if mixed else "iops",
        "median": round(statistics.median(values), 1),
        "min": round(min(values), 1), "max": round(max(values), 1),
        "rounds": len(values),
        "latency_mean_us": round(min(f.mean for f in figures), 1),
        "latency_mean_us_median": round(statistics.median(
            f.mean for f in figures), 1),
        "latency_p99_us_median": round(statistics.median(
            f.p99 for f in figures), 1),
        "switches_per_io":
            round(statistics.median(switches), 2) if switches else None,
    }


def make_rows(device, groups, out):
    rows = []
    for runs in groups.values():
        rounds = {}
        for run, figures in zip(runs, read_group(out, runs)):
            rounds.setdefault((run.variant, run.unit), (run, []))[1].append(figures)
        if len({len(figures) for _, figures in rounds.values()}) != 1:
            raise Bad("the variants have different numbers of rounds")
        rows += [row_of(device, run, figures) for run, figures in rounds.values()]
    return rows


def case_of(row):
    return Case(*(row[field] for field in Case._fields))


def by_case(rows):
    """{Case: {variant: row}}"""
    cases = {}
    for row in rows:
        cases.setdefault(case_of(row), {})[row["variant"]] = row
    return cases


def append(old, environment, rows):
    """The older result with the cases of the new one in place of its own."""
    for key in SAME:
        if old["environment"].get(key) != environment.get(key):
            raise Bad(f"the older result is of another {key}: "
                      f"{old['environment'].get(key)}, not {environment.get(key)}")
    new = {case_of(row) for row in rows}
    rows = [row for row in old["rows"] if case_of(row) not in new] + rows
    merged = old["environment"] | environment
    merged["cipher_drivers"] = (old["environment"]["cipher_drivers"]
                                | environment["cipher_drivers"])
    return merged, rows


def better(variants, field="value"):
    """the better of dm-crypt's modes, or None unless both were run"""
    if not all(mode in variants for mode in MODES):
        return None
    values = [variants[mode][field] for mode in MODES]
    less = field.startswith("latency") or variants[MODES[0]]["unit"] == "us"
    return min(values) if less else max(values)


def goals(case, variants):
    """[(what, ratio, goal, reached)]"""
    best = better(variants)
    if best is None or "coffer" not in variants:
        return []
    coffer = variants["coffer"]
    ratio = coffer["value"] / best
    if case.workload == READERS_MIXED:
        return [("99th percentile", ratio, GOAL_MIXED, ratio <= GOAL_MIXED)]
    found = [("I/Os a second", ratio, GOAL_RATE, ratio >= GOAL_RATE)]
    if (case.device, case.workload, case.block_size, case.queue_depth,
            case.jobs) == ("null_blk", "read", 131072, 1, 1):
        ratio = coffer["latency_mean_us"] / better(variants, "latency_mean_us")
        found.append(("mean latency", ratio, GOAL_LATENCY, ratio <= GOAL_LATENCY))
    return found


def name_of(case):
    return (f"{case.device} {case.block_size // 1024}K {case.workload} "
            f"depth {case.queue_depth}, {case.jobs} at once, "
            f"data unit {case.data_unit}")


def table(title, cases, cell, extra=()):
    """extra: (heading, function of case and variants)"""
    shown = [v for v in VARIANTS if any(v in g for g in cases.values())]
    lines = [["device", "workload", "depth", "jobs",
              *(v.removeprefix("dm-crypt-").removeprefix("coffer-")
                for v in shown),
              *(head for head, _ in extra)]]
    for case, variants in sorted(cases.items()):
        lines.append([case.device, f"{case.block_size // 1024}k-{case.workload}",
                      str(case.queue_depth), str(case.jobs),
                      *(cell(variants[v]) if v in variants else "-"
                        for v in shown),
                      *(text(case, variants) for _, text in extra)])
    widths = [max(map(len, column)) for column in zip(*lines)]
    return title + "\n" + "\n".join("  ".join(
        c.ljust(w) if i < 2 else c.rjust(w)
        for i, (c, w) in enumerate(zip(line, widths))).rstrip()
        for line in lines) + "\n"


def quantity(row, value):
    if row["unit"] == "us":
        return f"{value:.0f}us"
    if row["block_size"] >= 128 * 1024:
        return f"{value * row['block_size'] / 1e6:.0f}"
    return f"{value / 1e3:.1f}k"


def with_spread(row):
    spread = (row["max"] - row["min"]) / 2 / row["median"] * 100
    return f"{quantity(row, row['median'])} ±{spread:.0f}%"


def ratio_of(field):
    def text(_, variants):
        best = better(variants, field)
        if best is None or "coffer" not in variants:
            return "-"
        return f"{variants['coffer'][field] / best:.2f}"
    return text


def reached(case, variants):
    return " ".join("yes" if r else "NO" for *_, r in goals(case, variants)) or "-"


def report(rows):
    cases = by_case(rows)
    yield table("I/Os a second (k: thousands), for 128k MB/s, us for mixed (99th "
                "percentile of the reads): the best round.\nRatio: coffer to the "
                "better of dm-crypt's modes.",
                cases, lambda r: quantity(r, r["value"]),
                [("ratio", ratio_of("value")), ("goal", reached)])
    yield table("The same, median ± half of the distance of the worst round to the "
                "best.", cases, with_spread, [("ratio", ratio_of("median"))])
    yield table("Mean latency, us, of the best round", cases,
                lambda r: f"{r['latency_mean_us']:.0f}",
                [("ratio", ratio_of("latency_mean_us"))])
    yield table("Context switches an I/O, of the whole machine", cases,
                lambda r: "-" if r["switches_per_io"] is None
                else f"{r['switches_per_io']:.2f}")
    found = [(case, goal) for case, variants in sorted(cases.items())
             for goal in goals(case, variants)]
    for case, (what, ratio, goal, hit) in found:
        if not hit or what != "I/Os a second":
            yield (f"{'reached' if hit else 'MISSED'}: {name_of(case)}: {what} "
                   f"{ratio:.2f} of the better dm-crypt, goal {goal}")
    yield f"{sum(hit for _, (*_, hit) in found)} of {len(found)} goals reached"


def collect(devices, pairs):
    """environment and rows of [(device, directory)]"""
    environment, rows = {}, []
    for device, out in devices:
        facts = read_environment(os.path.join(out, "environment"))
        facts[f"store {device}"] = facts.pop("store")
        facts[f"scheduler {device}"] = facts.pop("scheduler")
        environment |= facts
        rows += make_rows(device, read_plan(os.path.join(out, "plan")), out)
    return environment | dict(pair.split("=", 1) for pair in pairs), rows


def main(argv):
    appending = argv[1] == "--append"
    path, *rest = argv[1 + appending:]
    split = rest.index("--")
    environment, rows = collect([d.split("=", 1) for d in rest[:split]],
                                rest[split + 1:])
    if appending and os.path.exists(path):
        with open(path, encoding="utf-8") as f:
            environment, rows = append(json.load(f), environment, rows)
    print()
    for text in report(rows):
        print(text)
    print()
    for key, value in environment.items():
        print(f"{key}: {value}")
    if float(environment.get("cpus_taken_by_others", 0)) > 0.1:
        print("The host was busy with other things: nothing here can be relied "
              "on, least of all what sharing work among CPUs is worth.")
    write_json(path, environment, rows)
    print(f"written: {path}")


if __name__ == "__main__":
    try:
        main(sys.argv)
    except Bad as e:
        sys.exit(f"smp_report: {e}")
