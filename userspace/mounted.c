// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Taking a mounted file system off and putting it back where it was, with its options.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/sysmacros.h>
#include "device.h"
#include "error.h"
#include "mounted.h"
#include "util.h"

static const struct {
	const char *name;
	unsigned long flag;
} flags[] = {
	{ "ro", MS_RDONLY }, { "nosuid", MS_NOSUID }, { "nodev", MS_NODEV },
	{ "noexec", MS_NOEXEC }, { "noatime", MS_NOATIME }, { "nodiratime", MS_NODIRATIME },
	{ "relatime", MS_RELATIME }, { "sync", MS_SYNCHRONOUS }, { "dirsync", MS_DIRSYNC },
	{ "lazytime", MS_LAZYTIME }, { "rw", 0 },
};

/* Split "rw,noatime,errors=continue" into flags and what the file system is told. */
static void add_options(struct mounted *mounted, char *options)
{
	char *save, *word;

	for (word = strtok_r(options, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
		bool known = false;
		char *more;

		for (unsigned int i = 0; i < ARRAY_SIZE(flags); i++) {
			if (strcmp(word, flags[i].name))
				continue;
			mounted->flags |= flags[i].flag;
			known = true;
		}
		/* set by the kernel, refused by the kernel */
		if (known || starts_with(word, "subvolid=") || !strcmp(word, "seclabel"))
			continue;
		more = xasprintf("%s%s%s", mounted->data ? mounted->data : "", mounted->data ? "," : "",
				 word);
		free(mounted->data);
		mounted->data = more;
	}
}

/**
 * mounted_get() - remember how a device is mounted
 * @devno: the device
 * @point: its only mount point
 * @mounted: filled in; mounted_free() it
 *
 * Return: 0, or E_FAILED.
 */
int mounted_get(dev_t devno, const char *point, struct mounted *mounted)
{
	FILE *file = fopen("/proc/self/mounts", "re");
	char *line = NULL, *save;
	size_t size = 0;

	(void)devno;
	memset(mounted, 0, sizeof(*mounted));
	while (file && getline(&line, &size, file) > 0) {
		char *source = strtok_r(line, " ", &save);
		char *where = source ? strtok_r(NULL, " ", &save) : NULL;
		char *type = where ? strtok_r(NULL, " ", &save) : NULL;
		char *options = type ? strtok_r(NULL, " ", &save) : NULL;

		if (!options || strcmp(where, point))
			continue;
		mounted_free(mounted);
		mounted->point = xstrdup(point);
		mounted->type = xstrdup(type);
		add_options(mounted, options);
	}
	free(line);
	if (file)
		fclose(file);
	return mounted->point ? 0 : fail(E_FAILED, NULL, "cannot find out how %s is mounted", point);
}

/* Unmount. E_BUSY names who has files open there. */
int mounted_take_off(struct mounted *mounted)
{
	struct device device;
	struct users users;
	dev_t devno;
	char *text;
	int ret;

	if (!umount(mounted->point)) {
		mounted->off = true;
		return 0;
	}
	if (errno != EBUSY || !mount_devno(mounted->point, &devno) || device_by_devno(devno, &device))
		return fail(E_FAILED, NULL, "cannot unmount %s: %s", mounted->point, strerror(errno));
	device_users(&device, &users);
	strings_free(&users.mounts);
	text = users_text(&users);
	ret = fail(E_BUSY, "close these programs and try again", "cannot unmount %s: %s",
		   mounted->point, text);
	free(text);
	users_free(&users);
	device_free(&device);
	return ret;
}

/* Mount again, now from @path. Does nothing if it was not taken off. */
int mounted_put_back(struct mounted *mounted, const char *path)
{
	if (!mounted->off)
		return 0;
	if (mount(path, mounted->point, mounted->type, mounted->flags, mounted->data)) {
		note("%s could not be mounted at %s again: %s", path, mounted->point, strerror(errno));
		return fail(E_FAILED, NULL, "cannot mount %s at %s: %s", path, mounted->point,
			    strerror(errno));
	}
	mounted->off = false;
	return 0;
}

void mounted_free(struct mounted *mounted)
{
	free(mounted->point);
	free(mounted->type);
	free(mounted->data);
	memset(mounted, 0, sizeof(*mounted));
}
