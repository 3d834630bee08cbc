#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Turn what `measure` left behind into a JSON file and tables for a person.

    report.py fio|insn JSON DIR... -- [KEY=VALUE...]

DIR, of each part of the run one, holds its plan, its environment and what fio said; its name is
the part's. KEY=VALUE: what the caller knows of the environment. Ruler `fio` reads I/Os a
second, ruler `insn` mean latency, which is a number of instructions where guest
time counts instructions.

Invariant: each run of the plan ends up in the result, or there is no result:
what is missing, cut off or implausible is an error that names the run.
"""

import json
import os
import statistics
import sys
from collections import namedtuple

import workload

VARIANTS = ("raw", "linear", "dm-crypt", "dm-crypt-tuned", "coffer")
# goals for (coffer/dm-crypt-tuned, coffer/dm-crypt), instructions
GOALS = {
    ("4k-randread", 4096): (0.96, 0.68), ("4k-randread", 512): (0.82, 0.60),
    ("4k-randwrite", 4096): (0.76, 0.45), ("4k-randwrite", 512): (0.68, 0.44),
    ("128k-read", 4096): (0.98, 0.96), ("128k-read", 512): (0.75, 0.74),
    ("128k-write", 4096): (0.70, 0.68), ("128k-write", 512): (0.60, 0.58),
}

Run = namedtuple("Run", "round job engine depth variant unit ios")
# of one run; latencies in microseconds or None (of reads, where there are both); cpu: busy
# share of the machine; switches: of context, of the whole machine, an I/O
Figures = namedtuple("Figures", "iops mean p50 p99 p999 cpu switches")
PERCENTILES = ("50.000000", "99.000000", "99.900000")
# rounds whose distance from the median is more than this share of it are named
NOISE = 0.25


class Bad(Exception):
    """A result that cannot be used; the text names the run."""


def read_plan(path):
    with open(path, encoding="ascii") as f:
        runs = [Run(*line.split()) for line in f]
    if not runs or len(set(runs)) != len(runs):
        raise Bad(f"{path}: an empty plan, or a run twice")
    for run in runs:
        if run.variant not in VARIANTS:
            raise Bad(f"{path}: unknown variant {run.variant}")
    return runs


def file_of(run):
    return ".".join(run[:6])


def cpu_times(line):
    """(busy, all) ticks of the whole machine from the first line of /proc/stat"""
    fields = line.split()
    if len(fields) < 9 or fields[0] != "cpu":
        raise ValueError("not /proc/stat")
    ticks = [int(x) for x in fields[1:9]]  # guest time is in user time already
    return sum(ticks) - ticks[3] - ticks[4], sum(ticks)


def fio_json(text):
    """fio's report, in front of which it says where exec_prerun's output went"""
    lines = text.splitlines()
    while lines and " : Saving output of " in lines[0]:
        del lines[0]
    return json.loads("\n".join(lines))


def machine_times(text):
    """(busy ticks, all ticks, context switches) between the two looks at /proc/stat,
    a line of CPU time and one of context switches each"""
    lines = text.splitlines()
    if len(lines) != 4:
        raise ValueError("not two looks at /proc/stat")
    before, after = cpu_times(lines[0]), cpu_times(lines[2])
    switches = []
    for line in lines[1], lines[3]:
        key, _, value = line.partition(" ")
        if key != "ctxt":
            raise ValueError("no context switches")
        switches.append(int(value))
    return after[0] - before[0], after[1] - before[1], switches[1] - switches[0]


def figures_of_program(done, block_size):
    """of a job that is a program and not fio's: blocks a second and their number"""
    if done["bytes"] <= 0 or done["seconds"] <= 0:
        raise ValueError("nothing was done")
    return done["bytes"] / block_size / done["seconds"], done["bytes"] / block_size


def figures_of_job(jobs, run, work):
    """I/Os a second and their number, (mean, percentiles) of the measured section"""
    for job in jobs:
        if job["error"]:
            raise ValueError(f"error {job['error']}")
    measured = [job for job in jobs if job["jobname"] == work.file]
    if len(measured) != 1:
        raise ValueError("not this job")
    job = measured[0]
    options = job["job options"]
    if (options["ioengine"], options["iodepth"], options["rw"], options["bs"],
            options.get("numjobs", "1")) != (
                run.engine, run.depth, work.rw, workload.size_text(work.block_size),
                str(work.submitters)):
        raise ValueError("run with other options than planned")
    sides = [job[side] for side in workload.sides(work.rw)]
    for side in sides:
        if side["total_ios"] <= 0 or side["iops"] <= 0:
            raise ValueError("no I/O was done")
    total = sum(side["total_ios"] for side in sides)
    if int(run.ios) not in (0, total):
        raise ValueError(f"{total} I/Os instead of {run.ios}")
    points = sides[0]["clat_ns"]["percentile"]
    return (sum(side["iops"] for side in sides), total, sides[0]["lat_ns"]["mean"] / 1e3,
            *(points[p] / 1e3 for p in PERCENTILES))


