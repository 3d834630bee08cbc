// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Several processes that do to one mapping, at random and at once, whatever
 * device-mapper's ioctls can do to it:
 *
 *   dmrace [-t SECONDS] [-s SEED] [-p PROCESSES] [-r] -k KEY NAME SECTORS TABLE...
 *
 * TABLE is "TARGET PARAMETERS"; all of them must put the same data on the disk.
 * Without -r the mapping NAME exists and stays: it is suspended (with and without
 * flushing and freezing), resumed, reloaded, cleared, asked, its key is wiped and set,
 * its node opened, read and closed. With -r it is created and removed as well, at once
 * and deferred, and written to. In the end it is resumed with its key, or removed.
 *
 * Each ioctl may succeed or fail with an errno that is right in some order of events.
 * Exit status: 0; 1 if there was another errno, an I/O error, KEY in a table's text, or
 * an operation that never once succeeded, for which there are another 11 * SECONDS if
 * need be; 2 cannot test.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/dm-ioctl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "rnd.h"

#define BUFFER		16384
#define MAX_PROCESSES	16

enum op {
	SUSPEND, SUSPEND_NOFLUSH, SUSPEND_NOLOCKFS, RESUME, LOAD, CLEAR, KEY_WIPE, KEY_SET,
	KEY_WRONG, STATUS, TABLE, INACTIVE, DEPS, INFO, LIST, OPEN, CREATE, REMOVE, DEFER, OPS
};

/* What an operation may answer besides success, up to three errnos. */
static const struct {
	const char *name;
	int may[3];
	bool removing;		/* only with -r */
	bool never;		/* must not succeed */
} ops[OPS] = {
	/* EINVAL: somebody else was faster, or there is no table */
	[SUSPEND] = { "suspend", { ENXIO, EINVAL } },
	[SUSPEND_NOFLUSH] = { "suspend-noflush", { ENXIO, EINVAL } },
	[SUSPEND_NOLOCKFS] = { "suspend-nolockfs", { ENXIO, EINVAL } },
	/* EAGAIN: no key is set */
	[RESUME] = { "resume", { ENXIO, EINVAL, EAGAIN } },
	[LOAD] = { "load", { ENXIO } },
	[CLEAR] = { "clear", { ENXIO } },
	/* EINVAL: not suspended, or no table */
	[KEY_WIPE] = { "key-wipe", { ENXIO, EINVAL } },
	[KEY_SET] = { "key-set", { ENXIO, EINVAL } },
	[KEY_WRONG] = { "key-wrong", { ENXIO, EINVAL }, false, true },
	[STATUS] = { "status", { ENXIO } },
	[TABLE] = { "table", { ENXIO } },
	[INACTIVE] = { "inactive", { ENXIO } },
	[DEPS] = { "deps", { ENXIO } },
	[INFO] = { "info", { ENXIO } },
	[LIST] = { "list", { 0 } },
	/* opening races with removal; nodes come and go with the device */
	[OPEN] = { "open", { ENXIO, ENOENT, ENODEV } },
	[CREATE] = { "create", { EBUSY }, true },
	[REMOVE] = { "remove", { ENXIO, EBUSY }, true },
	[DEFER] = { "remove-deferred", { ENXIO }, true },
};

static struct tally {
	unsigned long done[OPS], refused[OPS];
	int wrong;		/* the first errno that is not right, and 1000 * its operation */
	bool shown;		/* the key was */
} *tally;			/* shared by the processes */

static const char *name, *key;
static char **tables;
static unsigned int nr_tables;
static uint64_t sectors;
static bool removing;

static int control;
static struct dm_ioctl *io;

static void die(const char *what)
{
	fprintf(stderr, "dmrace: %s: %s\n", what, strerror(errno));
	exit(2);
}

/*
 * Numbers below n in random order, each once before one comes again: few operations fit in a
 * short race, and none is to be missing. Each process has decks of its own.
 */
struct deck {
	unsigned int cards[16], left;
};

static unsigned int draw(struct deck *deck, unsigned int n)
{
	unsigned int i, at, card;

	if (!deck->left) {
		for (i = 0; i < n; i++)
			deck->cards[i] = i;
		deck->left = n;
	}
	at = (unsigned int)below(deck->left--);
	card = deck->cards[at];
	deck->cards[at] = deck->cards[deck->left];
	return card;
}

