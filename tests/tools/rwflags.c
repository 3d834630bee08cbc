// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Direct I/O with the flags that most programs never set, and what came of it.
 *
 *   rwflags nowait [-s SEED] [-n OPS] [-b MAXBYTES] DEV
 *	Single reads and writes with RWF_NOWAIT, up to MAXBYTES. Each either does all of its work or
 *	says EAGAIN and is tried again, at last without the flag. Content is checked
 *	against a model.
 *   rwflags flood [-s SEED] [-n COUNT] [-b BYTES] [-w] DEV
 *	COUNT asynchronous writes of BYTES one behind the other, all submitted before
 *	any is waited for; with RWF_NOWAIT unless -w. Reports how long the submission
 *	took, how many said EAGAIN, and how much memory was gone meanwhile. What was
 *	accepted must be there afterwards, what was not must not.
 *   rwflags atomic [-s SEED] [-n COUNT] [-b BYTES] [-o OFFSET] DEV
 *	COUNT writes with RWF_ATOMIC, COUNT * BYTES from OFFSET on, read back.
 *
 * One line of KEY=VALUE words comes out. Exit status: 0 fine, 1 wrong data or an
 * error that the kernel had no reason for, 2 cannot test, 3 the flag is not supported.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/aio_abi.h>
#include <linux/fs.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "rnd.h"

#ifndef RWF_ATOMIC
#define RWF_ATOMIC	0x00000040
#endif

#define BLOCK		4096u
#define MAX_COUNT	256

static const char *name;
static int fd;
static uint64_t size;

static void __attribute__((format(printf, 2, 3), noreturn))
fail(int code, const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "rwflags: %s: ", name);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(code);
}

static uint8_t *memory(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (p == MAP_FAILED)
		fail(2, "no memory for %zu bytes", bytes);
	return p;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1000 + (double)t.tv_nsec / 1e6;
}

static void check_read(uint8_t *buf, const uint8_t *want, size_t len, uint64_t off,
		       const char *what)
{
	size_t i;

	if (pread(fd, buf, len, (off_t)off) != (ssize_t)len)
		fail(1, "read at %" PRIu64 ": %s", off, strerror(errno));
	for (i = 0; i < len; i++)
		if (buf[i] != want[i])
			fail(1, "%s at byte %" PRIu64 ": got %02x, want %02x", what,
			     off + i, buf[i], want[i]);
}

/* ---- nowait --------------------------------------------------------------- */

static void nowait(unsigned long ops, size_t max)
{
	uint8_t *model = memory(size), *buf = memory(max);
	unsigned long again = 0, given_up = 0, i;

	rnd_fill(model, size);
	if (pwrite(fd, model, size, 0) != (ssize_t)size)
		fail(2, "fill: %s", strerror(errno));
	for (i = 0; i < ops; i++) {
		bool write = below(2);
		size_t len = BLOCK * (1 + below(below(4) ? 8 : max / BLOCK));
		uint64_t off = BLOCK * below((size - len) / BLOCK + 1);
		struct iovec iov = { buf, len };
		int tries;
		ssize_t r;

		if (write) {
			rnd_fill(buf, len);
			memcpy(model + off, buf, len);
		}
		for (tries = 0;; tries++) {
			int flags = tries < 50 ? RWF_NOWAIT : 0;

			r = write ? pwritev2(fd, &iov, 1, (off_t)off, flags) :
				    preadv2(fd, &iov, 1, (off_t)off, flags);
			if (r == (ssize_t)len)
				break;
			if (r < 0 && errno == EOPNOTSUPP)
				fail(3, "RWF_NOWAIT is not supported");
			if (r >= 0 || errno != EAGAIN || !flags)
				fail(1, "%s at %" PRIu64 " of %zu bytes: %zd, %s",
				     write ? "write" : "read", off, len, r, strerror(errno));
			if (write && memcmp(buf, model + off, len))
				fail(1, "a write changed its buffer");
			again++;
		}
		given_up += tries >= 50;
		if (!write && memcmp(buf, model + off, len))
			fail(1, "wrong data read at %" PRIu64 ", %zu bytes", off, len);
	}
	for (i = 0; i < size; i += max)
		check_read(buf, model + i, size - i < max ? size - i : max, i, "content");
	printf("requests=%lu again=%lu waited=%lu\n", ops, again, given_up);
}

/* ---- flood ---------------------------------------------------------------- */

static volatile bool watching = true;

static long available_kib(void)
{
	char text[1024], *at;
	int f = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
	ssize_t n = f < 0 ? -1 : read(f, text, sizeof(text) - 1);

	if (n <= 0)
		fail(2, "/proc/meminfo: %s", strerror(errno));
	close(f);
	text[n] = 0;
	/* the allocator's free pages: pages of a driver are in no other line */
	at = strstr(text, "MemFree:");
	return at ? strtol(at + 8, NULL, 10) : 0;
}

static void *watch(void *least)
{
	long *min = least;

	while (watching) {
		long v = available_kib();

		if (v < *min)
			*min = v;
		usleep(20000);
	}
	return NULL;
}

