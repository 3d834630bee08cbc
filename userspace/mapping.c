// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Device-mapper: the only file that calls libdevmapper.
 *
 * A table that holds a key exists as a struct secret only, and each ioctl that may carry
 * one is marked as secure data, so that libdevmapper and the kernel wipe their copies.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <libdevmapper.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "device.h"
#include "error.h"
#include "mapping.h"

static char *last_log;

/* libdevmapper's own words: kept as the reason, not printed. */
static void log_line(int level, const char *file, int line, int dm_errno, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));

static void log_line(int level, const char *file, int line, int dm_errno, const char *fmt, ...)
{
	va_list ap;

	(void)file;
	(void)line;
	(void)dm_errno;
	if ((level & 7) > 4)	/* below warning */
		return;
	free(last_log);
	va_start(ap, fmt);
	last_log = xvasprintf(fmt, ap);
	va_end(ap);
}

static struct dm_task *task_new(int type, const char *name)
{
	struct dm_task *task;

	dm_log_with_errno_init(log_line);
	task = dm_task_create(type);
	if (!task)
		return NULL;
	if (name && !dm_task_set_name(task, name)) {
		dm_task_destroy(task);
		return NULL;
	}
	return task;
}

static int no_dm(void)
{
	return fail(geteuid() ? E_NOT_ROOT : E_FAILED, geteuid() ? NULL : "modprobe dm-mod",
		    "cannot use device-mapper: %s", last_log ? last_log : strerror(errno));
}

/* Run a task that udev has to follow up. */
static int run_with_udev(struct dm_task *task, uint16_t flags)
{
	uint32_t cookie = 0;
	int ret = 0;

	errno = 0;
	if (!dm_task_set_cookie(task, &cookie, flags))
		return -EIO;
	if (!dm_task_run(task))
		ret = -(dm_task_get_errno(task) ? dm_task_get_errno(task) : EIO);
	dm_udev_wait(cookie);
	return ret;
}

/* ---- reading ------------------------------------------------------------------------- */

void mapping_free(struct mapping *map)
{
	free(map->name);
	free(map->uuid);
	free(map->target);
	free(map->cipher);
	free(map->key_type);
	free(map->key_description);
	free(map->info);
	strings_free(&map->options);
	memset(map, 0, sizeof(*map));
}

/* The next word of a table; it is not copied, and may be a key. */
static const char *next_word(const char **params, size_t *len)
{
	const char *word;

	while (**params == ' ')
		(*params)++;
	word = *params;
	*len = strcspn(word, " ");
	*params += *len;
	return *len ? word : NULL;
}

static bool word_number(const char **params, uint64_t *value)
{
	size_t len;
	const char *word = next_word(params, &len);
	char *end;

	if (!word || !isdigit((unsigned char)*word))
		return false;
	*value = strtoull(word, &end, 10);
	return end == word + len;
}

static bool parse_key(struct mapping *map, const char *word, size_t len)
{
	char type[32];
	unsigned int bytes;
	int used = 0;

	if (*word != ':') {
		map->key_bytes = len / 2;
		return true;
	}
	/* bytes and type first: the description may hold colons, and is not a key */
	if (sscanf(word, ":%u:%31[a-z]:%n", &bytes, type, &used) != 2 || !used ||
	    (size_t)used >= len)
		return false;
	map->key_bytes = bytes;
	map->key_type = xstrdup(type);
	map->key_description = xasprintf("%.*s", (int)(len - used), word + used);
	return true;
}

/* <cipher> <key> <iv_offset> <device> <offset> [<#opt> <opt>...] */
static bool parse_crypt(struct mapping *map, const char *params)
{
	unsigned int maj, min;
	const char *word;
	uint64_t count;
	size_t len;

	map->data_unit = SECTOR;
	word = next_word(&params, &len);
	if (!word)
		return false;
	map->cipher = xasprintf("%.*s", (int)len, word);
	word = next_word(&params, &len);
	if (!word || !parse_key(map, word, len) || !word_number(&params, &map->iv_offset))
		return false;
	word = next_word(&params, &len);
	if (!word || sscanf(word, "%u:%u", &maj, &min) != 2)
		return false;
	map->lower = makedev(maj, min);
	if (!word_number(&params, &map->offset))
		return false;
	if (!word_number(&params, &count))
		return true;
	while ((word = next_word(&params, &len))) {
		char *option = xasprintf("%.*s", (int)len, word);

		if (sscanf(option, "sector_size:%u", &map->data_unit) != 1 &&
		    !strcmp(option, "allow_discards"))
			map->discards = true;
		strings_add(&map->options, option);
	}
	return true;
}

