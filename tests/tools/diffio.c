// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Seeded direct I/O on one or two block devices with a model of their content.
 *
 *   diffio fill      [-s SEED] -m MODEL DEV...          random content, whole device
 *   diffio run       [-s SEED] [-n OPS] [-b MAXBYTES] [-q DEPTH] -m MODEL DEV...
 *   diffio unaligned [-s SEED] [-n OPS] -m MODEL REFERENCE DEV
 *   diffio verify    -m MODEL DEV...                    whole device against the model
 *   diffio same      A B                                two stores, byte for byte
 *   diffio flip      DEV OFFSET                         flip one bit (for negative controls)
 *   diffio put       DEV OFFSET FILE [BYTES]            write BYTES of FILE (or all) there
 *   diffio is        DEV OFFSET FILE [BYTES]            do they stand there?
 *
 * run does the same writes on every DEV, and each read on every DEV, with
 * every shape of memory that the devices say they take: page-aligned and
 * shifted buffers, many small vectors, huge pages; sizes up to MAXBYTES. The
 * content of each read is compared with the model, and so is the memory
 * around it, and the source of each write after the write.
 *
 * unaligned does requests that the reference may refuse. What the reference
 * takes, DEV must take; what it refuses, DEV must take or refuse with the
 * same errno or EINVAL; and whatever was said, every block afterwards holds
 * its old or its new content.
 *
 * MODEL is a file with the content that the devices should have; it lasts
 * between calls. Exit status: 0 fine, 1 the devices are wrong, 2 cannot test.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/aio_abi.h>
#include <linux/fs.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "rnd.h"

#define MIB		((size_t)1 << 20)
#define MAX_DEPTH	16
#define MAX_IOV		256
#define MAX_DEV		4
#define CANARY		0xa5

struct dev {
	const char *name;
	int fd;
	uint64_t size;
	unsigned int lbs;	/* logical block size */
	unsigned int dma;	/* memory alignment: queue/dma_alignment + 1 */
};

/* One request: a range of the device and the pieces of memory for it */
struct op {
	bool write, sync;
	uint64_t off;
	size_t len;
	int niov;
	struct iovec iov[MAX_IOV];
	uint8_t *mem;		/* the part of an arena that the pieces lie in */
	size_t span;
};

static struct dev devs[MAX_DEV];
static int ndevs;
static uint8_t *model;
static uint64_t size;		/* of the model: the smallest device */
static unsigned int lbs, dma;	/* the strictest of the devices */
static uint64_t seed;
static unsigned long done_ops;

static void __attribute__((format(printf, 2, 3), noreturn))
fail(int code, const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "diffio: seed %" PRIu64 ", op %lu: ", seed, done_ops);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(code);
}

static unsigned int queue_number(dev_t rdev, const char *what)
{
	char path[128];
	unsigned int v;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/queue/%s",
		 major(rdev), minor(rdev), what);
	f = fopen(path, "r");
	if (!f || fscanf(f, "%u", &v) != 1)
		fail(2, "cannot read %s", path);
	fclose(f);
	return v;
}

static void open_dev(const char *name, int flags)
{
	struct dev *d = &devs[ndevs];
	struct stat st;

	if (ndevs == MAX_DEV)
		fail(2, "too many devices");
	d->name = name;
	d->fd = open(name, flags | O_DIRECT | O_CLOEXEC);
	if (d->fd < 0 || fstat(d->fd, &st))
		fail(2, "%s: %s", name, strerror(errno));
	if (!S_ISBLK(st.st_mode))
		fail(2, "%s: not a block device", name);
	if (ioctl(d->fd, BLKGETSIZE64, &d->size))
		fail(2, "%s: no size: %s", name, strerror(errno));
	d->lbs = queue_number(st.st_rdev, "logical_block_size");
	d->dma = queue_number(st.st_rdev, "dma_alignment") + 1;
	if (!ndevs || d->size < size)
		size = d->size;
	if (d->lbs > lbs)
		lbs = d->lbs;
	if (d->dma > dma)
		dma = d->dma;
	ndevs++;
}

