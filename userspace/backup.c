// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copies of headers, made without being asked.
 *
 * One file a volume in STATE_DIR/headers, for root only. It is replaced by rename, so
 * there is always a whole one; an old one does not stay beside it, for a copy with a
 * removed secret would still open the disk.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "backup.h"
#include "error.h"

#define HEADERS STATE_DIR "/headers"

/* Where the automatic copy of a volume's header is; to be freed. */
char *backup_path(const char *uuid)
{
	return xasprintf(HEADERS "/%s.luks", uuid);
}

/**
 * backup_write() - write a copy of a header
 * @header: the header
 * @path: a file that must not exist yet
 *
 * Return: 0, or what failed; then there is no file.
 */
int backup_write(struct header *header, const char *path)
{
	int fd, ret;

	ret = crypt_header_backup(header->cd, CRYPT_LUKS, path);
	if (ret)
		return header_failed(ret, "cannot write a copy of the header to %s", path);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0 || fchmod(fd, 0600) || fsync(fd)) {
		ret = fail(E_IO, NULL, "cannot write a copy of the header to %s: %s", path,
			   strerror(errno));
		unlink(path);
	}
	if (fd >= 0)
		close(fd);
	return ret;
}

static int make_dirs(void)
{
	if ((mkdir(STATE_DIR, 0700) && errno != EEXIST) || (mkdir(HEADERS, 0700) && errno != EEXIST))
		return fail(E_FAILED, NULL, "cannot make the directory " HEADERS ": %s",
			    strerror(errno));
	return 0;
}

/**
 * backup_update() - bring the automatic copy up to date
 * @header: the header, which must be whole
 *
 * Return: 0, or what failed; the old copy is still there then.
 */
int backup_update(struct header *header)
{
	char *path = backup_path(header->uuid), *fresh = xasprintf("%s.new", path);
	int dir, ret = make_dirs();

	if (!ret) {
		unlink(fresh);	/* of a run that was cut off */
		ret = backup_write(header, fresh);
	}
	if (!ret && rename(fresh, path))
		ret = fail(E_IO, NULL, "cannot write a copy of the header to %s: %s", path,
			   strerror(errno));
	dir = ret ? -1 : open(HEADERS, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir >= 0) {
		fsync(dir);
		close(dir);
	}
	free(path);
	free(fresh);
	return ret;
}

/**
 * backup_is_current() - whether the automatic copy is what the header is now
 * @header: the header
 *
 * Compares byte by byte: LUKS2 writes a header's copy as it is on disk.
 */
bool backup_is_current(struct header *header)
{
	const char *from = crypt_get_metadata_device_name(header->cd);
	char *path = backup_path(header->uuid), *a = xcalloc(2, MIB), *b = a + MIB;
	int copy = open(path, O_RDONLY | O_CLOEXEC);
	int disk = open(header->path ? header->path : from ? from : header->device,
			O_RDONLY | O_CLOEXEC);
	bool same = copy >= 0 && disk >= 0;
	off_t at = 0;
	ssize_t got;

	while (same && (got = pread(copy, a, MIB, at)) > 0) {
		same = pread(disk, b, got, at) == got && !memcmp(a, b, got);
		at += got;
	}
	same = same && at;
	if (copy >= 0)
		close(copy);
	if (disk >= 0)
		close(disk);
	free(a);
	free(path);
	return same;
}

/* Overwrite a file before its name goes: blocks of a deleted file stay readable. */
static int shred(const char *path, bool *was_there)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), ret = 0;
	char *zeros;
	off_t size;

	if (fd < 0 && errno == ENOENT)
		return 0;
	*was_there = true;
	zeros = xcalloc(1, MIB);
	size = fd >= 0 ? lseek(fd, 0, SEEK_END) : -1;
	for (off_t at = 0; at < size; at += MIB)
		if (pwrite(fd, zeros, size - at < (off_t)MIB ? size - at : (off_t)MIB, at) < 0)
			size = -1;
	if (size < 0 || fsync(fd) || unlink(path))
		ret = fail(E_IO, "delete it yourself: it still opens the disk",
			   "cannot erase the copy of the header in %s: %s", path, strerror(errno));
	if (fd >= 0)
		close(fd);
	free(zeros);
	return ret;
}

/**
 * backup_erase() - make the automatic copy of a header unreadable
 * @uuid: the volume's
 * @was_there: set if there was one
 *
 * Return: 0, or E_IO.
 */
int backup_erase(const char *uuid, bool *was_there)
{
	char *path = backup_path(uuid), *fresh = xasprintf("%s.new", path);
	int ret = shred(path, was_there), err = shred(fresh, was_there);

	free(path);
	free(fresh);
	return ret ? ret : err;
}

/* When the automatic copy was written. */
bool backup_time(const char *uuid, time_t *when)
{
	char *path = backup_path(uuid);
	struct stat st;
	bool there = !stat(path, &st);

	if (there)
		*when = st.st_mtime;
	free(path);
	return there;
}
