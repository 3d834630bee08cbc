// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Finding the volume that the user means.
 *
 * A name, /dev/mapper/NAME, /dev/dm-N, the device below, UUID=, LABEL=, an image file and
 * a mount point lead to the same volume. Nothing is changed, but that an image file of
 * a closed volume gets a loop device.
 */
#define _GNU_SOURCE
#include <blkid/blkid.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "error.h"
#include "volume.h"

void volume_free(struct volume *volume)
{
	free(volume->called);
	free(volume->header);
	mapping_free(&volume->map);
	device_free(&volume->device);
	if (volume->loop_fd >= 0)
		close(volume->loop_fd);
	memset(volume, 0, sizeof(*volume));
	volume->loop_fd = -1;
}

static void volume_init(struct volume *volume, const char *called, const char *header)
{
	memset(volume, 0, sizeof(*volume));
	volume->loop_fd = -1;
	volume->called = xstrdup(called);
	volume->header = header ? xstrdup(header) : NULL;
}

/* What to call it in messages: its mapping if it is open, else its device. */
const char *volume_display(const struct volume *volume)
{
	return volume->open ? volume->map.name :
	       volume->has_device ? volume->device.path : volume->called;
}

/* The disk at the bottom of a mapping that stands on other mappings. */
static dev_t lowest(dev_t devno)
{
	char *kname = devno_kname(devno);
	struct strings stack = { 0 };
	unsigned int maj, min;

	if (!kname)
		return 0;
	device_stack_below(kname, &stack);
	for (unsigned int i = 0; i < stack.nr; i++) {
		char *dm = read_text("/sys/class/block/%s/dm/name", stack.s[i]);
		char *number = read_text("/sys/class/block/%s/dev", stack.s[i]);

		if (!dm && number && sscanf(number, "%u:%u", &maj, &min) == 2)
			devno = makedev(maj, min);
		free(dm);
		free(number);
	}
	strings_free(&stack);
	free(kname);
	return devno;
}

static bool is_volume(const struct mapping *map)
{
	return mapping_is_crypt(map) || mapping_is_converting(map);
}

/* Make @volume the open one of this mapping. */
static int set_open(struct volume *volume, struct mapping *map)
{
	if (mapping_is_converting(map))
		map->lower = lowest(map->devno);
	volume->map = *map;
	memset(map, 0, sizeof(*map));
	volume->open = true;
	device_free(&volume->device);
	volume->has_device = !device_by_devno(volume->map.lower, &volume->device);
	return volume->has_device ? 0 : error_code();
}

/* The encrypted mapping of a device number, or of one that it stands on (an LV, say). */
static bool open_at_or_below(struct volume *volume, dev_t devno)
{
	char *kname = devno_kname(devno), *name;
	struct strings stack = { 0 };
	bool found = false;

	if (!kname)
		return false;
	strings_add(&stack, kname);
	device_stack_below(kname, &stack);
	for (unsigned int i = 0; i < stack.nr && !found; i++) {
		struct mapping map;

		name = read_text("/sys/class/block/%s/dm/name", stack.s[i]);
		if (name && mapping_find(name, &map)) {
			found = is_volume(&map) && !set_open(volume, &map);
			mapping_free(&map);
		}
		free(name);
	}
	strings_free(&stack);
	return found;
}

typedef bool (*map_fn)(const struct mapping *map, const void *arg);

/* The first encrypted mapping that a function likes. */
static bool open_where(struct volume *volume, map_fn fn, const void *arg)
{
	struct strings names = { 0 };
	bool found = false;

	if (mapping_names(&names)) {
		error_clear();
		return false;
	}
	for (unsigned int i = 0; i < names.nr && !found; i++) {
		struct mapping map;

		if (!mapping_find(names.s[i], &map))
			continue;
		if (mapping_is_converting(&map))
			map.lower = lowest(map.devno);
		if (is_volume(&map) && fn(&map, arg))
			found = !set_open(volume, &map);
		mapping_free(&map);
	}
	strings_free(&names);
	return found;
}

static bool on_device(const struct mapping *map, const void *arg)
{
	return map->lower == *(const dev_t *)arg;
}

static bool of_image(const struct mapping *map, const void *arg)
{
	const struct stat *image = arg;
	char *kname = devno_kname(map->lower), *file = NULL;
	struct stat st;
	bool same;

	same = kname && loop_backing(kname, &file) && !stat(file, &st) &&
	       st.st_dev == image->st_dev && st.st_ino == image->st_ino;
	free(kname);
	free(file);
	return same;
}

/* 0a1b... without dashes, as it stands in a DM UUID */
static void squeeze(const char *uuid, char out[33])
{
	int n = 0;

	for (; *uuid && n < 32; uuid++)
		if (*uuid != '-')
			out[n++] = *uuid;
	out[n] = 0;
}

static bool has_uuid(const struct mapping *map, const void *arg)
{
	char want[33];

	squeeze(arg, want);
	return starts_with(map->uuid, "CRYPT-LUKS") && strlen(map->uuid) > 12 &&
	       !strncmp(map->uuid + 12, want, 32) && strlen(want) == 32;
}

static int set_device(struct volume *volume, const char *path)
{
	int ret = device_get(path, &volume->device);

	volume->has_device = !ret;
	return ret;
}