static void open_model(const char *path)
{
	int fd;

	if (!path)
		fail(2, "-m MODEL is missing");
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, (off_t)size))
		fail(2, "%s: %s", path, strerror(errno));
	model = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (model == MAP_FAILED)
		fail(2, "%s: %s", path, strerror(errno));
	close(fd);
}

/* huge: memory whose physical pages are 2 MiB in one piece, or NULL */
static uint8_t *arena(size_t bytes, bool huge)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | (huge ? MAP_HUGETLB : 0),
		       -1, 0);

	if (p == MAP_FAILED) {
		if (huge)
			return NULL;
		fail(2, "no memory: %s", strerror(errno));
	}
	if (!huge)
		madvise(p, bytes, MADV_NOHUGEPAGE);
	memset(p, CANARY, bytes);
	return p;
}

static void differ(const struct dev *d, uint64_t off, const uint8_t *got,
		   const uint8_t *want, size_t len, const char *what)
{
	size_t i = 0;

	while (i < len && got[i] == want[i])
		i++;
	fail(1, "%s: %s differs at byte %" PRIu64 " (request at %" PRIu64 " of %zu bytes): got %02x, want %02x",
	     d->name, what, off + i, off, len, got[i], want[i]);
}

/* ---- requests ---------------------------------------------------------- */

static size_t pick_len(size_t max)
{
	static const size_t big[] = { MIB / 2, MIB, 3 * MIB / 2, 2 * MIB, 4 * MIB };
	size_t len;

	switch (below(10)) {
	case 0:
	case 1:
		len = lbs;
		break;
	case 2:
		len = 4096;
		break;
	case 3:
	case 4:
		len = lbs * (1 + below(32));
		break;
	case 5:
	case 6:
		len = lbs * (1 + below(131072 / lbs));
		break;
	case 7:
		len = lbs * (1 + below(MIB / lbs));
		break;
	case 8:
		len = big[below(sizeof(big) / sizeof(big[0]))];
		break;
	default:
		/* just past the sizes at which requests are split */
		len = big[below(4)] + lbs * below(3);
	}
	while (len > max)
		len /= 2;
	len -= len % lbs;
	return len ? len : lbs;
}

/* Cut the request into pieces of memory inside op->mem (room bytes). */
static void pick_memory(struct op *op, uint8_t *mem, size_t room, bool huge)
{
	size_t left = op->len, pos = 0, shift = 0, piece;
	unsigned int shape = (unsigned int)below(huge ? 2 : 4);

	op->mem = mem;
	op->niov = 0;
	if (shape)
		shift = dma * below(4096 / dma);
	if (huge && shape == 0)		/* from the start of a huge page */
		shift = 0;
	if (shape < 2 || op->len == lbs) {	/* one piece */
		op->iov[0].iov_base = mem + shift;
		op->iov[0].iov_len = op->len;
		op->niov = 1;
		pos = shift + op->len;
	} else {
		/*
		 * Many pieces, each with an offset of its own in its page. They are whole
		 * blocks: every device takes that.
		 */
		while (left) {
			piece = lbs * (1 + below(shape == 2 ? 4 : 64));
			if (piece > left || op->niov == MAX_IOV - 1)
				piece = left;
			shift = dma * below(4096 / dma);
			if (pos + shift + piece + left - piece > room - 8192)
				shift = 0;
			op->iov[op->niov].iov_base = mem + pos + shift;
			op->iov[op->niov].iov_len = piece;
			op->niov++;
			pos += shift + piece;
			/* vectors after the first start on a multiple of dma */
			pos += (dma - pos % dma) % dma;
			left -= piece;
		}
	}
	op->span = pos;
	if (pos > room)
		fail(2, "a request outgrew its memory");
}

static void put(const struct op *op, const uint8_t *data)
{
	int i;

	for (i = 0; i < op->niov; i++) {
		memcpy(op->iov[i].iov_base, data, op->iov[i].iov_len);
		data += op->iov[i].iov_len;
	}
}

