// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Changing an open volume while it is in use: another table takes the place of the active
 * one.
 *
 * The kernel suspends, swaps and resumes in one call, so that whenever this process ends,
 * either table is active and I/O goes on. A key that the user's secret gave has been
 * checked against the digest in the header, and the header against the mapping, before a
 * table with it is loaded: nothing else could tell a wrong key, and writes with it would
 * destroy data.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include "activate.h"
#include "error.h"
#include "live.h"

static sigset_t before;

/* Between these two nobody's Ctrl-C leaves things half done. */
void signals_hold(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGQUIT);
	sigaddset(&set, SIGTSTP);
	sigprocmask(SIG_BLOCK, &set, &before);
}

void signals_let_go(void)
{
	sigprocmask(SIG_SETMASK, &before, NULL);
}

/**
 * live_check() - whether a volume is in a state that can be changed
 * @volume: an open volume
 * @verb: what is to be done to it
 *
 * Return: 0; E_LOCKED, E_BUSY.
 */
int live_check(const struct volume *volume, const char *verb)
{
	const struct mapping *map = &volume->map;

	if (!mapping_is_crypt(map))
		return fail(E_BUSY, "coffer status says how far it is", "cannot %s %s: it is being converted",
			    verb, map->name);
	if (mapping_key_wiped(map))
		return fail(E_LOCKED, "coffer unlock brings its key back", "cannot %s %s: it is locked",
			    verb, map->name);
	if (map->suspended)
		return fail(E_BUSY, "coffer unlock resumes it", "cannot %s %s: it is suspended", verb,
			    map->name);
	return 0;
}

/**
 * live_header() - the header that an open volume belongs to
 * @volume: the volume
 * @detached: where its header is, NULL if on the device
 * @header: to be given to header_free()
 *
 * Return: 0; E_UNSUPPORTED if there is none; E_HEADER if it is another volume's.
 */
int live_header(const struct volume *volume, const char *detached, struct header **header)
{
	char uuid[37];
	int ret;

	*header = NULL;
	if (!volume->has_device)
		return fail(E_NO_VOLUME, NULL, "cannot read the header of %s: its device is gone",
			    volume->map.name);
	ret = header_load(volume->device.path, detached, header);
	if (ret == E_UNSUPPORTED && !detached) {
		error_clear();
		return fail(E_UNSUPPORTED, "if it has a detached header, name it with --header",
			    "%s has no header on %s, so a secret cannot be checked",
			    volume->map.name, volume->device.path);
	}
	if (ret)
		return ret;
	ret = header_check(*header);
	if (!ret && (!volume_uuid(volume, uuid) || strcmp(uuid, (*header)->uuid)))
		ret = fail(E_HEADER, NULL, "cannot use the header of %s: it is not the one that %s was opened with",
			   detached ? detached : volume->device.path, volume->map.name);
	if (!ret && crypt_get_volume_key_size((*header)->cd) != (int)volume->map.key_bytes)
		ret = fail(E_HEADER, NULL, "cannot use the header of %s: its key has another size than that of %s",
			   detached ? detached : volume->device.path, volume->map.name);
	if (ret) {
		header_free(*header);
		*header = NULL;
	}
	return ret;
}

/**
 * live_key() - the key of an open volume, by a secret of the user's
 * @volume: the volume
 * @args: where header and secret come from
 * @header: the header; header_free() it also after a failure
 * @volume_key: the key, checked against the header's digest
 *
 * Return: 0, or what failed.
 */
int live_key(const struct volume *volume, const struct args *args, struct header **header,
	     struct secret **volume_key)
{
	struct unlock unlock = { .source = args->secret, .name = args->name,
				 .no_token = args->no_token, .what = volume->map.name };
	int ret = live_header(volume, args->header, header);

	if (!ret)
		ret = header_unlock(*header, &unlock, volume_key);
	if (ret)
		return ret;
	ret = crypt_volume_key_verify((*header)->cd, (*volume_key)->data, (*volume_key)->len);
	if (ret >= 0)
		return 0;
	secret_free(*volume_key);
	*volume_key = NULL;
	return header_failed(ret, "cannot use the key that the header of %s gives",
			     volume->map.name);
}

/**
 * live_swap() - make another table the active one
 * @map: the new table, of a mapping that is there
 * @header: the header that @volume_key comes from, or NULL
 * @volume_key: the key; NULL if @map names one that the kernel can find
 *
 * With a header the table names the key as libcryptsetup would; without one the key stands in
 * the table.
 *
 * Return: 0, or what failed; then the old table is active.
 */
int live_swap(const struct mapping *map, const struct header *header,
	      const struct secret *volume_key)
{
	struct mapping table = *map, now;
	char *description = NULL;
	int ret;

	signals_hold();
	if (header && volume_key) {
		description = volume_key_description(header);
		table.key_type = "logon";
		table.key_description = description;
		ret = activate_load(&table, volume_key);
	} else {
		ret = mapping_load(&table, volume_key);
	}
	free(description);
	if (!ret) {
		ret = mapping_resume(map->name);
		if (ret && mapping_find(map->name, &now)) {
			/* the new table is gone; the old one must not stay suspended */
			mapping_clear(map->name);
			if (now.suspended)
				mapping_resume(map->name);
			mapping_free(&now);
		}
	}
	signals_let_go();
	return ret;
}
