// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * coffer image create, coffer image resize: encrypted volumes in a file.
 *
 * The file is sparse: it takes up space as it is filled. Its loop device comes with
 * "coffer open" and goes with "coffer close".
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include "commands.h"
#include "error.h"
#include "header.h"
#include "resize.h"
#include "ui.h"

static const char *half_made;

/* A file without a whole header is of no use to anybody. */
static void remove_and_die(int sig)
{
	if (half_made)
		unlink(half_made);
	signal(sig, SIG_DFL);
	raise(sig);
}

static void room_note(const char *file, uint64_t more)
{
	struct statvfs fs;

	if (!statvfs(file, &fs) && (uint64_t)fs.f_bavail * fs.f_frsize < more)
		note("the file system of %s has %s left: the image cannot be filled", file,
		     human_size((uint64_t)fs.f_bavail * fs.f_frsize));
}

static int set_size(const char *file, int fd, uint64_t bytes)
{
	if (!ftruncate(fd, bytes) && !fsync(fd))
		return 0;
	return fail(errno == EFBIG || errno == ENOSPC ? E_TOO_SMALL : E_IO, NULL,
		    "cannot give %s a size of %s: %s", file, human_size(bytes), strerror(errno));
}

int cmd_image_create(const struct args *args)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
	const char *file = args->words[0];
	struct args format = *args;
	int fd, ret;

	if (!args->size)
		return fail(E_USAGE, NULL, "coffer image create needs --size");
	fd = open(file, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return fail(errno == EEXIST ? E_EXISTS : E_FAILED,
			    errno == EEXIST ? "coffer format encrypts a file that is there" : NULL,
			    "cannot make %s: %s", file, strerror(errno));
	half_made = file;
	for (unsigned int i = 0; i < ARRAY_SIZE(signals); i++)
		signal(signals[i], remove_and_die);
	ret = set_size(file, fd, args->size / SECTOR * SECTOR);
	close(fd);
	if (!ret) {
		/* nothing in it that could be lost */
		format.yes = true;
		ret = cmd_format(&format);
	}
	if (ret)
		unlink(file);
	half_made = NULL;
	for (unsigned int i = 0; i < ARRAY_SIZE(signals); i++)
		signal(signals[i], SIG_DFL);
	if (ret)
		return ret;
	put_str(ui_result(), "file", file);
	put_num(ui_result(), "file_size", args->size / SECTOR * SECTOR);
	room_note(file, args->size);
	return 0;
}

/* Closed or open, it must be an encrypted volume and not just any file. */
static int check_volume(const struct volume *volume, const struct args *args)
{
	struct header *header = NULL;
	int ret;

	if (volume->open)
		return 0;
	ret = header_load(volume->device.path, args->header, &header);
	header_free(header);
	return ret;
}

int cmd_image_resize(const struct args *args)
{
	const char *file = args->words[0];
	uint64_t size = args->size / SECTOR * SECTOR;
	struct volume volume;
	struct stat st;
	int fd, ret;

	if (!size)
		return fail(E_USAGE, NULL, "coffer image resize needs --size");
	if (stat(file, &st))
		return fail(E_NO_VOLUME, NULL, "cannot find %s: %s", file, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return fail(E_USAGE, "coffer resize is for volumes on devices",
			    "cannot resize %s: it is not a file", file);
	if (size < (uint64_t)st.st_size)
		return fail(E_REFUSED, "make a smaller image and copy the files",
			    "cannot make %s smaller, from %s to %s: what lies behind the new end would be lost",
			    file, human_size(st.st_size), human_size(size));
	ret = volume_find(file, args->header, &volume);
	if (ret)
		return ret;
	ret = check_volume(&volume, args);
	if (ret)
		goto out;
	fd = open(file, O_RDWR | O_CLOEXEC);
	if (fd < 0) {
		ret = fail(E_FAILED, NULL, "cannot write to %s: %s", file, strerror(errno));
		goto out;
	}
	ret = set_size(file, fd, size);
	close(fd);
	put_str(ui_result(), "file", file);
	put_num(ui_result(), "file_size", size);
	if (!ret && volume.open) {
		ret = loop_follow(&volume.device);
		if (!ret)
			ret = volume_resize(&volume, args, 0);
	} else if (!ret) {
		say("%s has %s now; it had %s.", file, human_size(size), human_size(st.st_size));
	}
	if (!ret && size > (uint64_t)st.st_size) {
		room_note(file, size - st.st_size);
		say("A file system in it grows with resize2fs, xfs_growfs or btrfs filesystem resize.");
	}
out:
	volume_free(&volume);
	return ret;
}