static bool holds(const struct op *op, const uint8_t *data, size_t len)
{
	size_t n;
	int i;

	for (i = 0; i < op->niov && len; i++) {
		n = op->iov[i].iov_len < len ? op->iov[i].iov_len : len;
		if (memcmp(op->iov[i].iov_base, data, n))
			return false;
		data += n;
		len -= n;
	}
	return true;
}

static void gather(const struct op *op, uint8_t *data)
{
	int i;

	for (i = 0; i < op->niov; i++) {
		memcpy(data, op->iov[i].iov_base, op->iov[i].iov_len);
		data += op->iov[i].iov_len;
	}
}

/* Was anything but the pieces themselves written to? */
static void check_canary(const struct dev *d, const struct op *op)
{
	size_t i;
	int v;

	for (v = 0; v < op->niov; v++)
		memset(op->iov[v].iov_base, CANARY, op->iov[v].iov_len);
	for (i = 0; i < op->span; i++)
		if (op->mem[i] != CANARY)
			fail(1, "%s: a read at %" PRIu64 " of %zu bytes wrote beside its buffer",
			     d->name, op->off, op->len);
}

static aio_context_t aio;

static void submit_batch(const struct dev *d, struct op *ops, int n)
{
	struct iocb cb[MAX_DEPTH], *cbs[MAX_DEPTH];
	struct io_event ev[MAX_DEPTH];
	int i, got;

	if (n == 1) {
		struct op *op = ops;
		ssize_t r = op->write ?
			pwritev2(d->fd, op->iov, op->niov, (off_t)op->off,
				 op->sync ? RWF_DSYNC : 0) :
			preadv2(d->fd, op->iov, op->niov, (off_t)op->off, 0);

		if (r != (ssize_t)op->len)
			fail(1, "%s: %s at %" PRIu64 " of %zu bytes in %d pieces: %s",
			     d->name, op->write ? "write" : "read", op->off, op->len,
			     op->niov, r < 0 ? strerror(errno) : "short");
		return;
	}
	memset(cb, 0, sizeof(cb));
	for (i = 0; i < n; i++) {
		cb[i].aio_fildes = (uint32_t)d->fd;
		cb[i].aio_lio_opcode = ops[i].write ? IOCB_CMD_PWRITEV : IOCB_CMD_PREADV;
		cb[i].aio_buf = (uintptr_t)ops[i].iov;
		cb[i].aio_nbytes = (uint64_t)ops[i].niov;
		cb[i].aio_offset = (int64_t)ops[i].off;
		cb[i].aio_data = (uint64_t)i;
		if (ops[i].write && ops[i].sync)
			cb[i].aio_rw_flags = RWF_DSYNC;
		cbs[i] = &cb[i];
	}
	got = (int)syscall(SYS_io_submit, aio, (long)n, cbs);
	if (got != n)
		fail(1, "%s: io_submit took %d of %d requests: %s", d->name, got, n,
		     strerror(errno));
	for (got = 0; got < n;) {
		long r = syscall(SYS_io_getevents, aio, 1L, (long)(n - got), ev, NULL);

		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			fail(2, "io_getevents: %s", strerror(errno));
		for (i = 0; i < r; i++) {
			struct op *op = &ops[ev[i].data];

			if (ev[i].res != (int64_t)op->len)
				fail(1, "%s: %s at %" PRIu64 " of %zu bytes in %d pieces, depth %d: %s",
				     d->name, op->write ? "write" : "read", op->off,
				     op->len, op->niov, n,
				     ev[i].res < 0 ? strerror((int)-ev[i].res) : "short");
		}
		got += (int)r;
	}
}

