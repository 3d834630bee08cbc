// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * coffer bench: how fast is an encrypted disk on this machine, with either driver.
 *
 * What is measured is what a volume does: direct I/O to a mapping, on a disk in memory so
 * that no real one hides the difference. Each figure is the best of several rounds, and the
 * rounds of all configurations alternate, so that whatever else the machine does hits them
 * alike. Mappings, disk and modules that were not there before are gone afterwards, after
 * Ctrl-C as well.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "commands.h"
#include "driver.h"
#include "error.h"
#include "mapping.h"
#include "ramdisk.h"
#include "ui.h"

#define DISK_BYTES (32 * MIB)
#define ROUNDS 5
#define ROUND_SECONDS 0.05

static const struct job {
	const char *name;
	size_t block;
	bool write;
} jobs[] = {
	{ "4K read", 4 * KIB, false },
	{ "4K write", 4 * KIB, true },
	{ "128K read", 128 * KIB, false },
	{ "128K write", 128 * KIB, true },
};

/* One row of the table. */
struct row {
	const char *label;
	const char *target;	/* NULL: the RAM disk itself */
	unsigned int unit;	/* bytes */
	bool no_workqueues;
	char *name;		/* of the mapping; NULL if it is not there */
	int fd;
	double seconds[ARRAY_SIZE(jobs)];	/* for one block: the best round's */
};

static volatile sig_atomic_t stopped;

static void stop(int sig)
{
	stopped = sig;
}

static void catch_signals(bool on)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
	const struct sigaction action = { .sa_handler = on ? stop : SIG_DFL };

	for (unsigned int i = 0; i < ARRAY_SIZE(signals); i++)
		sigaction(signals[i], &action, NULL);
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

/* ---- what is measured ----------------------------------------------------------------- */

static int make_mapping(struct row *row, const struct ramdisk *disk, unsigned int number)
{
	struct mapping map = {
		.target = (char *)row->target, .size = DISK_BYTES / SECTOR,
		.cipher = "aes-xts-plain64", .key_bytes = 64, .lower = disk->device.devno,
	};
	struct secret *key = NULL;
	char *path;
	int ret;

	ret = secret_random(&key, 64);
	if (ret)
		return ret;
	map.name = xasprintf("coffer-bench-%d-%u", getpid(), number);
	/* udev leaves those alone */
	map.uuid = xasprintf("CRYPT-TEMP-%s", map.name);
	if (row->unit != SECTOR)
		strings_add(&map.options, xasprintf("sector_size:%u", row->unit));
	if (row->no_workqueues) {
		strings_add(&map.options, xstrdup("no_read_workqueue"));
		strings_add(&map.options, xstrdup("no_write_workqueue"));
	}
	ret = mapping_create(&map, key);
	secret_free(key);
	if (!ret)
		row->name = xstrdup(map.name);
	path = xasprintf("/dev/mapper/%s", map.name);
	if (!ret) {
		row->fd = open(path, O_RDWR | O_DIRECT | O_CLOEXEC);
		if (row->fd < 0)
			ret = fail(E_IO, NULL, "cannot open %s: %s", path, strerror(errno));
	}
	free(path);
	free(map.name);
	free(map.uuid);
	strings_free(&map.options);
	return ret;
}

static int measure(struct row *row, unsigned int number, char *buffer)
{
	const struct job *job = &jobs[number];
	unsigned long blocks = 0;
	double began = now(), took = 0;
	off_t at = 0;

	do {
		ssize_t done = job->write ? pwrite(row->fd, buffer, job->block, at) :
			       pread(row->fd, buffer, job->block, at);

		if (done < 0 && errno == EINTR)
			continue;
		if (done != (ssize_t)job->block)
			return fail(E_IO, NULL, "cannot measure %s: %s", row->label,
				    done < 0 ? strerror(errno) : "short I/O");
		at = (at + job->block) % DISK_BYTES;
		blocks++;
		took = now() - began;
	} while (took < ROUND_SECONDS && !stopped);
	if (blocks && (!row->seconds[number] || took / blocks < row->seconds[number]))
		row->seconds[number] = took / blocks;
	return 0;
}