def read_run(out, run):
    name = file_of(run)
    try:
        work = workload.parse(run.job)
        with open(os.path.join(out, f"{name}.json"), encoding="utf-8") as f:
            said = fio_json(f.read())
        with open(os.path.join(out, f"{name}.stat"), encoding="ascii") as f:
            busy, ticks, switches = machine_times(f.read())
        if run.engine == "program":
            iops, total = figures_of_program(said["done"], work.block_size)
            latency = (None,) * 4
        else:
            iops, total, *latency = figures_of_job(said["jobs"], run, work)
        return Figures(iops, *latency, busy / max(ticks, 1), switches / total)
    except OSError as e:
        raise Bad(f"{name}: {e.strerror}: {e.filename}") from e
    except (ValueError, KeyError, IndexError, TypeError, AttributeError) as e:
        raise Bad(f"{name}: the result cannot be used: "
                  f"{type(e).__name__}: {e}") from e


def median(values):
    """None where there is nothing to measure"""
    return None if None in values else statistics.median(values)


def rounded(value, digits):
    return None if value is None else round(value, digits)


def make_rows(ruler, part, plan, out, cpus):
    rounds = {}
    for run in plan:
        rounds.setdefault(run[1:6], []).append(read_run(out, run))
    if len({len(figures) for figures in rounds.values()}) != 1:
        raise Bad("the variants have different numbers of rounds")
    rows = []
    for (job, engine, depth, variant, unit), figures in rounds.items():
        work = workload.parse(job)
        if ruler == "fio":
            values = [f.iops for f in figures]
        else:
            values = [f.mean * 1e3 for f in figures]
        mid = Figures(*map(median, zip(*figures)))
        row = {
            "ruler": ruler, "part": part, "job": job, "workload": work.rw,
            "block_size": work.block_size, "data_unit": int(unit),
            "queue_depth": int(depth), "engine": engine, "submitters": work.submitters,
            "variant": variant, "value": round(statistics.median(values), 1),
            "unit": "iops" if ruler == "fio" else "insn/io",
            "min": round(min(values), 1), "max": round(max(values), 1),
            "rounds": len(values),
        }
        if ruler == "fio":
            gb_per_s = mid.iops * work.block_size / 1e9
            row |= {
                "latency_p50_us": rounded(mid.p50, 1),
                "latency_p99_us": rounded(mid.p99, 1),
                "latency_p999_us": rounded(mid.p999, 1),
                "cpu_percent": round(mid.cpu * 100, 1),
                "cpu_s_per_gb": round(mid.cpu * cpus / gb_per_s, 3),
                "switches_per_io": round(mid.switches, 2),
            }
        rows.append(row)
    return rows


def read_environment(path):
    """KEY=VALUE lines; `cipher VARIANT UNIT` keys go into a dict of their own"""
    environment = {"cipher_drivers": {}}
    try:
        with open(path, encoding="utf-8") as f:
            lines = f.read().splitlines()
    except OSError as e:
        raise Bad(f"{path}: {e.strerror}") from e
    for line in lines:
        key, _, value = line.partition("=")
        if key.startswith("cipher "):
            if not value:
                raise Bad(f"{path}: no {key}")
            environment["cipher_drivers"][key[len("cipher "):]] = value
        else:
            environment[key] = value
    return environment


def group(rows):
    """{(part, job, engine, depth, unit): {variant: row}}; raw and linear, which have
    no data unit, stand with each unit that the mappings ran with."""
    def base(row):
        return row["part"], row["job"], row["engine"], row["queue_depth"]
    units = {}
    for row in rows:
        units.setdefault(base(row), set()).add(row["data_unit"])
    groups = {}
    for row in rows:
        every = units[base(row)]
        for unit in sorted(every - {0} or every, reverse=True):
            if row["data_unit"] in (0, unit):
                groups.setdefault((*base(row), unit), {})[row["variant"]] = row
    return groups


def ratio(variants, other):
    """coffer's value over the other's, None if one was not planned"""
    if "coffer" in variants and other in variants:
        return variants["coffer"]["value"] / variants[other]["value"]
    return None


def table(title, groups, cell, extra=()):
    """extra: (heading, function of key and variants)"""
    shown = [v for v in VARIANTS if any(v in g for g in groups.values())]
    if "coffer" not in shown:
        extra = ()
    heads = ["on", "job", "engine", "depth", "unit",
             *(v.removeprefix("dm-crypt-") for v in shown),
             *(head for head, _ in extra)]
    lines = [heads]
    for key, variants in groups.items():
        lines.append([*map(str, key),
                      *(cell(variants[v]) if v in variants else "-"
                        for v in shown),
                      *(text(key, variants) for _, text in extra)])
    widths = [max(map(len, column)) for column in zip(*lines)]
    text = "\n".join("  ".join(
        c.ljust(w) if i < 3 else c.rjust(w)
        for i, (c, w) in enumerate(zip(line, widths))).rstrip()
        for line in lines)
    return f"{title}\n{text}\n"