static void run(unsigned long ops, size_t max, int depth)
{
	static struct op op[MAX_DEPTH];
	size_t room = max + (size_t)MAX_IOV * 4096 + MIB;
	size_t huge_room = 2 * max > 2 * MIB ? 2 * max : 2 * MIB;
	unsigned long bytes_written = 0, bytes_read = 0;
	uint8_t *small[MAX_DEPTH], *huge;
	uint8_t *fresh = arena(max, false);
	int i, j, d, n;

	if (max > size / 2 / (size_t)depth)
		max = size / 2 / (size_t)depth;
	max -= max % lbs;
	for (i = 0; i < depth; i++)
		small[i] = arena(room, false);
	huge = depth == 1 ? arena(huge_room + 2 * MIB, true) : NULL;
	if (depth == 1 && !huge)
		printf("diffio: no huge pages, going on without\n");
	if (depth > 1 && syscall(SYS_io_setup, (long)depth, &aio))
		fail(2, "io_setup: %s", strerror(errno));

	while (done_ops < ops) {
		n = depth > 1 ? 2 + (int)below((uint64_t)depth - 1) : 1;
		for (i = 0; i < n; i++) {
			struct op *o = &op[i];

again:
			o->write = below(10) < 6;
			o->sync = o->write && below(16) == 0;
			o->len = pick_len(max);
			/* near the start, the end, or anywhere */
			switch (below(8)) {
			case 0:
				o->off = lbs * below(16);
				break;
			case 1:
				o->off = size - o->len - lbs * below(16);
				break;
			default:
				o->off = lbs * below((size - o->len) / lbs + 1);
			}
			if (o->off + o->len > size || o->off % lbs)
				goto again;
			for (j = 0; j < i; j++)
				if (o->off < op[j].off + op[j].len &&
				    op[j].off < o->off + o->len)
					goto again;
			if (huge && below(3) == 0)
				pick_memory(o, huge, huge_room, true);
			else
				pick_memory(o, small[i], room, false);
			if (o->write) {
				rnd_fill(fresh, o->len);
				put(o, fresh);
				memcpy(model + o->off, fresh, o->len);
				bytes_written += o->len;
			} else {
				bytes_read += o->len;
			}
		}
		for (d = 0; d < ndevs; d++) {
			for (i = 0; i < n; i++)
				if (!op[i].write)
					memset(op[i].mem, CANARY, op[i].span);
			submit_batch(&devs[d], op, n);
			for (i = 0; i < n; i++) {
				if (!holds(&op[i], model + op[i].off, op[i].len)) {
					gather(&op[i], fresh);
					differ(&devs[d], op[i].off, fresh,
					       model + op[i].off, op[i].len,
					       op[i].write ? "the caller's buffer of a write" :
					       "a read");
				}
				if (!op[i].write)
					check_canary(&devs[d], &op[i]);
			}
		}
		/* leave nothing for the next request to trip over */
		for (i = 0; i < n; i++)
			memset(op[i].mem, CANARY, op[i].span);
		done_ops += (unsigned long)n;
	}
	printf("diffio: seed %" PRIu64 ": %lu requests on %d devices, %lu KiB written, %lu KiB read, blocks of %u, memory alignment %u\n",
	       seed, done_ops, ndevs, bytes_written >> 10, bytes_read >> 10, lbs, dma);
}

/* ---- requests that may be refused -------------------------------------- */

struct answer {
	ssize_t r;
	int err;
};

static struct answer try(const struct dev *d, const struct op *op)
{
	struct answer a;

	errno = 0;
	a.r = op->write ? pwritev(d->fd, op->iov, op->niov, (off_t)op->off) :
			  preadv(d->fd, op->iov, op->niov, (off_t)op->off);
	a.err = a.r < 0 ? errno : 0;
	return a;
}

/*
 * The range around the request, read back with aligned memory: every block
 * that the request touched is old or new; new for certain up to must_new.
 */