/* The memory of a RAM disk is allocated as it is written: not while the clock runs. */
static int warm_up(struct row *row, char *buffer, size_t size)
{
	for (off_t at = 0; at < (off_t)DISK_BYTES && !stopped; at += size)
		if (pwrite(row->fd, buffer, size, at) != (ssize_t)size)
			return fail(E_IO, NULL, "cannot write to the RAM disk: %s", strerror(errno));
	return 0;
}

static int run_rounds(struct row *rows, unsigned int nr)
{
	const size_t size = jobs[ARRAY_SIZE(jobs) - 1].block;
	struct progress progress;
	struct secret *noise = NULL;
	unsigned int step = 0;
	char *buffer;
	int ret;

	if (posix_memalign((void **)&buffer, 4096, size))
		return fail(E_MEMORY, NULL, "cannot measure: out of memory");
	ret = secret_random(&noise, size);
	if (ret)
		goto out;
	memcpy(buffer, noise->data, size);
	secret_free(noise);
	progress_steps(&progress, "Measuring", ROUNDS * ARRAY_SIZE(jobs) * nr);
	ret = warm_up(&rows[0], buffer, size);
	for (unsigned int round = 0; round < ROUNDS && !ret; round++)
		for (unsigned int job = 0; job < ARRAY_SIZE(jobs) && !ret; job++)
			for (unsigned int i = 0; i < nr && !ret; i++) {
				ret = measure(&rows[i], job, buffer);
				if (!ret && stopped)
					ret = fail(E_INTERRUPTED, NULL, "stopped before the end");
				if (!ret)
					progress_update(&progress, ++step);
			}
	progress_end(&progress);
out:
	free(buffer);
	return ret;
}

/* ---- what is shown ----------------------------------------------------------------------- */

static void show(const struct row *rows, unsigned int nr, const struct ramdisk *disk,
		 const char *cipher_driver)
{
	struct json_object *array = json_object_new_array(), *entry;
	char line[160];
	int at;

	put_str(ui_result(), "disk", disk->kind);
	put_str(ui_result(), "cipher_driver", cipher_driver);
	json_object_object_add(ui_result(), "results", array);
	at = snprintf(line, sizeof(line), "%-32s", "MiB/s");
	for (unsigned int j = 0; j < ARRAY_SIZE(jobs); j++)
		at += snprintf(line + at, sizeof(line) - at, " %10s", jobs[j].name);
	say("%s", line);
	for (unsigned int i = 0; i < nr; i++) {
		at = snprintf(line, sizeof(line), "%-32s", rows[i].label);
		for (unsigned int j = 0; j < ARRAY_SIZE(jobs); j++) {
			double rate = jobs[j].block / rows[i].seconds[j];

			at += snprintf(line + at, sizeof(line) - at, " %10.0f", rate / MIB);
			entry = json_object_new_object();
			put_str(entry, "driver", !rows[i].target ? "none" :
				strcmp(rows[i].target, TARGET_COFFER) ? "dm-crypt" : "coffer");
			put_num(entry, "data_unit", rows[i].unit);
			put_bool(entry, "no_workqueues", rows[i].no_workqueues);
			put_str(entry, "operation", jobs[j].write ? "write" : "read");
			put_num(entry, "block", jobs[j].block);
			put_num(entry, "bytes_per_second", rate);
			put_num(entry, "nanoseconds", rows[i].seconds[j] * 1e9);
			json_object_array_add(array, entry);
		}
		say("%s", line);
	}
	say("\nWhat encryption adds to one 4K block, in microseconds:");
	for (unsigned int i = 1; i < nr; i++)
		say("%-32s %6.1f to a read, %6.1f to a write", rows[i].label,
		    (rows[i].seconds[0] - rows[0].seconds[0]) * 1e6,
		    (rows[i].seconds[1] - rows[0].seconds[1]) * 1e6);
	say("\nOne request at a time, direct I/O, on a RAM disk (%s); best of %u rounds of %u ms.", disk->kind,
	    ROUNDS, (unsigned int)(ROUND_SECONDS * 1000));
	if (cipher_driver)
		say("Cipher: AES-256-XTS, %s.", cipher_driver);
}

