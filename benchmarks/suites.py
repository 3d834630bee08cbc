#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The published comparisons, and what of ours stands beside each figure.

    suites.py parts SUITE|all             the parts of a suite: a run of `measure` each
    suites.py plan SUITE|all PART ROUNDS  the plan of a part
    suites.py list                        the suites, with what they ask

A part is a store in a machine of its own. Published figures are written down here, once,
with their source; they are of other machines, so what can be compared is an overhead, the share
of the plain disk's speed that a mapping takes: 1 - mapped / plain.
"""

import sys
from collections import namedtuple

import workload

# store: as devices.sh has it; cpu: of the VM, none: the best; aes: has instructions for it
Part = namedtuple("Part", "store accel cpu env")
# jobs: [(job, engine (program: jobs/FILE is one), depth, number of I/Os or 0: by time, published)]; units: data units;
# plain: the variant that the overheads refer to
Suite = namedtuple("Suite", "title source question part units variants plain jobs")

# A disk half as fast as one emulated CPU encrypts, as those of the reports were to their CPUs.
DISK = "SSD_MBPS=120"
PARTS = {
    "disk": Part("ssd", "multi", "", DISK),
    "disk-without-aes": Part("ssd", "multi", "max,-aes,-vaes", "SSD_MBPS=10"),
    "image": Part("image", "multi", "", DISK),
    "polled": Part("polled", "multi", "", ""),
    "ram": Part("brd", "multi", "", ""),
    # a nanosecond is an instruction there, and 80 and 20 us and 250 MB/s are an SSD of a laptop of 2011
    "laptop-reads": Part("ssd", "icount", "", "SSD_NS=80000 SSD_MBPS=250"),
    "laptop-writes": Part("ssd", "icount", "", "SSD_NS=20000 SSD_MBPS=250"),
}

MAPPINGS = ("dm-crypt", "dm-crypt-tuned", "coffer")
ALL = ("raw", *MAPPINGS)
KINDS = ("randread", "randwrite", "read", "write")


def each(file, sizes, kinds, engine="psync", depth=1, ios=0, published=""):
    """jobs of all sizes and kinds"""
    return [(f"{file}{size}-{kind}", engine, depth, ios, published)
            for size in sizes for kind in kinds]


HEADLINE = (each("", ("4k", "8k"), ("randread", "randwrite"), published="20-30%") +
            each("", ("128k",), ("read", "write"), published="20-30%"))

SUITES = {
    "filevault2": Suite(
        "FileVault 2 on OS X 10.7: raw I/O", "AnandTech, 20 July 2011, MacBook Pro 15, QuickBench",
        "4K and 8K random, 128K sequential", "disk", (4096, 512), ALL, "raw", HEADLINE),
    "filevault2-use": Suite(
        "FileVault 2 on OS X 10.7: programs", "AnandTech, 20 July 2011, MacBook Pro 15",
        "copy of a folder, a mail thread, import of photos", "disk", (4096,),
        ("linear", *MAPPINGS), "linear", [
            ("folder-copy:1m-copy", "program", 1, 0, "24%"),
            ("mail-thread:8k-randread", "program", 1, 336, "9%"),
            ("photo-import:1m-rw", "program", 1, 60, "0%")]),
    "xbench": Suite(
        "XBench on a MacBook Air with AES instructions", "The Practice of Code, 2011, Core i7 1.8 GHz",
        "4K and 256K, sequential and random", "disk", (4096,), ALL, "raw",
        each("xbench:", ("4k", "256k"), KINDS, published="18% (mean)")),
    "xbench-without-aes": Suite(
        "XBench on a MacBook Air without AES instructions",
        "The Practice of Code, 2011, Core 2 Duo 1.6 GHz",
        "the same with the CPU's AES instructions masked", "disk-without-aes", (4096,), ALL, "raw",
        each("xbench:", ("4k", "256k"), KINDS, published="44% (mean)")),
    "quickbench": Suite(
        "QuickBench, standard test", "FileVault of sparse bundles, MacBook Pro 2.8 GHz, 5400 rpm",
        "4 KB to 1 MB", "disk", (4096,), ALL, "raw",
        each("quickbench-standard:", ("4k", "16k", "64k"), KINDS, published="faster (cached)") +
        each("quickbench-standard:", ("256k", "1m"), KINDS, published="far below the plain disk")),
    "quickbench-large": Suite(
        "QuickBench, large test", "FileVault of sparse bundles, MacBook Pro 2.8 GHz, 5400 rpm",
        "2 to 10 MB", "disk", (4096,), ALL, "raw",
        each("quickbench-large:", ("2m", "4m"), ("write",), ios=20) +
        each("quickbench-large:", ("7m", "10m"), ("write",), ios=10, published="75%") +
        each("quickbench-large:", ("2m", "4m", "7m", "10m"), ("read",), ios=10, published="15%")),
    "quickbench-extended": Suite(
        "QuickBench, extended test", "FileVault of sparse bundles, MacBook Pro 2.8 GHz, 5400 rpm",
        "20 to 100 MB", "disk", (4096,), ALL, "raw",
        each("quickbench-extended:", ("20m", "100m"), ("write",), ios=2, published="50%") +
        each("quickbench-extended:", ("20m", "100m"), ("read",), ios=2, published="slower")),
    "stream": Suite(
        "Blackmagic Disk Speed Test", "MacBidouille, 2015, MacBook Pro 13, 1 TB SSD, FileVault",
        "sustained streams; system CPU rose from 15% to 56%", "disk", (4096,), ALL, "raw",
        [("stream:1m-write", "libaio", 4, 0, "4.3%"), ("stream:1m-read", "libaio", 4, 0, "4.6%")]),
    "cipher": Suite(
        "The cipher by data unit", "MacBidouille, 2015: TrueCrypt's benchmark, 1.6 GB/s",
        "the kernel's own path on a RAM disk", "ram", (512, 1024, 2048, 4096), ALL, "raw",
        each("cipher:", ("128k",), ("read", "write"))),
    "image": Suite(
        "An encrypted image file", "advice of the sparse-bundle era: keep secrets in an image",
        "the same on a file of ext4", "image", (4096,), ALL, "raw",
        each("image:", ("4k",), ("randread", "randwrite")) +
        each("image:", ("1m",), ("read", "write"))),
    "today": Suite(
        "What servers and desktops ask today", "",
        "io_uring by depth, mixed, flushed, beside writers, by number of programs", "disk", (4096,),
        ALL, "raw",
        [(f"uring:4k-{kind}", "io_uring", depth, 0, "")
         for kind in ("randread", "randwrite") for depth in (1, 4, 16, 64)] +
        [("mixed:4k-randrw", "libaio", 8, 0, ""), ("fsync:4k-randwrite", "psync", 1, 0, ""),
         ("beside-writers:4k-randread", "psync", 1, 0, "")] +
        [(f"scaling:4k-randread-x{n}", "psync", 1, 0, "") for n in (1, 2, 4)]),
    "polled": Suite(
        "Polled I/O", "", "completions without interrupts; dm-crypt cannot", "polled", (4096,),
        ("raw", "coffer"), "raw",
        each("polled:", ("4k",), ("randread", "randwrite"), engine="io_uring")),
}

# not in `all`: on a ruler of its own, deterministic
LAPTOP = {
    "laptop-reads": Suite(
        "The simulated laptop: reads", "AnandTech, 20 July 2011: 20-30%",
        "an SSD of 80 us and 250 MB/s, one CPU, an instruction a nanosecond", "laptop-reads",
        (4096,), ("raw", *MAPPINGS), "raw",
        each("", ("4k", "8k"), ("randread",), ios=2000, published="20-30%") +
        each("", ("128k",), ("read",), engine="libaio", depth=8, ios=800, published="20-30%")),
    "laptop-writes": Suite(
        "The simulated laptop: writes", "AnandTech, 20 July 2011: 20-30%",
        "an SSD of 20 us and 250 MB/s, one CPU, an instruction a nanosecond", "laptop-writes",
        (4096,), ("raw", *MAPPINGS), "raw",
        each("", ("4k", "8k"), ("randwrite",), ios=2000, published="20-30%") +
        each("", ("128k",), ("write",), engine="libaio", depth=8, ios=800, published="20-30%")),
}


def chosen(name):
    """{name: Suite}; `all` and `laptop` stand for several. KeyError if there is none."""
    groups = {"all": SUITES, "laptop": LAPTOP}
    if name in groups:
        return groups[name]
    return {name: (SUITES | LAPTOP)[name]}


def parts(suites):
    """the parts that they need, each once"""
    return list(dict.fromkeys(suite.part for suite in suites.values()))


def writes(job):
    """whether a job writes to the store, itself or in another section of its file"""
    return "write" in job or not workload.parse(job).rw.endswith("read")


def plan(suites, part, rounds, readonly=False):
    """Lines for `measure`. The variants of a job follow each other, so that a slow moment
    hits all; a job that two suites share is run once."""
    lines = []
    for round_ in range(1, rounds + 1):
        for suite in suites.values():
            if suite.part != part:
                continue
            for job, engine, depth, ios, _ in suite.jobs:
                if readonly and writes(job):
                    continue
                for variant in suite.variants:
                    units = (0,) if variant in ("raw", "linear") else suite.units
                    lines += [f"{round_} {job} {engine} {depth} {variant} {unit} {ios}"
                              for unit in units]
    return list(dict.fromkeys(lines))


def main(argv):
    if argv[1] == "list":
        for name, suite in (SUITES | LAPTOP).items():
            print(f"{name:22}{suite.title}: {suite.question}")
        return
    try:
        suites = chosen(argv[2])
    except KeyError:
        sys.exit(f"suites: no suite {argv[2]}: one of all, laptop, "
                 f"{', '.join(SUITES | LAPTOP)}")
    if argv[1] == "parts":
        for part in parts(suites):
            print(part, PARTS[part].store, PARTS[part].accel, PARTS[part].cpu or "max",
                  PARTS[part].env)
    elif argv[1] == "plan":
        print("\n".join(plan(suites, argv[3], int(argv[4]), argv[5:] == ["readonly"])))
    else:
        sys.exit("suites: parts, plan or list")


if __name__ == "__main__":
    main(sys.argv)
