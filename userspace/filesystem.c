// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * File systems, as far as making room for a header needs them: ext2, 3, 4 and btrfs.
 *
 * The file system's own programs do the work, on an unmounted device. A resize that is
 * cut off is theirs to survive; nothing here writes to the device by itself.
 */
#define _GNU_SOURCE
#include <blkid/blkid.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>
#include "driver.h"
#include "error.h"
#include "filesystem.h"
#include "util.h"

void filesystem_free(struct filesystem *fs)
{
	free(fs->path);
	memset(fs, 0, sizeof(*fs));
}

/* "Name:   123" in a program's output. */
static bool field(const char *text, const char *name, uint64_t *value)
{
	const char *at = text ? strstr(text, name) : NULL;
	char *end;

	/* names begin a line */
	while (at && at != text && at[-1] != '\n')
		at = strstr(at + 1, name);
	if (!at)
		return false;
	at += strlen(name);
	at += strspn(at, ": \t");
	*value = strtoull(at, &end, 10);
	return end != at;
}

/* A program's reason, to be freed: its line with "ERROR" if it has one, else the last. */
static char *reason(char *text)
{
	char *save, *line, *found = NULL;

	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		if (strspn(line, " \t") == strlen(line))
			continue;
		found = line;
		if (strstr(line, "ERROR"))
			break;
	}
	return xstrdup(found ? found : "");
}

static int program_failed(const char *program, const char *path, int status, char *output)
{
	char *why = reason(output);
	int ret;

	if (status == 127)
		ret = fail(E_FAILED, NULL, "cannot work on %s: the program %s is not installed",
			   path, program);
	else
		ret = fail(E_FAILED, NULL, "%s failed on %s: %s", program, path,
			   *why ? why : "it did not say why");
	free(why);
	return ret;
}

static int get_ext(struct filesystem *fs)
{
	char *info[] = { "dumpe2fs", "-h", fs->path, NULL };
	char *least[] = { "resize2fs", "-P", fs->path, NULL };
	uint64_t blocks, block;
	char *output;
	int status, ret = 0;

	status = run_program(info, &output);
	if (status || !field(output, "Block count", &blocks) ||
	    !field(output, "Block size", &block))
		ret = program_failed("dumpe2fs", fs->path, status, output);
	free(output);
	if (ret)
		return ret;
	fs->block = block;
	fs->size = blocks * block;
	status = run_program(least, &output);
	if (status || !field(output, "Estimated minimum size of the filesystem", &blocks)) {
		/* it wants a check first, which comes with the user's consent */
		blocks = 0;
	}
	fs->minimum = blocks * block;
	free(output);
	return 0;
}

static int get_btrfs(struct filesystem *fs)
{
	char *info[] = { "btrfs", "inspect-internal", "dump-super", fs->path, NULL };
	uint64_t total, used, sector, devices;
	int status, ret = 0;
	char *output;

	status = run_program(info, &output);
	if (status || !field(output, "total_bytes", &total) ||
	    !field(output, "sectorsize", &sector) || !field(output, "bytes_used", &used) ||
	    !field(output, "num_devices", &devices)) {
		ret = program_failed("btrfs", fs->path, status, output);
	} else if (devices != 1) {
		ret = fail(E_UNSUPPORTED, NULL, "cannot work on %s: its btrfs has %llu devices",
			   fs->path, (unsigned long long)devices);
	} else {
		fs->block = sector;
		fs->size = total;
		/* it moves its chunks if there is room; the kernel takes no less than 256 MiB */
		fs->minimum = used + 64 * MIB > 256 * MIB ? used + 64 * MIB : 256 * MIB;
	}
	free(output);
	return ret;
}

/**
 * filesystem_get() - what file system a device has
 * @path: the device
 * @fs: filled in; filesystem_free() it
 *
 * Return: 0; E_UNSUPPORTED for one that cannot be shrunk; or what failed.
 */
