// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Load tables through the device-mapper ioctls and tell what the kernel said.
 *
 *   dmtable TARGET MODULE STORE < CASES
 *
 * A case is NAME<tab>START<tab>LENGTH<tab>PARAMETERS on one line; @STORE@ in the
 * parameters becomes STORE's major:minor. Each table is loaded as the inactive one
 * of an empty device, and cleared; one line comes out:
 *
 *   NAME<tab>accepted|ERRNO<tab>the kernel's words<tab>clean|what was left behind
 *
 * Left behind is: an inactive table, MODULE's reference count not what it was,
 * STORE not to be opened exclusively. One process and one device do for all cases,
 * since starting dmsetup 300 times is slow in an emulated guest.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/dm-ioctl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define DEVICE "coffer-table-case"

static int control, kmsg;

static void die(const char *what)
{
	fprintf(stderr, "dmtable: %s: %s\n", what, strerror(errno));
	exit(2);
}

/* Returns an errno; flags, if asked for, are what the kernel says of the device. */
static int dm_ioctl(unsigned long cmd, const char *target, uint64_t start,
		    uint64_t len, const char *params, uint32_t *flags)
{
	size_t n = sizeof(struct dm_ioctl) + sizeof(struct dm_target_spec) +
		   (params ? strlen(params) : 0) + 16;
	struct dm_ioctl *io = calloc(1, n < 16384 ? 16384 : n);
	int r;

	if (!io)
		die("no memory");
	io->version[0] = DM_VERSION_MAJOR;
	io->data_size = (uint32_t)(n < 16384 ? 16384 : n);
	io->data_start = sizeof(*io);
	strcpy(io->name, DEVICE);
	if (params) {
		struct dm_target_spec *t = (struct dm_target_spec *)(io + 1);

		io->target_count = 1;
		t->sector_start = start;
		t->length = len;
		t->next = (uint32_t)(sizeof(*t) + strlen(params) + 1 + 7) & ~7u;
		snprintf(t->target_type, sizeof(t->target_type), "%s", target);
		strcpy((char *)(t + 1), params);
	}
	r = ioctl(control, cmd, io) ? errno : 0;
	if (flags)
		*flags = io->flags;
	free(io);
	return r;
}

static long refcount(const char *module)
{
	char path[128];
	long v = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/module/%s/refcnt", module);
	f = fopen(path, "r");
	if (!f || fscanf(f, "%ld", &v) != 1)
		die(path);
	fclose(f);
	return v;
}

/* The kernel's lines about device-mapper since the last call, joined by "; ". */
static void kernel_words(char *out, size_t max)
{
	char rec[8192];
	ssize_t n;

	out[0] = 0;
	for (;;) {
		char *text, *end;

		n = read(kmsg, rec, sizeof(rec) - 1);
		if (n < 0 && errno == EPIPE)
			continue;	/* the ring overwrote some: go on */
		if (n <= 0)
			break;
		rec[n] = 0;
		text = strchr(rec, ';');
		if (!text)
			continue;
		text++;
		end = strchr(text, '\n');
		if (end)
			*end = 0;
		if (!strstr(text, "device-mapper") && !strstr(text, "coffer"))
			continue;
		for (end = text; *end; end++)
			if (*end == '\t')
				*end = ' ';
		if (out[0] && strlen(out) + 3 < max)
			strcat(out, "; ");
		strncat(out, text, max - strlen(out) - 1);
	}
	if (!out[0])
		strcpy(out, "-");
}

static const char *errno_name(int e)
{
	const char *s = strerrorname_np(e);

	return s ? s : "?";
}

int main(int argc, char **argv)
{
	char *line = NULL, store_no[32], *words = malloc(16384);
	size_t cap = 0;
	uint32_t flags = 0;
	struct stat st;
	long rest;
	int cases = 0;

	if (argc != 4) {
		fprintf(stderr, "usage: dmtable TARGET MODULE STORE < CASES\n");
		return 2;
	}
	control = open("/dev/mapper/control", O_RDWR | O_CLOEXEC);
	if (control < 0)
		die("/dev/mapper/control");
	kmsg = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (kmsg < 0 || lseek(kmsg, 0, SEEK_END) < 0)
		die("/dev/kmsg");
	if (stat(argv[3], &st) || !S_ISBLK(st.st_mode) || !words)
		die(argv[3]);
	snprintf(store_no, sizeof(store_no), "%u:%u", major(st.st_rdev),
		 minor(st.st_rdev));
	rest = refcount(argv[2]);
	errno = dm_ioctl(DM_DEV_CREATE, NULL, 0, 0, NULL, NULL);
	if (errno)
		die("cannot create a device");

	while (getline(&line, &cap, stdin) > 0) {
		char *field[4], *p = line, *params, *at, left[128] = "";
		int i, err, fd;

		line[strcspn(line, "\n")] = 0;
		if (!line[0])
			continue;
		for (i = 0; i < 4; i++)
			field[i] = strsep(&p, "\t");
		if (!field[3]) {
			fprintf(stderr, "dmtable: not a case: %s\n", line);
			return 2;
		}
		params = malloc(strlen(field[3]) + sizeof(store_no) + 1);
		if (!params)
			die("no memory");
		at = strstr(field[3], "@STORE@");
		if (at)
			sprintf(params, "%.*s%s%s", (int)(at - field[3]), field[3],
				store_no, at + strlen("@STORE@"));
		else
			strcpy(params, field[3]);

		kernel_words(words, 16384);
		err = dm_ioctl(DM_TABLE_LOAD, argv[1], strtoull(field[1], NULL, 0),
			       strtoull(field[2], NULL, 0), params, NULL);
		kernel_words(words, 16384);
		if (!err && dm_ioctl(DM_TABLE_CLEAR, NULL, 0, 0, NULL, NULL))
			strcat(left, " uncleared");
		if (dm_ioctl(DM_DEV_STATUS, NULL, 0, 0, NULL, &flags) ||
		    (flags & (DM_INACTIVE_PRESENT_FLAG | DM_ACTIVE_PRESENT_FLAG)))
			strcat(left, " table");
		if (refcount(argv[2]) != rest)
			strcat(left, " reference");
		fd = open(argv[3], O_RDWR | O_EXCL | O_CLOEXEC);
		if (fd < 0)
			strcat(left, " store-held");
		else
			close(fd);
		printf("%s\t%s\t%s\t%s\n", field[0], err ? errno_name(err) : "accepted",
		       words, left[0] ? left + 1 : "clean");
		free(params);
		cases++;
	}
	errno = dm_ioctl(DM_DEV_REMOVE, NULL, 0, 0, NULL, NULL);
	if (errno)
		die("cannot remove the device");
	free(line);
	free(words);
	return cases ? 0 : 2;
}
