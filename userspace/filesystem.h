/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef COFFER_FILESYSTEM_H
#define COFFER_FILESYSTEM_H

#include <stdbool.h>
#include <stdint.h>

/* A file system that can make room for a header. */
struct filesystem {
	char *path;		/* of its device */
	char type[16];		/* "ext4", "ext3", "ext2", "btrfs" */
	unsigned int block;	/* bytes; a data unit may not be larger */
	uint64_t size;		/* bytes that it uses of the device */
	uint64_t minimum;	/* bytes that it could be shrunk to, an estimate */
};

int filesystem_get(const char *path, struct filesystem *fs);
void filesystem_free(struct filesystem *fs);
int filesystem_check(const struct filesystem *fs);
int filesystem_resize(const struct filesystem *fs, uint64_t bytes);
int filesystem_fill(const char *path, const char *type);

#endif