/* The first word of our status line */
static char *cipher_driver_of(const struct row *rows, unsigned int nr)
{
	struct mapping map;
	char *word = NULL;

	for (unsigned int i = 0; i < nr && !word; i++) {
		if (!rows[i].name || strcmp(rows[i].target, TARGET_COFFER) ||
		    !mapping_find(rows[i].name, &map))
			continue;
		word = xasprintf("%.*s", (int)strcspn(map.info, " "), map.info);
		mapping_free(&map);
	}
	return word;
}

/* ---- modules ----------------------------------------------------------------------------- */

/* Both drivers if they can be had; dm-crypt first, or its name would be taken over. */
static int load(struct drivers *before, struct drivers *d)
{
	module_load("dm-mod", NULL, NULL);
	drivers_get(before);
	if (!before->crypt_target)
		module_load("dm-crypt", NULL, NULL);
	if (!before->coffer_loaded && before->coffer_loadable)
		module_load("dm-coffer", NULL, NULL);
	drivers_get(d);
	if (!d->coffer_loaded && !d->crypt_target)
		return fail(E_MODULE, "coffer doctor says more",
			    "cannot measure: this kernel has neither dm-coffer nor dm-crypt");
	if (!d->coffer_loaded)
		note("dm-coffer cannot be loaded on this kernel: only dm-crypt is measured");
	else if (d->takeover)
		note("dm-coffer has taken over the name of dm-crypt: only dm-coffer is measured");
	else if (!d->crypt_target)
		note("dm-crypt cannot be loaded on this kernel: only dm-coffer is measured");
	return 0;
}

static void unload(const struct drivers *before)
{
	if (!before->coffer_loaded)
		module_unload("dm_coffer");
	if (!before->dm_crypt_loaded && !before->dm_crypt_builtin)
		module_unload("dm_crypt");
}

int cmd_bench(const struct args *args)
{
	static const struct row all[] = {
		{ "no encryption", NULL, 512, false, NULL, -1, { 0 } },
		{ "coffer, 4096 bytes", TARGET_COFFER, 4096, false, NULL, -1, { 0 } },
		{ "dm-crypt, 4096", TARGET_CRYPT, 4096, false, NULL, -1, { 0 } },
		{ "dm-crypt, 4096, no workqueues", TARGET_CRYPT, 4096, true, NULL, -1, { 0 } },
		{ "coffer, 512 bytes", TARGET_COFFER, 512, false, NULL, -1, { 0 } },
		{ "dm-crypt, 512", TARGET_CRYPT, 512, false, NULL, -1, { 0 } },
		{ "dm-crypt, 512, no workqueues", TARGET_CRYPT, 512, true, NULL, -1, { 0 } },
	};
	struct ramdisk disk = { .loop_fd = -1, .file_fd = -1 };
	struct drivers before = { 0 }, d = { 0 };
	struct row rows[ARRAY_SIZE(all)];
	char *cipher_driver = NULL;
	unsigned int nr = 0;
	int ret;

	(void)args;
	catch_signals(true);
	ret = load(&before, &d);
	if (!ret)
		ret = ramdisk_make(DISK_BYTES, &disk);
	for (unsigned int i = 0; i < ARRAY_SIZE(all) && !ret && !stopped; i++) {
		const char *target = all[i].target;

		if (target && (strcmp(target, TARGET_COFFER) ? !d.crypt_target || d.takeover :
			       !d.coffer_loaded))
			continue;
		rows[nr++] = all[i];
		if (target) {
			ret = make_mapping(&rows[nr - 1], &disk, i);
		} else {
			rows[0].fd = open(disk.device.path, O_RDWR | O_DIRECT | O_CLOEXEC);
			if (rows[0].fd < 0)
				ret = fail(E_IO, NULL, "cannot open the RAM disk: %s", strerror(errno));
		}
	}
	if (!ret && stopped)
		ret = fail(E_INTERRUPTED, NULL, "stopped before the end");
	if (!ret)
		ret = run_rounds(rows, nr);
	if (!ret) {
		cipher_driver = cipher_driver_of(rows, nr);
		show(rows, nr, &disk, cipher_driver);
	}
	for (unsigned int i = 0; i < nr; i++) {
		if (rows[i].fd >= 0)
			close(rows[i].fd);
		if (rows[i].name)
			mapping_remove(rows[i].name, false);
		free(rows[i].name);
	}
	free(cipher_driver);
	ramdisk_free(&disk);
	unload(&before);
	catch_signals(false);
	return ret;
}