static int get_table(struct mapping *map)
{
	struct dm_task *task = task_new(DM_DEVICE_TABLE, map->name);
	uint64_t start, length;
	char *target, *params;
	void *next = NULL;
	int ret = 0;

	if (!task || !dm_task_secure_data(task) || !dm_task_run(task)) {
		ret = no_dm();
		goto out;
	}
	do {
		next = dm_get_next_target(task, next, &start, &length, &target, &params);
		if (!target)
			break;
		map->size = start + length;
		if (map->nr_targets++)
			continue;
		map->target = xstrdup(target);
		if ((!strcmp(target, TARGET_COFFER) || !strcmp(target, TARGET_CRYPT)) &&
		    !parse_crypt(map, params))
			ret = fail(E_FAILED, NULL, "cannot read the table of %s", map->name);
	} while (next);
out:
	if (task)
		dm_task_destroy(task);
	return ret;
}

static int get_info(struct mapping *map)
{
	struct dm_task *task = task_new(DM_DEVICE_STATUS, map->name);
	uint64_t start, length;
	char *target, *params = NULL;
	int ret = 0;

	if (!task || !dm_task_no_flush(task) || !dm_task_run(task))
		ret = no_dm();
	else
		dm_get_next_target(task, NULL, &start, &length, &target, &params);
	map->info = xstrdup(params ? params : "");
	if (task)
		dm_task_destroy(task);
	return ret;
}

/**
 * mapping_find() - the mapping of a name, if there is one
 * @name: as in /dev/mapper
 * @map: filled in; mapping_free() it
 *
 * Return: whether it is there and can be read.
 */
bool mapping_find(const char *name, struct mapping *map)
{
	struct dm_task *task = task_new(DM_DEVICE_INFO, name);
	struct dm_info info = { 0 };
	bool found;

	memset(map, 0, sizeof(*map));
	found = task && dm_task_run(task) && dm_task_get_info(task, &info) && info.exists;
	if (found) {
		map->name = xstrdup(name);
		map->uuid = xstrdup(dm_task_get_uuid(task) ? dm_task_get_uuid(task) : "");
		map->devno = makedev(info.major, info.minor);
		map->open_count = info.open_count;
		map->suspended = info.suspended;
		map->read_only = info.read_only;
	}
	if (task)
		dm_task_destroy(task);
	if (!found)
		return false;
	if (get_table(map) || get_info(map)) {
		mapping_free(map);
		return false;
	}
	return true;
}

/* The same for a mapping that must be there: 0, E_NO_VOLUME, or what failed. */
int mapping_get(const char *name, struct mapping *map)
{
	if (mapping_find(name, map))
		return 0;
	return fail(E_NO_VOLUME, "coffer status lists what is there",
		    "no mapping is called %s", name);
}

/* The names of all mappings, added to. */
int mapping_names(struct strings *list)
{
	struct dm_task *task = task_new(DM_DEVICE_LIST, NULL);
	struct dm_names *names;
	int ret = 0;

	if (!task || !dm_task_run(task)) {
		ret = no_dm();
		goto out;
	}
	names = dm_task_get_names(task);
	while (names && names->dev) {
		strings_add(list, xstrdup(names->name));
		if (!names->next)
			break;
		names = (void *)((char *)names + names->next);
	}
out:
	if (task)
		dm_task_destroy(task);
	return ret;
}

/* Whether it is one encrypted segment of either target. */
bool mapping_is_crypt(const struct mapping *map)
{
	return map->nr_targets == 1 && map->cipher;
}

/* Whether it is a volume in the middle of a conversion, which stands on helper mappings. */
bool mapping_is_converting(const struct mapping *map)
{
	return starts_with(map->uuid, "CRYPT-LUKS2-") && !mapping_is_crypt(map);
}

/* Whether dm-coffer carries it: dm-crypt has no INFO line, ours has. */
bool mapping_on_coffer(const struct mapping *map)
{
	return map->target && (!strcmp(map->target, TARGET_COFFER) || *map->info);
}

/* Whether the key has been wiped; dm-crypt does not tell, but is suspended then. */
bool mapping_key_wiped(const struct mapping *map)
{
	return strstr(map->info, " key_wiped ") || (!*map->info && map->suspended);
}

/* ---- writing ------------------------------------------------------------------------- */

/**
 * mapping_table() - the parameters of a "coffer" or "crypt" target
 * @map: what to say; with key_type it names a key in a keyring
 * @key: the key's bytes, for a @map without key_type
 *
 * Return: the text, with a 0 at its end, in a secret.
 */