static void old_or_new(const struct dev *d, const struct op *op,
		       const uint8_t *fresh, size_t must_new, uint8_t *buf)
{
	uint64_t from = op->off - op->off % lbs, pos;
	uint64_t to = op->off + op->len;
	size_t n;

	to += (lbs - to % lbs) % lbs;
	if (to > size)
		to = size;
	if (pread(d->fd, buf, to - from, (off_t)from) != (ssize_t)(to - from))
		fail(1, "%s: reading back after an unaligned request: %s", d->name,
		     strerror(errno));
	/* compare in units of 512: the smallest that a device may tear at */
	for (pos = from; pos < to; pos += 512) {
		const uint8_t *got = buf + (pos - from);
		bool old = !memcmp(got, model + pos, 512), new = false;

		if (op->write && pos >= op->off && pos + 512 <= op->off + op->len) {
			new = !memcmp(got, fresh + (pos - op->off), 512);
			if (pos + 512 <= op->off + must_new)
				old = false;
		}
		if (!old && !new) {
			n = 512;
			differ(d, pos, got, model + pos, n,
			       "a block after an unaligned request, neither old nor new,");
		}
	}
}

static void unaligned(unsigned long ops)
{
	/* what a block layer may be offered: lengths that add up to blocks */
	static const size_t cuts[][8] = {
		{ 512, 3584 }, { 1024, 3072 }, { 1000, 1000, 1000, 1096 },
		{ 4, 4092 }, { 508, 4, 3584 }, { 2048, 2048 }, { 1536, 2560, 4096 },
		{ 4095, 1 }, { 4096, 512, 512, 3072 }, { 256, 256, 3584 },
		{ 100, 8092 }, { 511, 3585 },
	};
	static const size_t offs[] = { 0, 1, 2, 4, 8, 16, 64, 128, 256, 504, 508,
		512, 1024, 2048, 3584, 4092, 4095 };
	size_t room = MIB;
	uint8_t *mem = arena(room, false), *fresh = arena(room, false);
	uint8_t *buf = arena(room, false);
	unsigned long refused = 0, accepted = 0, more = 0;

	if (ndevs != 2)
		fail(2, "unaligned needs REFERENCE and DEV");
	for (; done_ops < ops; done_ops++) {
		const size_t *cut = cuts[below(sizeof(cuts) / sizeof(cuts[0]))];
		struct op op = { .write = below(2), .mem = mem };
		size_t pos = offs[below(sizeof(offs) / sizeof(offs[0]))];
		int repeat = 1 + (int)below(3), i, d;
		struct answer a[2];

		while (repeat--)
			for (i = 0; i < 8 && cut[i]; i++) {
				op.iov[op.niov].iov_base = mem + pos;
				op.iov[op.niov].iov_len = cut[i];
				op.niov++;
				op.len += cut[i];
				pos += cut[i];
				if (below(3) == 0)
					pos += offs[below(sizeof(offs) / sizeof(offs[0]))];
			}
		op.span = pos;
		switch (below(6)) {
		case 0:		/* a length that is not whole blocks */
			op.iov[0].iov_len -= below(2) ? 1 : op.iov[0].iov_len / 2;
			op.len = 0;
			for (i = 0; i < op.niov; i++)
				op.len += op.iov[i].iov_len;
			/* fallthrough */
		default:
			op.off = lbs * below((size - 65536) / lbs);
			break;
		case 1:		/* a place that is not a block's */
			op.off = lbs * below((size - 65536) / lbs);
			op.off += below(2) ? 512 : 1 + below(511);
		}
		rnd_fill(fresh, op.len);
		for (d = 0; d < 2; d++) {
			memset(mem, CANARY, op.span);
			if (op.write)
				put(&op, fresh);
			a[d] = try(&devs[d], &op);
			if (op.write) {
				if (!holds(&op, fresh, op.len))
					fail(1, "%s: an unaligned write changed the caller's buffer",
					     devs[d].name);
			} else {
				if (a[d].r > 0 && !holds(&op, model + op.off, (size_t)a[d].r)) {
					gather(&op, buf);
					differ(&devs[d], op.off, buf, model + op.off,
					       (size_t)a[d].r, "an unaligned read");
				}
				check_canary(&devs[d], &op);
			}
			old_or_new(&devs[d], &op, fresh,
				   a[d].r > 0 ? (size_t)a[d].r : 0, buf);
		}
		if (a[0].r == (ssize_t)op.len) {
			accepted++;
			if (a[1].r != a[0].r)
				fail(1, "%s refuses (%zd, %s) a %s at %" PRIu64 " of %zu bytes in %d pieces that %s takes",
				     devs[1].name, a[1].r, strerror(a[1].err),
				     op.write ? "write" : "read", op.off, op.len,
				     op.niov, devs[0].name);
		} else {
			refused++;
			if (a[1].r == (ssize_t)op.len)
				more++;
			else if (a[1].r < 0 && a[1].err != EINVAL &&
				 (a[0].r >= 0 || a[1].err != a[0].err))
				fail(1, "%s: errno %s where %s has %s", devs[1].name,
				     strerror(a[1].err), devs[0].name,
				     strerror(a[0].err));
		}
		if (op.write) {		/* one content again on both */
			uint64_t from = op.off - op.off % lbs;
			size_t n = op.len + (op.off - from);

			n += (lbs - n % lbs) % lbs;
			rnd_fill(model + from, n);
			memcpy(buf, model + from, n);
			for (d = 0; d < 2; d++)
				if (pwrite(devs[d].fd, buf, n, (off_t)from) != (ssize_t)n)
					fail(1, "%s: aligned write: %s", devs[d].name,
					     strerror(errno));
		}
	}
	printf("diffio: seed %" PRIu64 ": %lu odd requests: %lu taken by both, %lu refused by %s (%lu of them taken by %s)\n",
	       seed, done_ops, accepted, refused, devs[0].name, more, devs[1].name);
}

