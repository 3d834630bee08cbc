/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef COFFER_RAMDISK_H
#define COFFER_RAMDISK_H

#include "device.h"

/* A disk in memory, for as long as it is wanted. */
struct ramdisk {
	struct device device;
	const char *kind;	/* "brd", "loop device on a file in memory" */
	int loop_fd, file_fd;	/* -1 for none */
};

int ramdisk_make(uint64_t bytes, struct ramdisk *disk);
void ramdisk_free(struct ramdisk *disk);

#endif
