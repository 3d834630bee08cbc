// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Which copies of a LUKS header are whole.
 *
 * LUKS2 keeps two. libcryptsetup mends one from the other as it reads them and does not say
 * so; here it gets to see each one alone, in memory, and the device is only read.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <libcryptsetup.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "copies.h"
#include "error.h"
#include "header.h"

#define BINARY 512	/* bytes of a header's first part that say something */

static bool valid_size(uint64_t size)
{
	return size >= 0x4000 && size <= 0x400000 && !(size & (size - 1));
}

static uint64_t be64(const unsigned char *at)
{
	uint64_t value;

	memcpy(&value, at, sizeof(value));
	return be64toh(value);
}

/* The UUID has the same place in LUKS1 and both copies of LUKS2. */
static void read_uuid(const unsigned char *binary, char uuid[37])
{
	const char *at = (const char *)binary + 168;

	if (*uuid || memchr(at, 0, 40) != at + 36)
		return;
	for (int i = 0; i < 36; i++)
		if (i == 8 || i == 13 || i == 18 || i == 23 ? at[i] != '-' :
		    !isxdigit((unsigned char)at[i]))
			return;
	memcpy(uuid, at, 37);
}

static bool loads(const char *path)
{
	struct crypt_device *cd = NULL;
	bool good;

	if (crypt_init(&cd, path))
		return false;
	header_quiet(cd);
	good = !crypt_load(cd, CRYPT_LUKS, NULL);
	crypt_free(cd);
	return good;
}

/* Whether a part of the device, alone, is a header to libcryptsetup. */
static bool loads_alone(int fd, uint64_t at, uint64_t size)
{
	off_t all = lseek(fd, 0, SEEK_END);
	int memory = memfd_create("header", MFD_CLOEXEC);
	char *part = xcalloc(1, size), *path;
	bool good = false;

	if (memory >= 0 && !ftruncate(memory, all) &&
	    pread(fd, part, size, at) == (ssize_t)size &&
	    pwrite(memory, part, size, at) == (ssize_t)size) {
		path = xasprintf("/proc/self/fd/%d", memory);
		good = loads(path);
		free(path);
	}
	if (memory >= 0)
		close(memory);
	free(part);
	return good;
}

/**
 * copies_check() - look at the copies of a header
 * @where: device or file
 * @copies: filled in; of something that is no header at all nothing is whole
 *
 * Return: 0, or E_IO if nothing can be read.
 */
int copies_check(const char *where, struct copies *copies)
{
	int fd = open(where, O_RDONLY | O_CLOEXEC);
	unsigned char binary[BINARY];
	uint64_t size = 0;

	*copies = (struct copies){ .nr = 2 };
	if (fd < 0 || pread(fd, binary, BINARY, 0) != BINARY) {
		if (fd >= 0)
			close(fd);
		return fail(E_IO, NULL, "cannot read %s: %s", where, strerror(errno));
	}
	read_uuid(binary, copies->uuid);
	if (!memcmp(binary, "LUKS\xba\xbe\0\1", 8)) {
		copies->nr = 1;
		copies->whole[0] = loads(where);
		close(fd);
		return 0;
	}
	if (!memcmp(binary, "LUKS\xba\xbe\0\2", 8) && valid_size(be64(binary + 8)))
		copies->whole[0] = loads_alone(fd, 0, be64(binary + 8));
	for (size = 0x4000; size <= 0x400000 && !copies->whole[1]; size *= 2) {
		if (pread(fd, binary, BINARY, size) != BINARY)
			break;
		if (memcmp(binary, "SKUL\xba\xbe\0\2", 8))
			continue;
		read_uuid(binary, copies->uuid);
		if (be64(binary + 8) == size)
			copies->whole[1] = loads_alone(fd, size, size);
	}
	close(fd);
	return 0;
}