static int find_path(struct volume *volume, const char *path, bool read_only)
{
	struct stat st;
	dev_t devno;

	if (stat(path, &st))
		return fail(E_NO_VOLUME, NULL, "cannot find %s: %s", path, strerror(errno));
	if (S_ISBLK(st.st_mode)) {
		if (open_at_or_below(volume, st.st_rdev) ||
		    open_where(volume, on_device, &st.st_rdev))
			return 0;
		return set_device(volume, path);
	}
	if (S_ISDIR(st.st_mode)) {
		if (!mount_devno(path, &devno))
			return fail(E_NO_VOLUME, NULL, "cannot find a volume at %s: nothing is mounted there",
				    path);
		if (open_at_or_below(volume, devno))
			return 0;
		return fail(E_NO_VOLUME, NULL, "%s is not on an encrypted volume", path);
	}
	if (S_ISREG(st.st_mode)) {
		if (open_where(volume, of_image, &st))
			return 0;
		volume->has_device = !loop_attach(path, read_only, &volume->device,
						  &volume->loop_fd);
		return volume->has_device ? 0 : error_code();
	}
	return fail(E_NO_VOLUME, NULL, "cannot use %s: it is neither a block device nor a file", path);
}

static int find_tag(struct volume *volume, const char *tag)
{
	char *path;
	int ret;

	if (starts_with(tag, "UUID=") && open_where(volume, has_uuid, tag + 5))
		return 0;
	path = blkid_evaluate_tag(tag, NULL, NULL);
	if (!path)
		return fail(E_NO_VOLUME, "coffer status lists what is there",
			    "no device has %s", tag);
	ret = find_path(volume, path, false);
	free(path);
	return ret;
}

static int find(const char *name, const char *header, bool read_only, struct volume *volume)
{
	struct mapping map;
	char *path;
	int ret;

	volume_init(volume, name, header);
	if (starts_with(name, "UUID=") || starts_with(name, "LABEL=") ||
	    starts_with(name, "PARTUUID=") || starts_with(name, "PARTLABEL=")) {
		ret = find_tag(volume, name);
	} else if (strchr(name, '/')) {
		ret = find_path(volume, name, read_only);
	} else if (mapping_find(name, &map)) {
		ret = !is_volume(&map) ?
		      fail(E_UNSUPPORTED, NULL, "%s is not an encrypted volume: its target is %s",
			   name, map.target ? map.target : "empty") : set_open(volume, &map);
		mapping_free(&map);
	} else {
		path = xasprintf("/dev/%s", name);
		if (!access(path, F_OK))
			ret = find_path(volume, path, read_only);
		else if (!access(name, F_OK))
			ret = find_path(volume, name, read_only);
		else
			ret = fail(E_NO_VOLUME, "coffer status lists what is there",
				   "no volume or device is called %s", name);
		free(path);
	}
	if (ret)
		volume_free(volume);
	return ret;
}

/**
 * volume_find() - the volume that the user means, open or not
 * @name: any way to name it
 * @header: detached header, or NULL
 * @volume: filled in; volume_free() it
 *
 * A device that is found may hold anything: header_load() tells.
 *
 * Return: 0, E_NO_VOLUME, E_UNSUPPORTED, or what failed.
 */
int volume_find(const char *name, const char *header, struct volume *volume)
{
	return find(name, header, false, volume);
}

/* The same for a volume that has to be open. */
int volume_find_open(const char *name, struct volume *volume)
{
	int ret = find(name, NULL, true, volume);

	if (!ret && !volume->open) {
		volume_free(volume);
		ret = fail(E_NO_VOLUME, NULL, "%s is not open", name);
	}
	return ret;
}

/* The same for one that must not be open. */
int volume_find_closed(const char *name, const char *header, bool read_only,
		       struct volume *volume)
{
	int ret = find(name, header, read_only, volume);

	if (!ret && volume->open) {
		ret = fail(E_EXISTS, NULL, "%s is open already, as %s", name, volume->map.name);
		volume_free(volume);
	}
	return ret;
}

/**
 * volumes_open() - all encrypted mappings
 * @list: to be freed, each after volume_free()
 * @nr: how many
 */
int volumes_open(struct volume **list, unsigned int *nr)
{
	struct strings names = { 0 };
	int ret = mapping_names(&names);

	*list = NULL;
	*nr = 0;
	for (unsigned int i = 0; !ret && i < names.nr; i++) {
		struct volume volume;
		struct mapping map;

		if (!mapping_find(names.s[i], &map))
			continue;
		if (is_volume(&map)) {
			volume_init(&volume, names.s[i], NULL);
			if (set_open(&volume, &map))
				error_clear();
			*list = xrealloc(*list, (*nr + 1) * sizeof(**list));
			(*list)[(*nr)++] = volume;
		}
		mapping_free(&map);
	}
	strings_free(&names);
	return ret;
}

/* The LUKS UUID of an open volume, from its DM UUID; NULL if it is not LUKS. */
const char *volume_uuid(const struct volume *volume, char uuid[37])
{
	const char *from = volume->map.uuid;
	int n = 0;

	if (!volume->open || !starts_with(from, "CRYPT-LUKS") || strlen(from) < 12 + 32)
		return NULL;
	from += 12;
	for (int i = 0; i < 32; i++) {
		if (i == 8 || i == 12 || i == 16 || i == 20)
			uuid[n++] = '-';
		uuid[n++] = from[i];
	}
	uuid[n] = 0;
	return uuid;
}