static void nap(unsigned int us)
{
	struct timespec t = { us / 1000000, us % 1000000 * 1000L };

	nanosleep(&t, NULL);
}

static void prepare(uint32_t flags)
{
	memset(io, 0, BUFFER);
	io->version[0] = DM_VERSION_MAJOR;
	io->data_size = BUFFER;
	io->data_start = sizeof(*io);
	io->flags = flags;
	strncpy(io->name, name, sizeof(io->name) - 1);
}

static int call(unsigned long cmd)
{
	int ret;

	do
		ret = ioctl(control, cmd, io);
	while (ret < 0 && errno == EINTR);
	/* more than 0 comes from a message to a device that has no table */
	return ret < 0 ? errno : ret > 0 ? EINVAL : 0;
}

static int load(const char *table)
{
	struct dm_target_spec *spec = (struct dm_target_spec *)(io + 1);
	const char *params = strchr(table, ' ');

	prepare(DM_SECURE_DATA_FLAG);
	io->target_count = 1;
	spec->length = sectors;
	memcpy(spec->target_type, table, (size_t)(params - table));
	strcpy((char *)(spec + 1), params + 1);
	return call(DM_TABLE_LOAD);
}

static int message(const char *text, const char *more)
{
	struct dm_target_msg *msg = (struct dm_target_msg *)(io + 1);

	prepare(DM_SECURE_DATA_FLAG);
	snprintf(msg->message, BUFFER - sizeof(*io) - sizeof(*msg), "%s%s", text, more);
	return call(DM_TARGET_MSG);
}

static int table_text(uint32_t flags)
{
	int err;

	prepare(flags);
	err = call(DM_TABLE_STATUS);
	if (!err && memmem(io, BUFFER, key, strlen(key)))
		tally->shown = true;
	return err;
}

static int transfer(int fd, void *buffer, size_t len, off_t at, bool write)
{
	ssize_t n = write ? pwrite(fd, buffer, len, at) : pread(fd, buffer, len, at);

	/* a device without a table has no size: ENOSPC, or nothing read */
	return n < 0 && errno != ENOSPC ? errno : 0;
}

/* A read, and with -r a write, through the node. */
static int use_node(void)
{
	static char *buffer;
	char path[64];
	int err, fd, tries;

	if (!buffer && posix_memalign((void **)&buffer, 4096, 65536))
		die("memory");
	prepare(0);
	err = call(DM_DEV_STATUS);
	if (err)
		return err;
	snprintf(path, sizeof(path), "/dev/dm-%u", minor(io->dev));
	fd = open(path, (removing ? O_RDWR : O_RDONLY) | O_DIRECT | O_CLOEXEC);
	if (fd < 0)
		return errno;
	if (below(4))		/* else only open and close */
		do {
			size_t len = below(2) ? 4096 : 65536;
			off_t at = (off_t)(4096 * below(16));
			bool write = removing && below(2);

			err = transfer(fd, buffer, len, at, write);
			/*
			 * device-mapper gives a new device its size before its table, and
			 * an error to who comes in between.
			 */
			for (tries = 0; removing && err == EIO && tries < 100; tries++) {
				nap(10000);
				err = transfer(fd, buffer, len, at, write);
			}
		} while (!err && below(4));
	/* an I/O error, whatever it is called, is never right */
	if (err == ENXIO || err == ENOENT || err == ENODEV)
		err = EIO;
	close(fd);
	return err;
}