/* ---- whole devices ------------------------------------------------------ */

static void fill(void)
{
	uint8_t *buf = arena(MIB, false);
	uint64_t off;
	int d;

	for (off = 0; off < size; off += MIB) {
		size_t n = size - off < MIB ? size - off : MIB;

		rnd_fill(buf, n);
		memcpy(model + off, buf, n);
		for (d = 0; d < ndevs; d++)
			if (pwrite(devs[d].fd, buf, n, (off_t)off) != (ssize_t)n)
				fail(1, "%s: write: %s", devs[d].name, strerror(errno));
	}
}

static void verify(void)
{
	uint8_t *buf = arena(MIB, false);
	uint64_t off;
	int d;

	for (d = 0; d < ndevs; d++)
		for (off = 0; off < size; off += MIB) {
			size_t n = size - off < MIB ? size - off : MIB;

			if (pread(devs[d].fd, buf, n, (off_t)off) != (ssize_t)n)
				fail(1, "%s: read: %s", devs[d].name, strerror(errno));
			if (memcmp(buf, model + off, n))
				differ(&devs[d], off, buf, model + off, n, "the content");
		}
}

static void same(void)
{
	uint8_t *a = arena(MIB, false), *b = arena(MIB, false);
	bool written = false;
	uint64_t off;

	if (ndevs != 2 || devs[0].size != devs[1].size)
		fail(2, "same needs two devices of one size");
	for (off = 0; off < size; off += MIB) {
		size_t n = size - off < MIB ? size - off : MIB;

		if (pread(devs[0].fd, a, n, (off_t)off) != (ssize_t)n ||
		    pread(devs[1].fd, b, n, (off_t)off) != (ssize_t)n)
			fail(1, "read: %s", strerror(errno));
		if (memcmp(a, b, n))
			differ(&devs[1], off, b, a, n, "the store");
		written = written || a[0] || memcmp(a, a + 1, n - 1);
	}
	/* two empty stores are equal and prove nothing */
	if (!written)
		fail(2, "both stores are all zero: nothing was written");
}

