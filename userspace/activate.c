// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * From a header and a volume key to a mapping.
 *
 * Whichever driver carries it, the table, the DM UUID and the key's description are
 * those of libcryptsetup, so that udev's rules and foreign tools know the mapping.
 */
#define _GNU_SOURCE
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>
#include "activate.h"
#include "error.h"
#include "keyring.h"

/* As libcryptsetup calls it: cryptsetup:UUID-d0. To be freed. */
char *volume_key_description(const struct header *header)
{
	return xasprintf("cryptsetup:%s-d0", header->uuid);
}

/* A segment may have a fixed size: then the rest of the device is not part of the volume. */
static uint64_t fixed_size(const struct header *header)
{
	struct json_object *root, *segments, *segment, *size;
	uint64_t bytes = 0;
	const char *json;

	if (!header->luks2 || crypt_dump_json(header->cd, &json, 0))
		return 0;
	root = json_tokener_parse(json);
	if (root && json_object_object_get_ex(root, "segments", &segments) &&
	    json_object_object_get_ex(segments, "0", &segment) &&
	    json_object_object_get_ex(segment, "size", &size))
		bytes = strtoull(json_object_get_string(size), NULL, 10);	/* "dynamic" is 0 */
	json_object_put(root);
	return bytes;
}

/**
 * header_data_sectors() - how large the opened volume will be
 * @header: the header
 * @device: where the data is
 * @sectors: the size, a whole number of data units
 *
 * Return: 0, or E_TOO_SMALL.
 */
int header_data_sectors(const struct header *header, const struct device *device,
			uint64_t *sectors)
{
	uint64_t offset = crypt_get_data_offset(header->cd), all = device->size / SECTOR;
	uint64_t unit = crypt_get_sector_size(header->cd) / SECTOR;
	uint64_t fixed = fixed_size(header) / SECTOR;

	if (all < offset + unit || (fixed && all < offset + fixed))
		return fail(E_TOO_SMALL, NULL, "cannot open %s: the device has %s, its data needs %s",
			    device->path, human_size(device->size),
			    human_size((offset + (fixed ? fixed : unit)) * SECTOR));
	*sectors = fixed ? fixed : (all - offset) / unit * unit;
	return 0;
}

/**
 * activate_describe() - the mapping that a header asks for
 * @volume: where the data is
 * @header: the header
 * @name: of the mapping
 * @read_only: nothing can be written
 * @map: filled in but for the target's name; mapping_free() it
 *
 * Return: 0, or what failed.
 */
int activate_describe(const struct volume *volume, const struct header *header,
		      const char *name, bool read_only, struct mapping *map)
{
	static const struct {
		uint32_t flag;
		const char *option;
	} flags[] = {
		{ CRYPT_ACTIVATE_ALLOW_DISCARDS, "allow_discards" },
		{ CRYPT_ACTIVATE_SAME_CPU_CRYPT, "same_cpu_crypt" },
		{ CRYPT_ACTIVATE_SUBMIT_FROM_CRYPT_CPUS, "submit_from_crypt_cpus" },
		{ CRYPT_ACTIVATE_NO_READ_WORKQUEUE, "no_read_workqueue" },
		{ CRYPT_ACTIVATE_NO_WRITE_WORKQUEUE, "no_write_workqueue" },
	};
	char squeezed[33];
	uint32_t set = 0;
	int n = 0, ret;

	memset(map, 0, sizeof(*map));
	ret = header_data_sectors(header, &volume->device, &map->size);
	if (ret)
		return ret;
	for (const char *p = header->uuid; *p && n < 32; p++)
		if (*p != '-')
			squeezed[n++] = *p;
	squeezed[n] = 0;
	map->name = xstrdup(name);
	map->uuid = xasprintf("CRYPT-%s-%s-%s", header->luks2 ? "LUKS2" : "LUKS1", squeezed, name);
	map->read_only = read_only || volume->device.read_only;
	map->cipher = xstrdup("aes-xts-plain64");
	map->key_bytes = crypt_get_volume_key_size(header->cd);
	map->key_type = xstrdup("logon");
	map->key_description = volume_key_description(header);
	map->iv_offset = crypt_get_iv_offset(header->cd);
	map->lower = volume->device.devno;
	map->offset = crypt_get_data_offset(header->cd);
	map->data_unit = crypt_get_sector_size(header->cd);
	crypt_persistent_flags_get(header->cd, CRYPT_FLAGS_ACTIVATION, &set);
	for (unsigned int i = 0; i < ARRAY_SIZE(flags); i++)
		if (set & flags[i].flag)
			strings_add(&map->options, xstrdup(flags[i].option));
	map->discards = set & CRYPT_ACTIVATE_ALLOW_DISCARDS;
	if (map->data_unit != SECTOR)
		strings_add(&map->options, xasprintf("sector_size:%u", map->data_unit));
	return 0;
}

/**
 * activate_load() - load a table of an active mapping with a key that we have
 * @map: the new table, with key_type and key_description
 * @volume_key: the key
 *
 * Return: 0, or what failed; nothing is in the keyring afterwards.
 */
int activate_load(const struct mapping *map, const struct secret *volume_key)
{
	int serial, ret;

	ret = keyring_add(map->key_description, volume_key, &serial);
	if (ret)
		return ret;
	ret = mapping_load(map, NULL);
	keyring_drop(serial);
	return ret;
}

/**
 * activate() - make the mapping
 * @volume: a closed volume
 * @header: its header, checked by header_check()
 * @name: of the mapping
 * @volume_key: the key, already verified against the header
 * @read_only: nothing can be written
 * @want: driver that the user asked for
 * @got: the one that carries it
 *
 * Return: 0, or what failed; nothing is left in the keyring or half made.
 */
int activate(const struct volume *volume, const struct header *header, const char *name,
	     const struct secret *volume_key, bool read_only, enum driver want,
	     enum driver *got)
{
	struct mapping map;
	bool through_crypt;
	int ret, serial;

	ret = driver_prepare(want, &through_crypt, got);
	if (ret)
		return ret;
	ret = activate_describe(volume, header, name, read_only, &map);
	if (ret)
		return ret;
	map.target = xstrdup(through_crypt ? TARGET_CRYPT : TARGET_COFFER);
	ret = keyring_add(map.key_description, volume_key, &serial);
	if (!ret) {
		ret = mapping_create(&map, NULL);
		keyring_drop(serial);
	}
	mapping_free(&map);
	return ret;
}
