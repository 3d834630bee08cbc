# SPDX-License-Identifier: GPL-2.0-or-later
"""I/O with CPU work between, as programs do it. fio's thinktime_spin, made for that, never returns in
the version that Debian 12 has.

A job calls run() and prints what it did. Direct I/O on $DEVICE, one at a time, within $SIZE
bytes; $IOS of them, with offsets that are the same in every run.
"""

import fcntl
import json
import mmap
import os
import random
import sys
import time

BLKGETSIZE64 = 0x80081272


def look(path):
    """CPU time and context switches of the machine so far"""
    with open("/proc/stat", encoding="ascii") as stat, open(path, "a", encoding="ascii") as out:
        out.writelines(line for line in stat if line.startswith(("cpu ", "ctxt ")))


def burn(seconds):
    """as much CPU time"""
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


def run(block_size, work, write_every=0, sequential=False):
    """block_size bytes an I/O, after each one `work` seconds of CPU; every write_every-th
    is a write. What /proc/stat said before and after goes to the file argv[1]."""
    size, count = int(os.environ["SIZE"]), int(os.environ["IOS"])
    fd = os.open(os.environ["DEVICE"], os.O_DIRECT | os.O_RDWR if write_every else
                 os.O_DIRECT | os.O_RDONLY)
    end = int.from_bytes(fcntl.ioctl(fd, BLKGETSIZE64, bytes(8)), sys.byteorder)
    blocks = min(size, end) // block_size
    numbers = random.Random(20110720)
    memory = mmap.mmap(-1, block_size)
    open(sys.argv[1], "w", encoding="ascii").close()
    look(sys.argv[1])
    start = time.monotonic()
    for i in range(count):
        at = (i if sequential else numbers.randrange(blocks)) % blocks * block_size
        write = write_every and i % write_every == write_every - 1
        done = os.pwritev(fd, [memory], at) if write else os.preadv(fd, [memory], at)
        if done != block_size:
            sys.exit(f"{done} of {block_size} bytes at {at}")
        burn(work)
    seconds = time.monotonic() - start
    look(sys.argv[1])
    json.dump({"done": {"bytes": count * block_size, "seconds": seconds}}, sys.stdout)