int filesystem_get(const char *path, struct filesystem *fs)
{
	blkid_probe probe = blkid_new_probe_from_filename(path);
	const char *type = NULL;
	int ret = 0;

	memset(fs, 0, sizeof(*fs));
	if (!probe)
		return fail(E_IO, NULL, "cannot read %s: %s", path, strerror(errno));
	blkid_probe_enable_superblocks(probe, 1);
	blkid_probe_set_superblocks_flags(probe, BLKID_SUBLKS_TYPE);
	if (!blkid_do_safeprobe(probe))
		blkid_probe_lookup_value(probe, "TYPE", &type, NULL);
	snprintf(fs->type, sizeof(fs->type), "%s", type ? type : "");
	blkid_free_probe(probe);
	fs->path = xstrdup(path);
	if (starts_with(fs->type, "ext"))
		ret = get_ext(fs);
	else if (!strcmp(fs->type, "btrfs"))
		ret = get_btrfs(fs);
	else
		ret = fail(E_UNSUPPORTED, "coffer format makes an empty volume; a file system that cannot shrink needs --header FILE",
			   "cannot make room for a header on %s: %s", path,
			   *fs->type ? fs->type : "it has no file system that is known");
	if (ret)
		filesystem_free(fs);
	return ret;
}

/**
 * filesystem_check() - the file system's own check, repairing what is safe
 * @fs: the file system, not mounted
 *
 * Return: 0, or E_REFUSED with what to do.
 */
int filesystem_check(const struct filesystem *fs)
{
	char *ext[] = { "e2fsck", "-f", "-p", fs->path, NULL };
	char *btrfs[] = { "btrfs", "check", "--readonly", fs->path, NULL };
	bool is_btrfs = !strcmp(fs->type, "btrfs");
	char *output, *next;
	int status, ret = 0;

	status = run_program(is_btrfs ? btrfs : ext, &output);
	/* e2fsck: 1 is "errors corrected" */
	if (status && (is_btrfs || status != 1)) {
		if (status == 127) {
			ret = program_failed(is_btrfs ? "btrfs" : "e2fsck", fs->path, status, output);
		} else {
			next = xasprintf(is_btrfs ? "btrfs check %s tells more" :
					 "e2fsck -f %s repairs it; then try again", fs->path);
			ret = fail(E_REFUSED, next, "the file system on %s has errors", fs->path);
			free(next);
		}
	}
	free(output);
	return ret;
}

/* btrfs is resized while it is mounted: here, where nobody else looks. */
static int resize_mounted(const char *path, const char *size)
{
	char dir[] = "/run/coffer-XXXXXX", *output;
	char *argv[] = { "btrfs", "filesystem", "resize", (char *)size, dir, NULL };
	int status, ret = 0;

	if (!mkdtemp(dir))
		return fail(E_FAILED, NULL, "cannot make a directory in /run: %s", strerror(errno));
	if (mount(path, dir, "btrfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL)) {
		ret = fail(E_FAILED, NULL, "cannot mount %s to resize it: %s", path, strerror(errno));
		rmdir(dir);
		return ret;
	}
	status = run_program(argv, &output);
	if (status)
		ret = program_failed("btrfs", path, status, output);
	free(output);
	if (umount(dir) && !ret)
		ret = fail(E_FAILED, NULL, "cannot unmount %s after resizing it: %s", path,
			   strerror(errno));
	rmdir(dir);
	return ret;
}

/**
 * filesystem_resize() - shrink or grow a file system
 * @fs: the file system, checked and not mounted
 * @bytes: its new size
 *
 * Return: 0, or what failed; E_TOO_SMALL when it holds too much.
 */
int filesystem_resize(const struct filesystem *fs, uint64_t bytes)
{
	char *size, *output;
	int status, ret = 0;

	if (!strcmp(fs->type, "btrfs")) {
		size = xasprintf("%llu", (unsigned long long)bytes);
		ret = resize_mounted(fs->path, size);
		free(size);
		return ret;
	}
	size = xasprintf("%lluK", (unsigned long long)(bytes / KIB));
	{
		char *argv[] = { "resize2fs", fs->path, size, NULL };

		status = run_program(argv, &output);
		if (status)
			ret = program_failed("resize2fs", fs->path, status, output);
		free(output);
	}
	free(size);
	return ret;
}

/* Let a file system fill its device again. */
int filesystem_fill(const char *path, const char *type)
{
	char *argv[] = { "resize2fs", (char *)path, NULL };
	char *output;
	int status, ret = 0;

	if (!strcmp(type, "btrfs"))
		return resize_mounted(path, "max");
	if (!starts_with(type, "ext"))
		return 0;
	status = run_program(argv, &output);
	if (status)
		ret = program_failed("resize2fs", path, status, output);
	free(output);
	return ret;
}
