// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * coffer open: unlock a volume.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include "activate.h"
#include "backup.h"
#include "commands.h"
#include "error.h"
#include "ui.h"

/* The label if there is one that can be a name, else as Debian's installer does it. */
static char *default_name(const struct volume *volume, const struct header *header)
{
	const char *label = crypt_get_label(header->cd);
	char *file = NULL, *base, *name;

	if (label && *label && isalnum((unsigned char)*label)) {
		const char *p = label;

		while (isalnum((unsigned char)*p) || strchr("._-", *p)) {
			if (!*p)
				return xstrdup(label);
			p++;
		}
	}
	if (!loop_backing(volume->device.kname, &file))
		return xasprintf("%s_crypt", volume->device.kname);
	base = strrchr(file, '/');
	base = base ? base + 1 : file;
	if (strrchr(base, '.') && strrchr(base, '.') != base)
		*strrchr(base, '.') = 0;
	name = xasprintf("%s_crypt", base);
	free(file);
	return name;
}

static int check_name(const char *name)
{
	struct mapping map;

	if (!*name || strlen(name) > 100 || strchr(name, '/') || !strcmp(name, ".") ||
	    !strcmp(name, "..") || !strcmp(name, "control"))
		return fail(E_USAGE, NULL, "cannot open a volume as \"%s\": that is no name for a mapping",
			    name);
	if (mapping_find(name, &map)) {
		mapping_free(&map);
		return fail(E_EXISTS, "choose another name", "cannot open a volume as %s: the name is in use",
			    name);
	}
	return 0;
}

/* The copy of the header follows what other tools did to it; never worth failing for. */
static void refresh_backup(struct header *header)
{
	if (backup_is_current(header))
		return;
	if (backup_update(header)) {
		note("the copy of the header was not renewed: %s", error_message());
		error_clear();
	}
}

/* A recovery key that was used has been out of its safe place. */
static void recovery_note(struct header *header, int slot)
{
	struct keyslots list;
	const struct keyslot *k;

	if (slot < 0 || keyslots_get(header, &list))
		return;
	k = keyslot_by_slot(&list, slot);
	if (k && !strcmp(k->kind, "recovery"))
		note("a recovery key was used: coffer recovery new %s makes a fresh one",
		     header->device);
	if (k)
		put_str(ui_result(), "secret", k->name);
	keyslots_free(&list);
}

int cmd_open(const struct args *args)
{
	struct unlock unlock = { .source = args->secret, .name = args->name,
				 .no_token = args->no_token };
	struct header *header = NULL;
	struct secret *key = NULL;
	struct volume volume;
	enum driver driver;
	char *name = NULL;
	int ret;

	ret = volume_find_closed(args->words[0], args->header, args->read_only, &volume);
	if (ret)
		return ret;
	ret = header_load(volume.device.path, args->header, &header);
	if (!ret)
		ret = header_check(header);
	if (ret)
		goto out;
	name = args->nr > 1 ? xstrdup(args->words[1]) : default_name(&volume, header);
	ret = check_name(name);
	if (ret)
		goto out;
	unlock.what = args->words[0];
	ret = header_unlock(header, &unlock, &key);
	if (ret)
		goto out;
	if (args->have_trim) {
		uint32_t flags = 0;

		crypt_persistent_flags_get(header->cd, CRYPT_FLAGS_ACTIVATION, &flags);
		flags = args->trim ? flags | CRYPT_ACTIVATE_ALLOW_DISCARDS :
			flags & ~CRYPT_ACTIVATE_ALLOW_DISCARDS;
		ret = crypt_persistent_flags_set(header->cd, CRYPT_FLAGS_ACTIVATION, flags);
		if (ret) {
			ret = header_failed(ret, "cannot keep the TRIM setting in the header");
			goto out;
		}
	}
	ret = activate(&volume, header, name, key, args->read_only, args->driver, &driver);
	if (ret)
		goto out;
	recovery_note(header, unlock.slot);
	refresh_backup(header);
	say("%s is open as /dev/mapper/%s", args->words[0], name);
	put_str(ui_result(), "name", name);
	put_str(ui_result(), "device", volume.device.path);
	put_str(ui_result(), "uuid", header->uuid);
	put_str(ui_result(), "driver", driver == DRIVER_COFFER ? "coffer" : "dm-crypt");
out:
	secret_free(key);
	free(name);
	header_free(header);
	volume_free(&volume);
	return ret;
}