static int act(enum op op)
{
	switch (op) {
	case SUSPEND:
		prepare(DM_SUSPEND_FLAG);
		return call(DM_DEV_SUSPEND);
	case SUSPEND_NOFLUSH:
		prepare(DM_SUSPEND_FLAG | DM_NOFLUSH_FLAG);
		return call(DM_DEV_SUSPEND);
	case SUSPEND_NOLOCKFS:
		prepare(DM_SUSPEND_FLAG | DM_SKIP_LOCKFS_FLAG);
		return call(DM_DEV_SUSPEND);
	case RESUME:
		prepare(0);
		return call(DM_DEV_SUSPEND);
	case LOAD:
		return load(tables[below(nr_tables)]);
	case CLEAR:
		prepare(0);
		return call(DM_TABLE_CLEAR);
	case KEY_WIPE:
		return message("key wipe", "");
	case KEY_SET:
		return message("key set ", key);
	case KEY_WRONG:
		return message("key set ", key + 2);
	case STATUS:
		return table_text(0);
	case TABLE:
		return table_text(DM_STATUS_TABLE_FLAG);
	case INACTIVE:
		return table_text(DM_STATUS_TABLE_FLAG | DM_QUERY_INACTIVE_TABLE_FLAG);
	case DEPS:
		prepare(0);
		return call(DM_TABLE_DEPS);
	case INFO:
		prepare(0);
		return call(DM_DEV_STATUS);
	case LIST:
		prepare(0);
		io->name[0] = 0;
		return call(DM_LIST_DEVICES);
	case OPEN:
		return use_node();
	case CREATE:
		prepare(0);
		return call(DM_DEV_CREATE);
	case REMOVE:
		prepare(0);
		return call(DM_DEV_REMOVE);
	case DEFER:
		prepare(DM_DEFERRED_REMOVE);
		return call(DM_DEV_REMOVE);
	default:
		return EINVAL;
	}
}

/* Does it and keeps the books. */
static int try(enum op op)
{
	int err = act(op), right = 0;
	unsigned int i;

	if (!err && !ops[op].never) {
		__atomic_add_fetch(&tally->done[op], 1, __ATOMIC_RELAXED);
		return 0;
	}
	for (i = 0; i < 3; i++)
		if (err && ops[op].may[i] == err) {
			__atomic_add_fetch(ops[op].never ? &tally->done[op] : &tally->refused[op],
					   1, __ATOMIC_RELAXED);
			/* each refusal of a key is a line in the kernel's log */
			if (err == EAGAIN || (op >= KEY_WIPE && op <= KEY_WRONG && err == EINVAL))
				nap(5000);
			return err;
		}
	__atomic_compare_exchange_n(&tally->wrong, &right, 1000 * (int)op + (err ? err : 999),
				    false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	return err;
}

static void whole_suspension(void)
{
	if (try(SUSPEND + below(3)))
		return;
	if (below(3) == 0)
		try(KEY_WIPE);
	if (below(2))
		nap((unsigned int)below(2000));
	if (below(3) == 0)
		try(LOAD);
	if (below(4))
		try(KEY_SET);
	if (below(8))
		try(RESUME);
}

/* One that sees to it that I/O goes on. */
static void keeper(void)
{
	if (try(RESUME)) {
		try(KEY_SET);
		try(RESUME);
	}
	nap(2000);
}

/* One that comes and goes, and leaves the others some time. */
static void visitor(void)
{
	nap(try(OPEN) ? 2000 : (unsigned int)below(1000));
}

static void anybody(void)
{
	static const enum op harmless[] = { STATUS, TABLE, INACTIVE, DEPS, INFO, LIST };
	static struct deck kinds, suspensions, keys, harmlesses;

	switch (draw(&kinds, removing ? 16 : 12)) {
	case 0: case 1: case 2:
		whole_suspension();
		break;
	case 3:
		try(SUSPEND + draw(&suspensions, 3));
		break;
	case 4: case 5:
		try(RESUME);
		break;
	case 6:
		try(LOAD);
		break;
	case 7:
		try(CLEAR);
		break;
	case 8:
		try(KEY_WIPE + draw(&keys, 3));
		break;
	default:
		try(harmless[draw(&harmlesses, 6)]);
		break;
	case 12: case 13:
		if (!try(CREATE) && !try(LOAD) && below(8))
			try(RESUME);
		break;
	case 14:
		try(REMOVE);
		break;
	case 15:
		try(DEFER);
		break;
	}
	if (below(4) == 0)
		nap((unsigned int)below(1000));
}

/* Has every operation succeeded? */
static bool complete(void)
{
	unsigned int i;

	for (i = 0; i < OPS; i++)
		if (!__atomic_load_n(&tally->done[i], __ATOMIC_RELAXED) && (removing || !ops[i].removing))
			return false;
	return true;
}

/* Is it time to end? */
static bool over(time_t start, unsigned int seconds)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return tally->wrong || now.tv_sec >= start + 12 * (time_t)seconds ||
	       (now.tv_sec >= start + (time_t)seconds && complete());
}

