#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The published comparisons as one page, and the same on the terminal.

    page.py JSON HTML

JSON is what report.py wrote of a suite. Each comparison has a table (published figure, dm-crypt,
coffer and their ratio), bars of the overheads, latency and CPU. The page needs
nothing beside itself and can be read on light and on dark.

Overhead: 1 - mapped / plain, the share of the plain disk's speed that the mapping takes.
Invariant: a figure on the page is one of JSON, or computed from two of one run.
"""

import html
import io
import json
import os
import sys

import matplotlib

import report
import suites

matplotlib.use("svg")
from matplotlib import pyplot  # pylint: disable=wrong-import-position

COLOURS = {"raw": "#8a8a8a", "linear": "#8a8a8a", "dm-crypt": "#d1822b",
           "dm-crypt-tuned": "#c0504d", "coffer": "#2b7fd1"}
INK = "#123456"		# stands for the colour of the text until the page is written
SLANTED = {"rotation": 25, "ha": "right"}
LABELS = {"dm-crypt-tuned": "dm-crypt, tuned"}

STYLE = """
:root { color-scheme: light dark; --line: #8884; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 70em; margin: 2em auto; padding: 0 1em; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; margin: 1em 0; }
th, td { padding: .2em .7em; text-align: right; border-bottom: 1px solid var(--line); }
th:first-child, td:first-child { text-align: left; white-space: nowrap; }
svg { max-width: 100%; height: auto; }
.noisy { opacity: .6; } .note { opacity: .8; } h2 { margin-top: 2.2em; }
"""


def label(variant):
    return LABELS.get(variant, variant)


def overhead(plain, mapped):
    """None where one was not measured"""
    if plain is None or mapped is None:
        return None
    return 1 - mapped["value"] / plain["value"]


def percent(value):
    return "-" if value is None else f"{value:.0%}".replace("-", "\N{MINUS SIGN}")


def cases_of(suite, rows):
    """[(name, published, {variant: row})] of a suite, in its order"""
    found = []
    one_file = len({job[0].rpartition(":")[0] for job in suite.jobs}) == 1
    for job, engine, depth, _, published in suite.jobs:
        for unit in sorted(suite.units, reverse=True):
            variants = {
                row["variant"]: row for row in rows
                if (row["part"], row["job"], row["engine"], row["queue_depth"]) ==
                (suite.part, job, engine, depth) and row["data_unit"] in (0, unit)
                and row["variant"] in suite.variants}
            if len(variants) < 2:
                continue
            name = job.rpartition(":")[2] if one_file else job
            if len({j[2] for j in suite.jobs}) > 1:
                name += f", depth {depth}"
            if len(suite.units) > 1:
                name += f", unit {unit}"
            found.append((name, published, variants))
    return found


def noisy(variants):
    return any(report.spread(row) > report.NOISE for row in variants.values())


HEADS = ("", "published", "plain", "dm-crypt", "tuned", "coffer", "coffer / dm-crypt",
         "CPU s/GB: dm-crypt", "tuned", "coffer", "p99, us: dm-crypt", "tuned", "coffer")


def counts_instructions(environment):
    """where a tick is as long as the machine likes, so that /proc/stat says nothing"""
    return "icount" in environment.get("accel", "")


def table_of(suite, cases):
    """rows of text, the first of headings: overheads, CPU and latency of each case"""
    lines = [HEADS]
    sums = {mapping: [] for mapping in suites.MAPPINGS}
    for name, published, variants in cases:
        plain = variants.get(suite.plain)
        cells = {m: overhead(plain, variants.get(m)) for m in suites.MAPPINGS}
        for mapping, value in cells.items():
            if value is not None:
                sums[mapping].append(value)
        ratio = report.ratio(variants, "dm-crypt")
        per_mapping = [[("-" if m not in variants or variants[m].get(field) is None else
                         f"{variants[m][field]:.{digits}f}") for m in suites.MAPPINGS]
                       for field, digits in (("cpu_s_per_gb", 2), ("latency_p99_us", 0))]
        lines.append((name + (" (noisy)" if noisy(variants) else ""), published or "-",
                      "-" if plain is None else report.throughput(plain),
                      *map(percent, cells.values()),
                      "-" if ratio is None else f"{ratio:.2f}",
                      *per_mapping[0], *per_mapping[1]))
    if len(cases) > 1:
        lines.append(("mean of the overheads", "", "",
                      *(percent(sum(v) / len(v) if v else None) for v in sums.values()),
                      *[""] * (len(HEADS) - 6)))
    return lines


def text_table(lines):
    widths = [max(map(len, column)) for column in zip(*lines)]
    return "\n".join("  ".join(c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in
                               enumerate(zip(line, widths))).rstrip() for line in lines)


def html_table(lines):
    def row(line, tag):
        return "<tr>" + "".join(f"<{tag}>{html.escape(c)}</{tag}>" for c in line) + "</tr>"
    body = "".join(row(line, "td").replace("<tr>", '<tr class="noisy">' if "(noisy)" in line[0]
                                           else "<tr>") for line in lines[1:])
    return f"<table><thead>{row(lines[0], 'th')}</thead><tbody>{body}</tbody></table>"


def drawing(draw, width=9.0, height=3.2):
    """an SVG element, in the colour of the text around it"""
    with pyplot.rc_context({
            "svg.fonttype": "none", "svg.hashsalt": "coffer", "font.size": 9,
            "text.color": INK, "axes.labelcolor": INK, "axes.edgecolor": INK,
            "xtick.color": INK, "ytick.color": INK, "font.family": "sans-serif",
            "axes.spines.top": False, "axes.spines.right": False,
            "savefig.transparent": True, "legend.frameon": False}):
        figure, axes = pyplot.subplots(figsize=(width, height), layout="constrained")
        draw(axes)
        out = io.StringIO()
        figure.savefig(out, format="svg", metadata={"Date": None})
        pyplot.close(figure)
    svg = out.getvalue()
    return svg[svg.index("<svg"):].replace(INK, "currentColor")


def bars(axes, names, series, unit):
    """series: [(variant, values)]; None is a gap"""
    width = 0.8 / len(series)
    for i, (variant, values) in enumerate(series):
        at = [x + (i - (len(series) - 1) / 2) * width for x in range(len(names))]
        axes.bar(at, [v or 0 for v in values], width, label=label(variant),
                 color=COLOURS[variant])
    axes.set_xticks(range(len(names)), names, **SLANTED)
    axes.axhline(0, color=INK, linewidth=0.8)
    axes.set_ylabel(unit)
    axes.legend(ncols=len(series), loc="lower left", bbox_to_anchor=(0, 1))


def drawings(suite, cases):
    """of overheads, CPU and, where the depth varies, latency"""
    names = [name for name, _, _ in cases]
    shown = [m for m in suites.MAPPINGS if any(m in v for _, _, v in cases)]
    width = max(6.5, min(13.0, 1.5 + 0.75 * len(cases)))

    def of(variant, get):
        return variant, [get(v) for _, _, v in cases]

    yield "Overhead, % of the plain disk's speed", drawing(lambda axes: bars(
        axes, names, [of(m, lambda v, m=m: None if m not in v or suite.plain not in v else
                         100 * overhead(v[suite.plain], v[m])) for m in shown], "%"), width)
    every = [suite.plain, *shown]
    if all("cpu_s_per_gb" in row for _, _, v in cases for row in v.values()):
        yield "CPU of the whole machine, seconds a gigabyte", drawing(lambda axes: bars(
            axes, names, [of(m, lambda v, m=m: v[m]["cpu_s_per_gb"] if m in v else None)
                          for m in every], "s/GB"), width)
    if any(v[suite.plain]["latency_p99_us"] for _, _, v in cases if suite.plain in v):
        yield "Latency: median, 99th and 99.9th percentile", drawing(
            lambda axes: latency(axes, every, cases), width)


def latency(axes, every, cases):
    """a curve through each variant's percentiles, case by case"""
    points = ("latency_p50_us", "latency_p99_us", "latency_p999_us")
    for variant in every:
        x, y = [], []
        for at, (_, _, variants) in enumerate(cases):
            row = variants.get(variant)
            x += [at - 0.25, at, at + 0.25, None]
            y += [*(row[p] if row else None for p in points), None]
        axes.plot([float("nan") if v is None else v for v in x],
                  [float("nan") if v is None else v for v in y],
                  marker="o", markersize=3, color=COLOURS[variant], label=label(variant))
    axes.set_yscale("log")
    axes.set_ylabel("us")
    axes.set_xticks(range(len(cases)), [name for name, _, _ in cases],
                    **SLANTED)
    axes.legend(ncols=len(every), loc="lower left", bbox_to_anchor=(0, 1))


def notes(environment):
    yield ("Overhead is 1 - mapped / plain. Each figure is the median of "
           f"{environment['rounds']} interleaved rounds; a case of which one median stands for rounds that "
           f"differ by more than ±{report.NOISE:.0%} is marked noisy. CPU is of the whole machine, from "
           "/proc/stat. Tuned is dm-crypt with no_read_workqueue no_write_workqueue.")
    accel = environment.get("accel", "none")
    if counts_instructions(environment):
        yield ("The machine is emulated and counts instructions: one takes a nanosecond, on one CPU, "
               "whatever it is. The figures repeat to 1% and leave out what caches and several CPUs do.")
    elif accel != "none":
        yield ("The machine is emulated: its CPUs do AES about ten times slower than a laptop's, a switch of "
               "threads costs other than real time, and rounds differ. The disk is modelled "
               "(80 us an I/O, and a limit of bandwidth scaled to the emulated CPU: see the "
               "environment). Compare the mappings with each other; the published figures "
               "stand beside them for the question, not for the number.")


def chosen_suites(rows):
    """{name: Suite} of which there are rows"""
    return {name: suite for name, suite in (suites.SUITES | suites.LAPTOP).items()
            if cases_of(suite, rows)}


def main(argv):
    path, page = argv[1:3]
    with open(path, encoding="utf-8") as f:
        result = json.load(f)
    rows, environment = result["rows"], result["environment"]
    if counts_instructions(environment):
        for row in rows:
            row.pop("cpu_s_per_gb")
    found = chosen_suites(rows)
    if not found:
        raise report.Bad(f"{path}: nothing of a suite in it")
    body = ["<h1>What disk encryption costs</h1>"]
    body += [f'<p class="note">{html.escape(note)}</p>' for note in notes(environment)]
    for suite in found.values():
        cases = cases_of(suite, rows)
        lines = table_of(suite, cases)
        print(f"\n{suite.title}: {suite.question}")
        if suite.source:
            print(f"Published: {suite.source}")
        print(text_table(lines))
        body.append(f"<h2>{html.escape(suite.title)}</h2><p>{html.escape(suite.question)}."
                    + (f" Published: {html.escape(suite.source)}." if suite.source else "") + "</p>")
        body.append(html_table(lines))
        for title, svg in drawings(suite, cases):
            body.append(f"<h3>{html.escape(title)}</h3>{svg}")
    print()
    for note in notes(environment):
        print(note)
    facts = json.dumps(environment, indent=1, ensure_ascii=False)
    body.append(f"<h2>Environment</h2><pre>{html.escape(facts)}</pre>")
    with open(page + ".new", "w", encoding="utf-8") as f:
        f.write('<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
                '<meta name="viewport" content="width=device-width">'
                f"<title>What disk encryption costs</title><style>{STYLE}</style></head><body>\n"
                + "\n".join(body) + "\n</body></html>\n")
    os.rename(page + ".new", page)
    print(f"written: {page}")


if __name__ == "__main__":
    try:
        main(sys.argv)
    except report.Bad as e:
        sys.exit(f"page: {e}")