struct secret *mapping_table(const struct mapping *map, const struct secret *key)
{
	char *options = strings_join(&map->options, " ");
	struct secret *table = secret_new(4096);
	size_t at;

	at = snprintf(table->data, table->size, "%s ", map->cipher);
	if (map->key_type) {
		at += snprintf(table->data + at, table->size - at, ":%u:%s:%s", map->key_bytes,
			       map->key_type, map->key_description);
	} else {
		static const char digits[] = "0123456789abcdef";

		for (size_t i = 0; key && i < key->len; i++) {
			table->data[at++] = digits[(unsigned char)key->data[i] >> 4];
			table->data[at++] = digits[key->data[i] & 15];
		}
	}
	at += snprintf(table->data + at, table->size - at, " %" PRIu64 " %u:%u %" PRIu64,
		       map->iv_offset, major(map->lower), minor(map->lower), map->offset);
	if (map->options.nr)
		at += snprintf(table->data + at, table->size - at, " %u %s", map->options.nr,
			       options);
	free(options);
	table->len = at;
	return table;
}

/**
 * mapping_table_key() - the key that stands in a mapping's table, if it does
 * @map: from mapping_get()
 * @key: its bytes; NULL where the kernel does not show it
 *
 * Return: 0, or what failed.
 */
int mapping_table_key(const struct mapping *map, struct secret **key)
{
	struct dm_task *task = task_new(DM_DEVICE_TABLE, map->name);
	uint64_t start, length;
	char *target, *text = NULL;
	const char *params, *word = NULL;
	size_t len = 0;

	*key = NULL;
	if (!task || !dm_task_secure_data(task) || !dm_task_run(task)) {
		if (task)
			dm_task_destroy(task);
		return no_dm();
	}
	dm_get_next_target(task, NULL, &start, &length, &target, &text);
	params = text;
	if (params && next_word(&params, &len))
		word = next_word(&params, &len);
	if (word && *word != ':' && len / 2 == map->key_bytes) {
		struct secret *bytes = secret_new(len / 2);

		for (size_t i = 0; i < len; i += 2) {
			unsigned int byte;

			if (sscanf(word + i, "%2x", &byte) != 1 || !isxdigit((unsigned char)word[i]))
				break;
			bytes->data[bytes->len++] = byte;
			byte = 0;
		}
		/* dm-coffer shows x in its place */
		if (bytes->len == len / 2)
			*key = bytes;
		else
			secret_free(bytes);
	}
	dm_task_destroy(task);
	return 0;
}

static int add_target(struct dm_task *task, const struct mapping *map, const struct secret *key)
{
	struct secret *table = mapping_table(map, key);
	int ok = dm_task_secure_data(task) &&
		 (!map->read_only || dm_task_set_ro(task)) &&
		 dm_task_add_target(task, 0, map->size, map->target, table->data);

	secret_free(table);
	return ok ? 0 : -EINVAL;
}

/* What the kernel's refusal of a table means. */
static int table_failed(const struct mapping *map, const char *what, int err)
{
	char *lower = devno_path(map->lower);
	int ret;

	switch (-err) {
	case EBUSY:
		ret = fail(E_BUSY, NULL, "cannot %s %s: %s is in use", what, map->name,
			   lower ? lower : "its device");
		break;
	case EEXIST:
		ret = fail(E_EXISTS, "choose another name", "cannot %s %s: the name is in use",
			   what, map->name);
		break;
	case ENOKEY:
		ret = fail(E_KEYRING, NULL, "cannot %s %s: the key is not in the keyring", what,
			   map->name);
		break;
	default:
		ret = fail(E_FAILED, "the kernel log (dmesg) says what the target did not like",
			   "cannot %s %s: %s", what, map->name, strerror(-err));
	}
	free(lower);
	return ret;
}

/**
 * mapping_create() - make a mapping
 * @map: name, uuid, target, size and all of the table
 * @key: the key's bytes, for a @map without key_type
 *
 * Returns when udev has made the links. Return: 0, or what failed.
 */
int mapping_create(const struct mapping *map, const struct secret *key)
{
	struct dm_task *task = task_new(DM_DEVICE_CREATE, map->name);
	int ret;

	if (!task)
		return no_dm();
	ret = dm_task_set_uuid(task, map->uuid) && dm_task_set_add_node(task, DM_ADD_NODE_ON_CREATE) ?
	      0 : -EINVAL;
	if (!ret)
		ret = add_target(task, map, key);
	if (!ret)
		ret = run_with_udev(task, 0);
	dm_task_destroy(task);
	return ret ? table_failed(map, "open", ret) : 0;
}

