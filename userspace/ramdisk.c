// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A disk in memory: the module brd if nobody else uses it, or a loop device on a file that
 * has no name.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "driver.h"
#include "error.h"
#include "ramdisk.h"

/* One that is loaded already may hold somebody's data. */
static bool make_brd(uint64_t bytes, struct ramdisk *disk)
{
	char *size = xasprintf("rd_size=%llu", (unsigned long long)(bytes / KIB));
	char *argv[] = { "modprobe", "brd", "rd_nr=1", size, NULL };
	bool ok = access("/sys/module/brd", F_OK) && !run_program(argv, NULL);

	free(size);
	if (!ok)
		return false;
	disk->kind = "brd";
	if (!device_get("/dev/ram0", &disk->device) && disk->device.size == bytes)
		return true;
	error_clear();
	ramdisk_free(disk);
	return false;
}

static int make_loop(uint64_t bytes, struct ramdisk *disk)
{
	char *path;
	int ret;

	disk->kind = "loop device on a file in memory";
	disk->file_fd = memfd_create("coffer", MFD_CLOEXEC);
	if (disk->file_fd < 0 || ftruncate(disk->file_fd, bytes))
		return fail(E_FAILED, NULL, "cannot make a RAM disk: %s", strerror(errno));
	path = xasprintf("/proc/self/fd/%d", disk->file_fd);
	ret = loop_attach(path, false, &disk->device, &disk->loop_fd);
	free(path);
	return ret;
}

/**
 * ramdisk_make() - a disk in memory
 * @bytes: its size
 * @disk: filled in; ramdisk_free() it, also after a failure
 *
 * Return: 0, or what failed.
 */
int ramdisk_make(uint64_t bytes, struct ramdisk *disk)
{
	*disk = (struct ramdisk){ .loop_fd = -1, .file_fd = -1 };
	return make_brd(bytes, disk) ? 0 : make_loop(bytes, disk);
}

/* Give the memory back. */
void ramdisk_free(struct ramdisk *disk)
{
	bool brd = disk->kind && !strcmp(disk->kind, "brd");

	device_free(&disk->device);
	if (disk->loop_fd >= 0)
		close(disk->loop_fd);
	if (disk->file_fd >= 0)
		close(disk->file_fd);
	if (brd)
		module_unload("brd");
	*disk = (struct ramdisk){ .loop_fd = -1, .file_fd = -1 };
}
