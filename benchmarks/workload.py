# SPDX-License-Identifier: GPL-2.0-or-later
"""The name of a job, taken apart.

    [FILE:]SIZE-RW[-xN]

FILE is the job file in jobs/ without its ending, and the section in it that is measured;
without FILE it is SIZE-RW. SIZE is a block's, in k or m; RW is fio's rw, or `copy`;
N is how many do the same at once, 1 without.
"""

import re
from collections import namedtuple

# block_size in bytes; rw as fio has it; submitters: how many do this at once
Workload = namedtuple("Workload", "file block_size rw submitters")

NAME = re.compile(r"(?:([a-z0-9-]+):)?([0-9]+)([km])-([a-z]+)(?:-x([0-9]+))?")


def parse(job):
    """Workload of a job's name; ValueError if it is none"""
    found = NAME.fullmatch(job)
    if not found:
        raise ValueError(f"not the name of a job: {job}")
    file, size, letter, rw, submitters = found.groups()
    return Workload(file or f"{size}{letter}-{rw}",
                    int(size) * {"k": 1024, "m": 1024 ** 2}[letter], rw,
                    int(submitters or 1))


def size_text(block_size):
    """4096 -> 4k, 2097152 -> 2m: as fio has it"""
    if block_size % 1024 ** 2 == 0:
        return f"{block_size // 1024 ** 2}m"
    return f"{block_size // 1024}k"


def sides(rw):
    """what fio's report has of it"""
    if rw in ("rw", "randrw"):
        return ("read", "write")
    return ("read",) if "read" in rw else ("write",)