/**
 * mapping_load() - load a new table, which mapping_resume() makes the active one
 * @map: as for mapping_create()
 * @key: likewise
 *
 * Return: 0, or what failed; the old table is active then.
 */
int mapping_load(const struct mapping *map, const struct secret *key)
{
	struct dm_task *task = task_new(DM_DEVICE_RELOAD, map->name);
	int ret;

	if (!task)
		return no_dm();
	ret = add_target(task, map, key);
	if (!ret && !dm_task_run(task))
		ret = -(dm_task_get_errno(task) ? dm_task_get_errno(task) : EIO);
	dm_task_destroy(task);
	return ret ? table_failed(map, "load a new table for", ret) : 0;
}

static int simple(int type, const char *name, const char *what, bool freeze)
{
	struct dm_task *task = task_new(type, name);
	int ret = 0;

	if (!task)
		return no_dm();
	if (type == DM_DEVICE_RESUME) {
		ret = run_with_udev(task, 0);
	} else {
		if (!freeze && !dm_task_skip_lockfs(task))
			ret = -EINVAL;
		if (!ret && !dm_task_run(task))
			ret = -(dm_task_get_errno(task) ? dm_task_get_errno(task) : EIO);
	}
	dm_task_destroy(task);
	return ret ? fail(ret == -ENXIO ? E_NO_VOLUME : ret == -EBUSY ? E_BUSY :
			  ret == -EINTR ? E_INTERRUPTED : E_FAILED, NULL,
			  "cannot %s %s: %s", what, name, strerror(-ret)) : 0;
}

/* Let I/O wait; @freeze a file system on it first. */
int mapping_suspend(const char *name, bool freeze)
{
	return simple(DM_DEVICE_SUSPEND, name, "suspend", freeze);
}

/* Let I/O go on, with the table that was loaded last. */
int mapping_resume(const char *name)
{
	return simple(DM_DEVICE_RESUME, name, "resume", true);
}

/* Forget a table that was loaded and is not active. */
int mapping_clear(const char *name)
{
	return simple(DM_DEVICE_CLEAR, name, "clear the new table of", true);
}

/**
 * mapping_remove() - take a mapping away
 * @name: the mapping
 * @deferred: if it is in use, as soon as it is not
 *
 * Tries again for a while when udev or another scanner has it open for a moment.
 *
 * Return: 0, E_BUSY, E_NO_VOLUME, or what failed.
 */
int mapping_remove(const char *name, bool deferred)
{
	struct dm_task *task = task_new(DM_DEVICE_REMOVE, name);
	int ret;

	if (!task)
		return no_dm();
	ret = dm_task_retry_remove(task) && (!deferred || dm_task_deferred_remove(task)) ?
	      0 : -EINVAL;
	if (!ret)
		ret = run_with_udev(task, 0);
	dm_task_destroy(task);
	return ret ? fail(ret == -ENXIO ? E_NO_VOLUME : ret == -EBUSY ? E_BUSY : E_FAILED, NULL,
			  "cannot close %s: %s", name, strerror(-ret)) : 0;
}

/**
 * mapping_message() - send a message to the target
 * @name: the mapping
 * @message: its text; may hold a key
 *
 * Return: 0, or a negative errno, without fail().
 */
int mapping_message(const char *name, const char *message)
{
	struct dm_task *task = task_new(DM_DEVICE_TARGET_MSG, name);
	int ret = 0;

	if (!task)
		return -ENOMEM;
	if (!dm_task_set_sector(task, 0) || !dm_task_set_message(task, message) ||
	    !dm_task_secure_data(task))
		ret = -EINVAL;
	else if (!dm_task_run(task))
		ret = -(dm_task_get_errno(task) ? dm_task_get_errno(task) : EIO);
	dm_task_destroy(task);
	return ret;
}

/* The version of a target that the kernel has now; false if it has none of that name. */
bool mapping_target_version(const char *target, unsigned int version[3])
{
	struct dm_task *task = task_new(DM_DEVICE_LIST_VERSIONS, NULL);
	struct dm_versions *entry;
	bool found = false;

	if (task && dm_task_run(task)) {
		entry = dm_task_get_versions(task);
		while (entry) {
			if (!strcmp(entry->name, target)) {
				for (int i = 0; i < 3; i++)
					version[i] = entry->version[i];
				found = true;
			}
			if (!entry->next)
				break;
			entry = (void *)((char *)entry + entry->next);
		}
	}
	if (task)
		dm_task_destroy(task);
	return found;
}
