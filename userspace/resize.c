// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * An open volume takes the size that its device has, or one that the user wants.
 *
 * dm-coffer lets a new table have the key of the active one, and where dm-crypt was given
 * the key in its table it can be read there: no secret is needed then.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include "activate.h"
#include "error.h"
#include "live.h"
#include "resize.h"
#include "ui.h"

/* The largest size that the device allows; the header knows of a fixed one. */
static int largest(const struct volume *volume, const struct header *header, uint64_t *sectors)
{
	uint64_t all = volume->device.size / SECTOR, unit = volume->map.data_unit / SECTOR;

	if (header)
		return header_data_sectors(header, &volume->device, sectors);
	if (all < volume->map.offset + unit)
		return fail(E_TOO_SMALL, NULL, "cannot resize %s: %s is smaller than where its data begins",
			    volume->map.name, volume->device.path);
	*sectors = (all - volume->map.offset) / unit * unit;
	return 0;
}

static int choose(const struct volume *volume, const struct args *args,
		  const struct header *header, uint64_t bytes, uint64_t *sectors)
{
	uint64_t unit = volume->map.data_unit / SECTOR, max;
	int ret = largest(volume, header, &max);

	if (ret)
		return ret;
	*sectors = bytes ? bytes / SECTOR / unit * unit : max;
	if (!*sectors)
		return fail(E_USAGE, NULL, "cannot resize %s to %s: less than one data unit",
			    volume->map.name, human_size(bytes));
	if (*sectors > max)
		return fail(E_TOO_SMALL, NULL, "cannot resize %s to %s: %s has room for %s",
			    volume->map.name, human_size(bytes), volume->device.path,
			    human_size(max * SECTOR));
	if (*sectors < volume->map.size && !args->force)
		return fail(E_REFUSED, "make what is on it smaller first; then --force does it",
			    "cannot make %s smaller, from %s to %s: a file system may use the end",
			    volume->map.name, human_size(volume->map.size * SECTOR),
			    human_size(*sectors * SECTOR));
	return 0;
}

static int swap(const struct volume *volume, const struct args *args, uint64_t sectors)
{
	struct mapping map = volume->map;
	struct header *header = NULL;
	struct secret *key = NULL;
	int ret = 0;

	map.size = sectors;
	if (map.key_type) {
		ret = live_swap(&map, NULL, NULL);
		if (ret != E_KEYRING)
			return ret;
		error_clear();
		ret = 0;
	} else {
		ret = mapping_table_key(&map, &key);
		if (!ret && key) {
			ret = live_swap(&map, NULL, key);
			secret_free(key);
			return ret;
		}
	}
	if (!ret)
		ret = live_key(volume, args, &header, &key);
	if (!ret)
		ret = live_swap(&map, header, key);
	secret_free(key);
	header_free(header);
	return ret;
}

/**
 * volume_resize() - give an open volume another size
 * @volume: the volume; its size is brought up to date
 * @args: where a secret comes from if one is needed; --force to make it smaller
 * @bytes: the size, 0 for what the device has
 *
 * Return: 0, or what failed; the volume then has its old size.
 */
int volume_resize(struct volume *volume, const struct args *args, uint64_t bytes)
{
	struct header *header = NULL;
	uint64_t sectors = 0;
	int ret = 0;

	if (!volume->has_device)
		return fail(E_NO_VOLUME, NULL, "cannot resize %s: its device is gone",
			    volume->map.name);
	ret = live_check(volume, "resize");
	if (ret)
		return ret;
	/* plain volumes have none, and that is fine unless a secret has to be asked for */
	if (live_header(volume, args->header, &header)) {
		if (args->header)
			return error_code();
		error_clear();
	}
	ret = choose(volume, args, header, bytes, &sectors);
	header_free(header);
	if (!ret && sectors != volume->map.size)
		ret = swap(volume, args, sectors);
	if (ret)
		return ret;
	put_str(ui_result(), "name", volume->map.name);
	put_num(ui_result(), "size_before", volume->map.size * SECTOR);
	put_num(ui_result(), "size", sectors * SECTOR);
	if (sectors == volume->map.size)
		say("%s has %s, as much as there is.", volume->map.name, human_size(sectors * SECTOR));
	else
		say("%s has %s now; it had %s.", volume->map.name, human_size(sectors * SECTOR),
		    human_size(volume->map.size * SECTOR));
	if (sectors < volume->map.size)
		note("the next time that it is opened %s takes all of its device again",
		     volume->map.name);
	volume->map.size = sectors;
	return 0;
}
