// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * coffer adopt, coffer release: an open volume goes from dm-crypt to dm-coffer and back,
 * while it is in use.
 *
 * The table stays the same but for one word, and so do the bytes on disk. The key comes
 * from dm-crypt's table if it stands there, from a readable key in the keyring, or by the
 * user's secret. A key that the table does not show is checked against the digest in the
 * header, always: a logon key of the right name may still be the wrong one.
 */
#define _GNU_SOURCE
#include <linux/keyctl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "activate.h"
#include "commands.h"
#include "driver.h"
#include "eligible.h"
#include "error.h"
#include "live.h"
#include "ui.h"

struct direction {
	const char *verb;
	bool to_coffer;
	const char *target;	/* the word in the new table */
	const char *driver;	/* for people */
	const char *list;	/* in JSON */
};

static bool there_already(const struct volume *volume, const struct direction *to)
{
	return mapping_on_coffer(&volume->map) == to->to_coffer;
}

/* A key of type "user" can be read by who may use it; NULL if it is not there. */
static struct secret *readable_key(const struct mapping *map)
{
	struct secret *key;
	long id, got;

	if (strcmp(map->key_type, "user"))
		return NULL;
	id = syscall(SYS_request_key, "user", map->key_description, NULL, 0);
	if (id < 0)
		return NULL;
	key = secret_new(map->key_bytes);
	got = syscall(SYS_keyctl, KEYCTL_READ, id, key->data, key->size);
	if (got != (long)map->key_bytes) {
		secret_free(key);
		return NULL;
	}
	key->len = got;
	return key;
}

/* The key, and the header that vouches for it; NULL where the table itself has the key. */
static int get_key(const struct volume *volume, const struct args *args, struct header **header,
		   struct secret **key)
{
	int ret;

	if (!volume->map.key_type) {
		ret = mapping_table_key(&volume->map, key);
		if (ret || *key)
			return ret;
	} else {
		*key = readable_key(&volume->map);
		if (*key) {
			ret = live_header(volume, args->header, header);
			if (!ret && crypt_volume_key_verify((*header)->cd, (*key)->data,
							    (*key)->len) >= 0)
				return 0;
			if (ret)
				return ret;
			secret_free(*key);
			header_free(*header);
			*key = NULL;
			*header = NULL;
		}
	}
	return live_key(volume, args, header, key);
}

/* Whether the mapping is what it was loaded to be. */
static int check_result(const struct mapping *before, const struct direction *to)
{
	struct mapping now;
	int ret = mapping_get(before->name, &now);

	if (ret)
		return ret;
	if (mapping_on_coffer(&now) != to->to_coffer || now.suspended || now.size != before->size)
		ret = fail(E_FAILED, NULL, "%s is not on %s although the kernel took the table",
			   now.name, to->driver);
	mapping_free(&now);
	return ret;
}

/* The options that either driver knows; ours for experiments stay behind. Not copied. */
static void common_options(const struct mapping *map, struct strings *options)
{
	static const char *const ours[] = { "inline:", "fanout:", "handover" };

	options->s = xcalloc(map->options.nr + 1, sizeof(*options->s));
	for (unsigned int i = 0; i < map->options.nr; i++) {
		bool own = false;

		for (unsigned int o = 0; o < ARRAY_SIZE(ours); o++)
			own |= starts_with(map->options.s[i], ours[o]);
		if (!own)
			options->s[options->nr++] = map->options.s[i];
	}
}

static int move(const struct volume *volume, const struct args *args, const struct direction *to)
{
	struct mapping map = volume->map;
	struct strings options = { 0 };
	struct header *header = NULL;
	struct secret *key = NULL;
	int ret;

	map.target = (char *)to->target;
	common_options(&volume->map, &options);
	map.options = options;
	ret = get_key(volume, args, &header, &key);
	if (!ret)
		ret = live_swap(&map, header, key);
	if (!ret)
		ret = check_result(&map, to);
	secret_free(key);
	header_free(header);
	free(options.s);
	if (!ret)
		say("%s is on %s now.", map.name, to->driver);
	return ret;
}

/* Whether it can be moved at all: 0, or why not, which --all only notes. */
static int check(const struct volume *volume, const struct direction *to)
{
	int ret = live_check(volume, to->verb);
	char *why;

	if (ret)
		return ret;
	if (there_already(volume, to))
		return fail(E_EXISTS, NULL, "%s is on %s already", volume->map.name, to->driver);
	why = to->to_coffer ? mapping_unfit(&volume->map) : NULL;
	if (why)
		ret = fail(E_UNSUPPORTED, "it stays on dm-crypt", "dm-coffer cannot carry %s: %s",
			   volume->map.name, why);
	free(why);
	return ret;
}

static int move_all(const struct args *args, const struct direction *to, struct json_object *names)
{
	struct volume *all;
	unsigned int nr;
	int ret, first = 0;

	ret = volumes_open(&all, &nr);
	if (ret)
		return ret;
	for (unsigned int i = 0; i < nr; i++) {
		ret = check(&all[i], to);
		if (ret) {
			if (ret != E_EXISTS)
				note("%s", error_message());
			error_clear();
			ret = 0;
		} else {
			ret = move(&all[i], args, to);
			if (!ret)
				json_object_array_add(names,
						      json_object_new_string(all[i].map.name));
		}
		if (ret && !first)
			first = ret;
		volume_free(&all[i]);
	}
	free(all);
	if (!first && !json_object_array_length(names))
		say("Nothing to %s.", to->verb);
	return first;
}

static int run(const struct args *args, struct direction *to)
{
	struct json_object *names = json_object_new_array();
	bool through_crypt = false;
	struct volume volume;
	enum driver got;
	int ret, first = 0;

	json_object_object_add(ui_result(), to->list, names);
	if (args->all && args->nr)
		return fail(E_USAGE, NULL, "coffer %s takes volumes or --all, not both", to->verb);
	ret = driver_prepare(to->to_coffer ? DRIVER_COFFER : DRIVER_DM_CRYPT, &through_crypt, &got);
	if (ret)
		return ret;
	to->target = through_crypt ? TARGET_CRYPT : TARGET_COFFER;
	if (args->all)
		return move_all(args, to, names);
	for (int i = 0; i < args->nr; i++) {
		ret = volume_find_open(args->words[i], &volume);
		if (!ret) {
			ret = check(&volume, to);
			if (!ret)
				ret = move(&volume, args, to);
			if (!ret)
				json_object_array_add(names,
						      json_object_new_string(volume.map.name));
			volume_free(&volume);
		}
		if (ret && !first)
			first = ret;
	}
	return first;
}

int cmd_adopt(const struct args *args)
{
	struct direction to = {
		.verb = "adopt", .to_coffer = true, .driver = "dm-coffer", .list = "adopted",
	};

	return run(args, &to);
}

int cmd_release(const struct args *args)
{
	struct direction to = {
		.verb = "release", .to_coffer = false, .driver = "dm-crypt", .list = "released",
	};

	return run(args, &to);
}
