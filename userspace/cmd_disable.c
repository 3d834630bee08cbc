// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * coffer disable: decrypt a disk in place.
 *
 * The header leaves the device first, since its place gets data; until the end it lies in
 * the journal's directory, and nobody has to look after it.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "backup.h"
#include "commands.h"
#include "convert.h"
#include "error.h"
#include "filesystem.h"
#include "ui.h"
#include "volume.h"

/* Where the header is, after what may have been cut off. */
static int find_header(const struct volume *volume, struct convert_journal *journal,
		       struct header **header)
{
	struct convert_state state;
	bool found;
	int ret;

	ret = journal_find(&volume->device, journal, &found);
	if (ret || !found)
		return ret ? ret : header_load(volume->device.path, NULL, header);
	if (!strcmp(journal->stage, "export")) {
		/* the copy may be half written: then the one on the device is whole */
		ret = header_load(volume->device.path, journal->header, header);
		if (ret) {
			error_clear();
			journal_remove(journal->uuid);
			journal_free(journal);
			return header_load(volume->device.path, NULL, header);
		}
		convert_get_state(*header, &state);
		if (state.active)
			return 0;
		/* the device's start may be overwritten: put the header back and begin anew */
		header_free(*header);
		*header = NULL;
		ret = convert_place_header(&volume->device, journal->header);
		if (ret)
			return ret;
		journal_remove(journal->uuid);
		journal_free(journal);
		return header_load(volume->device.path, NULL, header);
	}
	if (!strcmp(journal->stage, "decrypt"))
		return header_load(volume->device.path, journal->header, header);
	return fail(E_REFUSED, "coffer resume finishes that first", "%s is being encrypted",
		    volume->called);
}

static int check(const struct volume *volume)
{
	struct users users;
	char *text;
	int ret = 0;

	if (volume->open)
		return fail(E_BUSY, "close it first: coffer close", "cannot decrypt %s: it is open as %s",
			    volume->device.path, volume->map.name);
	device_users(&volume->device, &users);
	if (users_any(&users)) {
		text = users_text(&users);
		ret = fail(E_BUSY, NULL, "cannot decrypt %s: %s", volume->device.path, text);
		free(text);
	} else if (volume->device.read_only) {
		ret = fail(E_REFUSED, NULL, "cannot decrypt %s: it is read-only", volume->device.path);
	}
	users_free(&users);
	return ret;
}

static int begin(const struct volume *volume, struct header **header, const struct secret *secret,
		 int slot)
{
	const struct device *device = &volume->device;
	char *uuid = xstrdup((*header)->uuid), *file = journal_header(uuid);
	int ret;

	ret = journal_write(device, uuid, "export");
	if (!ret) {
		unlink(file);
		ret = backup_write(*header, file);
	}
	header_free(*header);
	*header = NULL;
	if (!ret)
		ret = convert_begin_decrypt(device, file, secret, slot);
	if (!ret)
		ret = journal_write(device, uuid, "decrypt");
	if (!ret)
		ret = header_load(device->path, file, header);
	free(file);
	free(uuid);
	return ret;
}

static int finish(const struct volume *volume, const char *uuid)
{
	char *copy = backup_path(uuid);
	struct filesystem fs;
	int ret;

	journal_remove(uuid);
	unlink(copy);
	free(copy);
	if (filesystem_get(volume->device.path, &fs)) {
		error_clear();
		return 0;
	}
	ret = filesystem_check(&fs);
	if (!ret)
		ret = filesystem_fill(fs.path, fs.type);
	filesystem_free(&fs);
	if (ret) {
		note("the file system was not enlarged: %s", error_message());
		error_clear();
	}
	return 0;
}

int cmd_disable(const struct args *args)
{
	struct unlock unlock = { .source = args->secret, .no_token = true };
	struct secret *key = NULL, *secret = NULL;
	struct convert_journal journal = { 0 };
	struct header *header = NULL;
	struct convert_state state;
	struct volume volume;
	char *what, *uuid = NULL;
	int ret;

	ret = volume_find(args->words[0], NULL, &volume);
	if (ret)
		return ret;
	ret = check(&volume);
	if (!ret)
		ret = find_header(&volume, &journal, &header);
	if (!ret)
		ret = header_check(header);
	if (ret)
		goto out;
	convert_get_state(header, &state);
	if (state.active && !state.decrypting) {
		ret = fail(E_REFUSED, "coffer resume finishes that first", "%s is being encrypted",
			   args->words[0]);
		goto out;
	}
	if (!header->luks2 || header->path) {
		if (!state.active) {
			ret = fail(E_UNSUPPORTED, "cryptsetup convert --type luks2 makes it LUKS2",
				   "cannot decrypt %s in place: its header is LUKS1", args->words[0]);
			goto out;
		}
	}
	if (!state.active) {
		what = device_describe(&volume.device);
		ret = ui_confirm(args->yes, "This decrypts %s where it is. Its files stay; everybody who has the disk\n"
				 "can read them then.", what);
		free(what);
	}
	unlock.what = args->words[0];
	unlock.keep = &secret;
	if (!ret)
		ret = header_unlock(header, &unlock, &key);
	uuid = xstrdup(header->uuid);
	if (!ret && !state.active)
		ret = begin(&volume, &header, secret, unlock.slot);
	if (!ret)
		ret = convert_run(header, NULL, secret, "Decrypting", args->max_rate);
	if (!ret)
		ret = finish(&volume, uuid);
	if (!ret)
		say("%s is not encrypted any more.", args->words[0]);
out:
	free(uuid);
	secret_free(key);
	secret_free(secret);
	journal_free(&journal);
	header_free(header);
	volume_free(&volume);
	return ret;
}