/* put and is: in requests of at most 1 MiB */
static void file_range(bool write, const char *where, const char *path, const char *bytes)
{
	uint8_t *buf = arena(MIB, false), *want = arena(MIB, false);
	uint64_t off = strtoull(where, NULL, 0), left;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		fail(2, "%s: %s", path, strerror(errno));
	left = bytes ? strtoull(bytes, NULL, 0) : (uint64_t)st.st_size;
	if (!left)
		fail(2, "%s: no bytes", path);
	while (left) {
		size_t n = left < MIB ? left : MIB;
		ssize_t r;

		if (read(fd, want, n) != (ssize_t)n)
			fail(2, "%s: too short", path);
		r = write ? pwrite(devs[0].fd, want, n, (off_t)off) :
			    pread(devs[0].fd, buf, n, (off_t)off);
		if (r != (ssize_t)n)
			fail(1, "%s: %s at %" PRIu64 " of %zu bytes: %s", devs[0].name,
			     write ? "write" : "read", off, n, r < 0 ? strerror(errno) : "short");
		if (!write && memcmp(buf, want, n))
			differ(&devs[0], off, buf, want, n, "the content");
		off += n;
		left -= n;
	}
	close(fd);
}

static void flip(const char *where)
{
	uint64_t off = strtoull(where, NULL, 0);
	uint8_t *buf = arena(MIB, false);
	uint64_t from = off - off % lbs;

	if (pread(devs[0].fd, buf, lbs, (off_t)from) != (ssize_t)lbs)
		fail(2, "%s: %s", devs[0].name, strerror(errno));
	buf[off - from] ^= 1;
	if (pwrite(devs[0].fd, buf, lbs, (off_t)from) != (ssize_t)lbs)
		fail(2, "%s: %s", devs[0].name, strerror(errno));
}

int main(int argc, char **argv)
{
	const char *model_path = NULL, *cmd = argc > 1 ? argv[1] : "";
	unsigned long ops = 200;
	size_t max = 4 * MIB;
	int depth = 1, c;
	bool readonly = !strcmp(cmd, "verify") || !strcmp(cmd, "same") || !strcmp(cmd, "is");

	seed = (uint64_t)time(NULL);
	optind = 2;
	while ((c = getopt(argc, argv, "s:n:b:q:m:")) != -1) {
		switch (c) {
		case 's':
			seed = strtoull(optarg, NULL, 0);
			break;
		case 'n':
			ops = strtoul(optarg, NULL, 0);
			break;
		case 'b':
			max = strtoul(optarg, NULL, 0);
			break;
		case 'q':
			depth = atoi(optarg);
			break;
		case 'm':
			model_path = optarg;
			break;
		default:
			return 2;
		}
	}
	rnd_state = seed * 0x9e3779b97f4a7c15ull | 1;
	if (depth < 1 || depth > MAX_DEPTH)
		fail(2, "depth is 1 to %d", MAX_DEPTH);
	if (!strcmp(cmd, "flip")) {
		if (argc - optind != 2)
			fail(2, "flip DEV OFFSET");
		open_dev(argv[optind], O_RDWR);
		flip(argv[optind + 1]);
		return 0;
	}
	if (!strcmp(cmd, "put") || !strcmp(cmd, "is")) {
		if (argc - optind != 3 && argc - optind != 4)
			fail(2, "%s DEV OFFSET FILE [BYTES]", cmd);
		open_dev(argv[optind], readonly ? O_RDONLY : O_RDWR);
		file_range(!readonly, argv[optind + 1], argv[optind + 2], argv[optind + 3]);
		return 0;
	}
	for (; optind < argc; optind++)
		open_dev(argv[optind], readonly ? O_RDONLY : O_RDWR);
	if (!ndevs)
		fail(2, "no devices");
	if (!strcmp(cmd, "same")) {
		same();
		return 0;
	}
	open_model(model_path);
	if (!strcmp(cmd, "fill"))
		fill();
	else if (!strcmp(cmd, "run"))
		run(ops, max, depth);
	else if (!strcmp(cmd, "unaligned"))
		unaligned(ops);
	else if (!strcmp(cmd, "verify"))
		verify();
	else
		fail(2, "fill, run, unaligned, verify, same, flip, put or is");
	return 0;
}