static void child(unsigned int number, time_t start, unsigned int seconds)
{
	control = open("/dev/mapper/control", O_RDWR | O_CLOEXEC);
	if (control < 0)
		die("/dev/mapper/control");
	do {
		if (number == 0)
			keeper();
		else if (number == 1)
			visitor();
		else
			anybody();
	} while (!over(start, seconds));
	exit(0);
}

/* Back to a state that others can use; what blocks a child is undone here too. */
static void settle(void)
{
	int tries;

	if (!removing) {
		if (act(RESUME)) {
			act(KEY_SET);
			act(RESUME);
		}
		return;
	}
	for (tries = 0; tries < 1000 && act(REMOVE) != ENXIO; tries++) {
		act(KEY_SET);
		act(RESUME);
		nap(10000);
	}
	if (tries == 1000) {
		fprintf(stderr, "dmrace: %s cannot be removed\n", name);
		exit(1);
	}
}

int main(int argc, char **argv)
{
	unsigned int processes = 4, seconds = 10, i;
	uint64_t seed = 1;
	struct timespec now;
	int opt, status, bad = 0;
	time_t start;

	while ((opt = getopt(argc, argv, "t:s:p:rk:")) != -1)
		switch (opt) {
		case 't':
			seconds = (unsigned int)atoi(optarg);
			break;
		case 's':
			seed = strtoull(optarg, NULL, 0);
			break;
		case 'p':
			processes = (unsigned int)atoi(optarg);
			break;
		case 'r':
			removing = true;
			break;
		case 'k':
			key = optarg;
			break;
		default:
			return 2;
		}
	if (argc - optind < 3 || !key || strlen(key) < 64 || processes < 3 ||
	    processes > MAX_PROCESSES) {
		fprintf(stderr, "usage: dmrace [-t SECONDS] [-s SEED] [-p PROCESSES] [-r] -k KEY NAME SECTORS TABLE...\n");
		return 2;
	}
	name = argv[optind];
	sectors = strtoull(argv[optind + 1], NULL, 0);
	tables = argv + optind + 2;
	nr_tables = (unsigned int)(argc - optind - 2);

	tally = mmap(NULL, sizeof(*tally), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	io = aligned_alloc(4096, BUFFER);
	control = open("/dev/mapper/control", O_RDWR | O_CLOEXEC);
	if (tally == MAP_FAILED || !io || control < 0)
		die("start");

	clock_gettime(CLOCK_MONOTONIC, &now);
	start = now.tv_sec;
	for (i = 0; i < processes; i++) {
		pid_t pid = fork();

		if (pid < 0)
			die("fork");
		rnd_state = (seed * 64 + i + 1) * 0x9e3779b97f4a7c15ull;
		if (!pid)
			child(i, start, seconds);
	}
	/* one of them may wait for I/O on a mapping that the others left suspended */
	for (i = 0; i < processes;) {
		if (waitpid(-1, &status, WNOHANG) > 0) {
			bad |= status != 0;
			i++;
			continue;
		}
		nap(10000);
		if (over(start, seconds)) {
			act(KEY_SET);
			act(RESUME);
		}
	}
	settle();

	printf("dmrace: seed %" PRIu64 ":", seed);
	for (i = 0; i < OPS; i++) {
		if (ops[i].removing && !removing)
			continue;
		printf(" %s %lu+%lu", ops[i].name, tally->done[i], tally->refused[i]);
	}
	printf("\n");
	if (bad)
		printf("dmrace: a process died\n");
	if (!complete()) {
		printf("dmrace: an operation never succeeded\n");
		bad = 1;
	}
	if (tally->wrong) {
		printf("dmrace: %s: %s\n", ops[tally->wrong / 1000].name, tally->wrong % 1000 == 999 ?
		       "succeeded and must not" : strerror(tally->wrong % 1000));
		bad = 1;
	}
	if (tally->shown) {
		printf("dmrace: the key was shown\n");
		bad = 1;
	}
	return bad;
}