def ratio_text(other, goal=None):
    def text(key, variants):
        r = ratio(variants, other)
        return "-" if r is None else f"{r:.2f}"
    def goal_text(key, variants):
        _, job, engine, _, unit = key
        goals = GOALS.get((job, unit))
        return f"{goals[goal]:.2f}" if goals and engine != "io_uring" else "-"
    columns = [(f"coffer/{other.removeprefix('dm-crypt-')}", text)]
    if goal is not None:
        columns.append(("goal", goal_text))
    return columns


def spread(row):
    """half of the distance of the worst round to the best, a share of the median"""
    return (row["max"] - row["min"]) / 2 / row["value"]


def throughput(row):
    value, unit = row["value"] / 1e3, "k"
    if row["block_size"] >= 128 * 1024:
        value, unit = row["value"] * row["block_size"] / 1e6, ""
    return f"{value:.{0 if value >= 100 else 1}f}{unit} ±{spread(row) * 100:.0f}%"


def noisy(rows):
    """A line on the rows whose rounds differ too much to be one figure."""
    names = [f"{row['job']} depth {row['queue_depth']} {row['variant']}"
             for row in rows if spread(row) > NOISE]
    if names:
        yield (f"NOISY: {len(names)} of {len(rows)} medians stand for rounds that differ by more "
               f"than ±{NOISE:.0%}; do not rely on these: {'; '.join(names[:8])}"
               f"{'; ...' if len(names) > 8 else ''}\n")


def fio_tables(rows, environment):
    groups = group(rows)
    yield table("I/Os a second (k: thousands), for 128k MB/s: median ± half of "
                "the spread. Ratios: more is better.",
                groups, throughput,
                ratio_text("dm-crypt") + ratio_text("dm-crypt-tuned"))
    yield table("Latency, 99th percentile, us", groups,
                lambda r: f"{r['latency_p99_us']:.0f}")
    yield table("CPU, % of the whole machine (all CPUs)", groups,
                lambda r: f"{r['cpu_percent']:.0f}")
    yield table("CPU, seconds a gigabyte", groups,
                lambda r: f"{r['cpu_s_per_gb']:.2f}")
    yield table("Context switches an I/O, of the whole machine", groups,
                lambda r: f"{r['switches_per_io']:.2f}")
    yield from noisy(rows)
    if environment.get("accel", "none") != "none":
        yield ("An emulated CPU: it exaggerates the cost of the cipher (AES "
               "instructions above all), a switch\nbetween threads costs other "
               "than real time, and rounds differ. Only ratios count, and "
               "among\nthem those between mappings; `make bench-insn` "
               "tells smaller differences.\n")


def insn_tables(rows, _):
    yield table("Instructions an I/O, thousands. Ratios: less is better.",
                group(rows), lambda r: f"{r['value'] / 1e3:.2f}",
                ratio_text("dm-crypt-tuned", 0) + ratio_text("dm-crypt", 1))
    if any(row["engine"] == "psync" for row in rows):
        yield ("The goals were set with the system calls of libaio in every "
               "I/O (`insn -e libaio`), 2.7 thousand\nmore than those of "
               "psync, so that psync shows ratios up to 0.04 lower.\n")


def collect(ruler, dirs, pairs):
    """environment and rows of all parts; what differs between them is kept by part"""
    parts, rows = {}, []
    for out in dirs:
        part = os.path.basename(os.path.normpath(out))
        parts[part] = read_environment(os.path.join(out, "environment"))
        rows += make_rows(ruler, part, read_plan(os.path.join(out, "plan")), out,
                          int(parts[part]["cpus"]))
    first, *others = parts.values()
    environment = {key: value for key, value in first.items()
                   if all(other.get(key) == value for other in others)}
    environment |= dict(pair.split("=", 1) for pair in pairs)
    environment["parts"] = {part: {key: value for key, value in facts.items()
                                   if key not in environment}
                            for part, facts in parts.items()}
    return environment, rows


def write_json(path, environment, rows):
    with open(path + ".new", "w", encoding="utf-8") as f:
        json.dump({"environment": environment, "rows": rows}, f, indent=1)
        f.write("\n")
    os.rename(path + ".new", path)


def main(argv):
    ruler, path, *rest = argv[1:]
    split = rest.index("--")
    environment, rows = collect(ruler, rest[:split], rest[split + 1:])
    print()
    for text in {"fio": fio_tables, "insn": insn_tables}[ruler](
            rows, environment):
        print(text)
    for key, value in environment.items():
        print(f"{key}: {value}")
    write_json(path, environment, rows)
    print(f"written: {path}")


if __name__ == "__main__":
    try:
        main(sys.argv)
    except Bad as e:
        sys.exit(f"report: {e}")