static void flood(unsigned int count, size_t bytes, int flags)
{
	uint8_t *old = memory(count * bytes), *new = memory(count * bytes);
	uint8_t *buf = memory(count * bytes);
	struct io_event ev[MAX_COUNT];
	struct iocb cb[MAX_COUNT];
	bool refused[MAX_COUNT] = {};
	double start, before, took, longest = 0, total, all;
	unsigned int i, got, again = 0;
	long least, begin;
	aio_context_t aio = 0;
	pthread_t thread;
	size_t at;

	if (count > MAX_COUNT || count * bytes > size)
		fail(2, "too much for the device");
	rnd_fill(new, count * bytes);
	/* all at once: the device may be very slow */
	if (pread(fd, old, count * bytes, 0) != (ssize_t)(count * bytes))
		fail(2, "read: %s", strerror(errno));
	if (syscall(SYS_io_setup, (long)count, &aio))
		fail(2, "io_setup: %s", strerror(errno));

	least = begin = available_kib();
	if (pthread_create(&thread, NULL, watch, &least))
		fail(2, "no thread");
	memset(cb, 0, sizeof(cb));
	start = now();
	for (i = 0; i < count; i++) {
		struct iocb *one = &cb[i];

		one->aio_fildes = (uint32_t)fd;
		one->aio_lio_opcode = IOCB_CMD_PWRITE;
		one->aio_buf = (uintptr_t)(new + i * bytes);
		one->aio_nbytes = bytes;
		one->aio_offset = (int64_t)(i * bytes);
		one->aio_data = i;
		one->aio_rw_flags = flags;
		before = now();
		if (syscall(SYS_io_submit, aio, 1L, &one) != 1) {
			/* may be told at once or by the event */
			if (errno == EOPNOTSUPP)
				fail(3, "RWF_NOWAIT is not supported");
			if (errno != EAGAIN)
				fail(1, "io_submit: %s", strerror(errno));
			refused[i] = true;
			again++;
		}
		took = now() - before;
		if (took > longest)
			longest = took;
	}
	total = now() - start;
	for (got = again; got < count;) {
		long r = syscall(SYS_io_getevents, aio, 1L, (long)(count - got), ev, NULL);

		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			fail(2, "io_getevents: %s", strerror(errno));
		for (i = 0; i < r; i++) {
			if (ev[i].res == -EOPNOTSUPP)
				fail(3, "RWF_NOWAIT is not supported");
			if (ev[i].res == -EAGAIN && flags) {
				refused[ev[i].data] = true;
				again++;
			} else if (ev[i].res != (int64_t)bytes) {
				fail(1, "write %u: %lld", (unsigned int)ev[i].data,
				     (long long)ev[i].res);
			}
		}
		got += (unsigned int)r;
	}
	all = now() - start;
	watching = false;
	pthread_join(thread, NULL);
	if (pread(fd, buf, count * bytes, 0) != (ssize_t)(count * bytes))
		fail(1, "read: %s", strerror(errno));
	for (at = 0; at < count * bytes; at += 512) {
		/* a refused one may have been cut, and a part of it done */
		if (memcmp(buf + at, new + at, 512) &&
		    !(refused[at / bytes] && !memcmp(buf + at, old + at, 512)))
			fail(1, "wrong data at %zu of %s write", at,
			     refused[at / bytes] ? "a refused" : "an accepted");
	}
	printf("requests=%u again=%u submit_ms=%.0f longest_ms=%.0f all_ms=%.0f memory_kib=%ld\n",
	       count, again, total, longest, all, begin - least);
}

/* ---- atomic --------------------------------------------------------------- */

static void atomic(unsigned int count, size_t bytes, uint64_t offset)
{
	uint8_t *data = memory(bytes), *buf = memory(bytes);
	struct iovec iov = { data, bytes };
	unsigned int i;
	ssize_t r;

	for (i = 0; i < count; i++) {
		rnd_fill(data, bytes);
		r = pwritev2(fd, &iov, 1, (off_t)(offset + i * bytes), RWF_ATOMIC);
		if (r < 0 && (errno == EOPNOTSUPP || errno == EINVAL))
			fail(3, "atomic write of %zu bytes at %" PRIu64 ": %s", bytes,
			     offset + i * bytes, strerror(errno));
		if (r != (ssize_t)bytes)
			fail(1, "atomic write of %zu bytes at %" PRIu64 ": %zd, %s", bytes,
			     offset + i * bytes, r, r < 0 ? strerror(errno) : "short");
		check_read(buf, data, bytes, offset + i * bytes, "content");
	}
	printf("requests=%u bytes=%zu\n", count, bytes);
}

int main(int argc, char **argv)
{
	unsigned long seed = 1, ops = 100, bytes = 1 << 20, offset = 0;
	int flags = RWF_NOWAIT, opt;
	const char *verb;

	name = "usage";
	if (argc < 3)
		fail(2, "see the top of rwflags.c");
	verb = argv[1];
	optind = 2;
	while ((opt = getopt(argc, argv, "s:n:b:o:w")) != -1) {
		switch (opt) {
		case 's':
			seed = strtoul(optarg, NULL, 0);
			break;
		case 'n':
			ops = strtoul(optarg, NULL, 0);
			break;
		case 'b':
			bytes = strtoul(optarg, NULL, 0);
			break;
		case 'o':
			offset = strtoul(optarg, NULL, 0);
			break;
		case 'w':
			flags = 0;
			break;
		default:
			fail(2, "see the top of rwflags.c");
		}
	}
	if (optind != argc - 1)
		fail(2, "see the top of rwflags.c");
	name = argv[optind];
	rnd_state = seed * 0x9e3779b97f4a7c15ull + 1;
	fd = open(name, O_RDWR | O_DIRECT | O_CLOEXEC);
	if (fd < 0 || ioctl(fd, BLKGETSIZE64, &size))
		fail(2, "%s", strerror(errno));

	if (!strcmp(verb, "nowait"))
		nowait(ops, bytes);
	else if (!strcmp(verb, "flood"))
		flood((unsigned int)ops, bytes, flags);
	else if (!strcmp(verb, "atomic"))
		atomic((unsigned int)ops, bytes, offset);
	else
		fail(2, "no verb %s", verb);
	return 0;
}
