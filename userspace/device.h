/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef COFFER_DEVICE_H
#define COFFER_DEVICE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "util.h"

struct device {
	char *path;		/* /dev/sda1 */
	char *kname;		/* sda1 */
	char *disk;		/* kname of the whole disk: sda; of itself if it is one */
	char *model;		/* of the disk; NULL if it has none */
	dev_t devno;
	uint64_t size;		/* bytes */
	unsigned int logical, physical;	/* block sizes in bytes */
	bool rotational, removable, read_only, discards, zoned;
};

/* Who keeps a device busy, in words: "mounted at /home", "lv vg-home", "swap",
 * "process fio (123)".
 */
struct users {
	struct strings mounts, holders, swaps, processes;
};

int device_get(const char *path, struct device *device);
int device_by_devno(dev_t devno, struct device *device);
void device_free(struct device *device);
char *device_describe(const struct device *device);
char *devno_path(dev_t devno);
char *devno_kname(dev_t devno);

bool device_suspended(const char *kname);
void devices_with_luks(struct strings *paths);
int device_signatures(const char *path, struct strings *found);
void device_users(const struct device *device, struct users *users);
bool users_any(const struct users *users);
char *users_text(const struct users *users);
void users_free(struct users *users);

bool mount_devno(const char *dir, dev_t *devno);
void mounts_of(dev_t devno, const char *path, struct strings *points);
void device_stack_below(const char *kname, struct strings *knames);

int loop_attach(const char *file, bool read_only, struct device *device, int *fd);
bool loop_backing(const char *kname, char **file);
int loop_follow(struct device *device);

#endif
