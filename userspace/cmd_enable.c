// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * coffer enable, coffer resume: encrypt a disk that holds data.
 *
 * Preflight and questions come first, then the file system makes room, then the header is
 * made beside the disk and proved, and only then data moves. From there on every step is
 * LUKS2's or the journal's to survive; see convert.c.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>
#include "backup.h"
#include "commands.h"
#include "convert.h"
#include "driver.h"
#include "error.h"
#include "filesystem.h"
#include "mounted.h"
#include "recovery.h"
#include "ui.h"
#include "volume.h"

struct enable {
	const struct args *args;
	struct volume volume;
	struct filesystem fs;
	struct mounted mounted;
	struct secret *passphrase, *recovery;
	char *file, *uuid;	/* the header until it is on the device */
	unsigned int data_unit;
	int slot;
	bool online;
};

/* Members of something larger are encrypted as a whole, or not by us. */
static int check_signatures(const struct device *device)
{
	static const struct {
		const char *begin, *why;
	} no[] = {
		{ "crypto_LUKS", "it is encrypted already" },
		{ "LVM2_member", "it is part of an LVM volume group: encrypt its logical volumes" },
		{ "linux_raid_member", "it is part of a RAID: encrypt the array" },
		{ "ddf_raid_member", "it is part of a RAID: encrypt the array" },
		{ "isw_raid_member", "it is part of a RAID: encrypt the array" },
		{ "bcache", "it is part of a bcache" },
		{ "zfs_member", "it is part of a ZFS pool" },
		{ "swap", "it is swap space: coffer format makes an encrypted volume of it" },
		{ "BitLocker", "it is encrypted by BitLocker" },
	};
	struct strings found = { 0 };
	char *all;
	int ret = device_signatures(device->path, &found);

	for (unsigned int i = 0; !ret && i < found.nr; i++)
		for (unsigned int n = 0; !ret && n < ARRAY_SIZE(no); n++)
			if (starts_with(found.s[i], no[n].begin))
				ret = fail(starts_with(no[n].begin, "crypto") ? E_EXISTS : E_REFUSED,
					   NULL, "cannot encrypt %s: %s", device->path, no[n].why);
	if (!ret && found.nr != 1) {
		all = found.nr ? strings_join(&found, ", ") : NULL;
		ret = fail(E_REFUSED, found.nr ? "wipefs shows and removes what does not belong there" :
			   "coffer format makes an empty encrypted volume",
			   "cannot encrypt %s in place: it has %s", device->path,
			   all ? all : "no known file system");
		free(all);
	}
	strings_free(&found);
	return ret;
}

static int check_users(struct enable *e)
{
	const struct device *device = &e->volume.device;
	struct users users;
	char *text;
	int ret = 0;

	device_users(device, &users);
	if (users.holders.nr || users.swaps.nr || users.mounts.nr > 1) {
		text = users_text(&users);
		ret = fail(E_BUSY, NULL, "cannot encrypt %s: %s", device->path, text);
		free(text);
	} else if (users.mounts.nr) {
		const char *point = users.mounts.s[0];

		if (!strcmp(point, "/") || !strcmp(point, "/usr") || !strcmp(point, "/boot"))
			ret = fail(E_UNSUPPORTED, NULL,
				   "cannot encrypt %s: the running system is on it (mounted at %s)",
				   device->path, point);
		else
			ret = mounted_get(device->devno, point, &e->mounted);
		e->online = !ret;
	}
	users_free(&users);
	return ret;
}

static int preflight(struct enable *e)
{
	const struct device *device = &e->volume.device;
	uint64_t room;
	int ret;

	if (device->read_only)
		return fail(E_REFUSED, NULL, "cannot encrypt %s: it is read-only", device->path);
	if (device->zoned)
		return fail(E_UNSUPPORTED, NULL, "cannot encrypt %s: zoned devices are not supported",
			    device->path);
	if (device->logical > 4096)
		return fail(E_UNSUPPORTED, NULL, "cannot encrypt %s: its blocks have %u bytes",
			    device->path, device->logical);
	ret = check_signatures(device);
	if (!ret)
		ret = check_users(e);
	if (!ret)
		ret = filesystem_get(device->path, &e->fs);
	if (ret)
		return ret;
	if (device->size < 2 * CONVERT_ROOM)
		return fail(E_TOO_SMALL, NULL, "cannot encrypt %s in place: it has %s, the least is %s",
			    device->path, human_size(device->size), human_size(2 * CONVERT_ROOM));
	room = device->size - CONVERT_ROOM;
	if (e->fs.minimum > room)
		return fail(E_TOO_SMALL, "delete or move something",
			    "cannot encrypt %s in place: the header needs %s, and %s of it are missing",
			    device->path, human_size(CONVERT_ROOM), human_size(e->fs.minimum - room));
	e->data_unit = e->args->data_unit ? e->args->data_unit : 4096;
	while (!e->args->data_unit && (e->fs.block % e->data_unit || device->size % e->data_unit))
		e->data_unit /= 2;
	if (e->fs.block % e->data_unit || e->data_unit < device->logical)
		return fail(E_UNSUPPORTED, NULL, "cannot use data units of %u bytes on %s: the file system's blocks have %u, the device's %u",
			    e->data_unit, device->path, e->fs.block, device->logical);
	return 0;
}

static int ask(struct enable *e)
{
	const struct args *args = e->args;
	bool shrink = e->fs.size > e->volume.device.size - CONVERT_ROOM;
	char *what = device_describe(&e->volume.device);
	bool recovery = true;
	int ret;

	ret = ui_confirm(args->yes, "This encrypts %s where it is. Its %s file system keeps its files%s%s.%s%s%s\n"
			 "A power cut or a reboot does no harm: it goes on where it was.\n"
			 "As with all work on a whole disk, have a backup.", what, e->fs.type,
			 shrink ? " and gets smaller by " : "", shrink ? human_size(CONVERT_ROOM) : "",
			 e->online ? "\nIt is unmounted from " : "", e->online ? e->mounted.point : "",
			 e->online ? " for a moment and can be used while it is encrypted." : "");
	free(what);
	if (!ret && (args->secret.key_file || args->secret.fd >= 0))
		ret = secret_get(&args->secret, &e->passphrase, "");
	else if (!ret)
		ret = secret_ask_new(&e->passphrase, "New passphrase");
	if (!ret && args->no_recovery)
		recovery = false;
	else if (!ret)
		ret = ui_question(&recovery, true, "Make a recovery key, for the day the passphrase is lost?");
	e->recovery = recovery && !ret ? secret_new(1) : NULL;	/* a mark; the key comes later */
	return ret;
}

/* The header in a file beside the disk, with secrets that have opened it once. */
static int make_header(struct enable *e)
{
	const struct args *args = e->args;
	struct crypt_params_luks2 params = {
		.sector_size = e->data_unit, .label = args->label,
		.data_device = e->volume.device.path,
	};
	bool want_recovery = e->recovery, file = args->secret.key_file;
	struct secret *key = NULL, *proof = NULL;
	struct crypt_pbkdf_type pbkdf;
	struct header header = { 0 };
	int ret, fd, opened;

	secret_free(e->recovery);
	e->recovery = NULL;
	e->uuid = read_text("/proc/sys/kernel/random/uuid");
	ret = e->uuid ? journal_write(&e->volume.device, e->uuid, "prepare") :
	      fail(E_FAILED, NULL, "cannot make a UUID");
	if (ret)
		return ret;
	e->file = journal_header(e->uuid);
	fd = open(e->file, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 || posix_fallocate(fd, 0, CONVERT_HEADER))
		ret = fail(E_FAILED, NULL, "cannot make the file %s: %s", e->file, strerror(errno));
	if (fd >= 0)
		close(fd);
	if (!ret)
		ret = secret_random(&key, 64);
	if (ret)
		return ret;
	ret = crypt_init(&header.cd, e->file);
	if (ret)
		return header_failed(ret, "cannot use %s", e->file);
	header_quiet(header.cd);
	header.device = e->volume.device.path;
	header.path = e->file;
	header.luks2 = true;
	pbkdf_passphrase(&pbkdf, args->unlock_time);
	ret = crypt_set_pbkdf_type(header.cd, &pbkdf);
	if (!ret)
		ret = crypt_set_data_offset(header.cd, CONVERT_HEADER / SECTOR);
	if (!ret)
		ret = crypt_format(header.cd, CRYPT_LUKS2, "aes", "xts-plain64", e->uuid, key->data,
				   key->len, &params);
	if (!ret)
		ret = crypt_keyslot_add_by_volume_key(header.cd, 0, key->data, key->len,
						      e->passphrase->data, e->passphrase->len);
	if (ret < 0) {
		ret = header_failed(ret, "cannot make a header for %s", e->volume.device.path);
		goto out;
	}
	header.uuid = crypt_get_uuid(header.cd);
	ret = keyslot_set_name(&header, 0, args->name ? args->name : file ? "key file" : "passphrase",
			       file ? "key-file" : "passphrase");
	if (!ret && args->have_trim && args->trim) {
		ret = crypt_persistent_flags_set(header.cd, CRYPT_FLAGS_ACTIVATION,
						 CRYPT_ACTIVATE_ALLOW_DISCARDS);
		if (ret)
			ret = header_failed(ret, "cannot keep the TRIM setting in the header");
	}
	if (!ret)
		ret = header_try(&header, 0, e->passphrase, &proof, &opened);
	if (!ret && !secret_equal(proof, key))
		ret = fail(E_HEADER, NULL, "the new header does not give the volume key back");
	if (!ret && want_recovery) {
		ret = recovery_add(&header, key, "recovery", &e->recovery, &opened);
		if (!ret)
			ret = recovery_show(e->recovery, e->volume.device.path);
	}
out:
	secret_free(proof);
	secret_free(key);
	crypt_free(header.cd);
	return ret;
}

/* From a plain file system to one whose header says that it is being encrypted. */
static int start(struct enable *e)
{
	const struct device *device = &e->volume.device;
	uint64_t room = (device->size - CONVERT_ROOM) / e->fs.block * e->fs.block;
	struct header *header;
	int ret;

	ret = make_header(e);
	if (!ret && e->online)
		ret = mounted_take_off(&e->mounted);
	if (ret)
		goto undo;
	ret = filesystem_check(&e->fs);
	if (!ret && e->fs.size > room)
		ret = filesystem_resize(&e->fs, room);
	if (!ret)
		ret = convert_begin_encrypt(device, e->file, e->data_unit, e->passphrase, 0);
	if (!ret)
		ret = journal_write(device, e->uuid, "place");
	if (ret)
		goto undo;
	/* from here on there is only forward */
	ret = convert_place_header(device, e->file);
	if (!ret)
		ret = header_load(device->path, NULL, &header);
	if (ret)
		return ret;
	ret = backup_update(header);
	header_free(header);
	if (!ret)
		journal_remove(e->uuid);
	return ret;
undo:
	/* nothing but free space has been written: back to what it was */
	if (e->uuid)
		journal_remove(e->uuid);
	if (e->online)
		mounted_put_back(&e->mounted, device->path);
	return ret;
}

/* A conversion whose header was on its way to the device when the power went. */
static int finish_placing(const struct volume *volume, bool *placed)
{
	struct convert_journal journal;
	bool found;
	int ret;

	*placed = false;
	ret = journal_find(&volume->device, &journal, &found);
	if (ret || !found)
		return ret;
	if (!strcmp(journal.stage, "prepare")) {
		/* the file system is as it was, but for its size */
		journal_remove(journal.uuid);
	} else if (!strcmp(journal.stage, "place")) {
		ret = convert_place_header(&volume->device, journal.header);
		if (!ret) {
			journal_remove(journal.uuid);
			*placed = true;
		}
	}
	journal_free(&journal);
	return ret;
}

/* The name of the open volume of a UUID, which may have several targets while converting. */
static char *active_name(const char *uuid)
{
	struct strings names = { 0 };
	char squeezed[33], *prefix, *found = NULL;
	int n = 0;

	for (const char *p = uuid; *p && n < 32; p++)
		if (*p != '-')
			squeezed[n++] = *p;
	squeezed[n] = 0;
	prefix = xasprintf("CRYPT-LUKS2-%s-", squeezed);
	if (!mapping_names(&names)) {
		for (unsigned int i = 0; i < names.nr && !found; i++) {
			struct mapping map;

			if (!mapping_find(names.s[i], &map))
				continue;
			if (starts_with(map.uuid, prefix))
				found = xstrdup(names.s[i]);
			mapping_free(&map);
		}
	} else {
		error_clear();
	}
	strings_free(&names);
	free(prefix);
	return found;
}

static int open_online(struct enable *e, struct header *header, char **name)
{
	enum driver got;
	bool through;
	char *path;
	int ret;

	ret = driver_prepare(e->args->driver, &through, &got);
	if (ret)
		return ret;
	*name = xasprintf("%s_crypt", e->volume.device.kname);
	ret = crypt_activate_by_passphrase(header->cd, *name, 0, e->passphrase->data,
					   e->passphrase->len, 0);
	if (ret < 0)
		return header_failed(ret, "cannot open %s while it is encrypted",
				     e->volume.device.path);
	path = xasprintf("/dev/mapper/%s", *name);
	ret = mounted_put_back(&e->mounted, path);
	free(path);
	return ret;
}

static int go_on(struct enable *e, struct secret *secret)
{
	const char *path = e->volume.device.path;
	struct convert_state state;
	struct header *header;
	char *name = NULL;
	int ret;

	ret = header_load(path, NULL, &header);
	if (ret)
		return ret;
	name = active_name(header->uuid);
	if (e->online && !name)
		ret = open_online(e, header, &name);
	if (!ret)
		ret = convert_run(header, name, secret, "Encrypting", e->args->max_rate);
	if (!ret) {
		convert_get_state(header, &state);
		ret = state.active ? fail(E_FAILED, NULL, "%s is not encrypted to its end", path) :
		      backup_update(header);
	}
	if (!ret) {
		say("%s is encrypted%s%s.", path, name ? ", open as /dev/mapper/" : "", name ? name : "");
		if (!name)
			say("coffer open %s opens it.", path);
		put_str(ui_result(), "uuid", header->uuid);
		put_str(ui_result(), "name", name);
	}
	free(name);
	header_free(header);
	return ret;
}

static void enable_free(struct enable *e)
{
	secret_free(e->passphrase);
	secret_free(e->recovery);
	filesystem_free(&e->fs);
	mounted_free(&e->mounted);
	free(e->file);
	free(e->uuid);
	volume_free(&e->volume);
}

int cmd_enable(const struct args *args)
{
	struct enable e = { .args = args };
	bool placed;
	int ret;

	ret = volume_find(args->words[0], NULL, &e.volume);
	if (ret)
		return ret;
	if (e.volume.open)
		ret = fail(E_EXISTS, NULL, "%s is encrypted already, as %s", args->words[0],
			   e.volume.map.name);
	if (!ret)
		ret = finish_placing(&e.volume, &placed);
	if (!ret && placed)
		ret = fail(E_EXISTS, "coffer resume goes on",
			   "the encryption of %s had begun before", args->words[0]);
	if (!ret)
		ret = preflight(&e);
	if (!ret)
		ret = ask(&e);
	if (!ret)
		ret = start(&e);
	if (!ret)
		ret = go_on(&e, e.passphrase);
	enable_free(&e);
	return ret;
}

int cmd_resume(const struct args *args)
{
	struct unlock unlock = { .source = args->secret, .no_token = true };
	struct secret *key = NULL, *secret = NULL;
	struct enable e = { .args = args };
	struct header *header = NULL;
	struct convert_state state;
	struct convert_run run;
	bool placed;
	int ret;

	ret = volume_find(args->words[0], NULL, &e.volume);
	if (!ret)
		ret = finish_placing(&e.volume, &placed);
	if (!ret)
		ret = journal_load(&e.volume.device, NULL, &header);
	if (ret)
		goto out;
	convert_get_run(header->uuid, &run);
	convert_pause(header->uuid, false);
	if (run.running) {
		say("%s goes on.", args->words[0]);
		goto out;
	}
	convert_get_state(header, &state);
	if (!state.active) {
		ret = fail(E_NO_VOLUME, NULL, "%s is not being converted", args->words[0]);
		goto out;
	}
	if (state.decrypting) {
		header_free(header);
		enable_free(&e);
		return cmd_disable(args);
	}
	unlock.what = args->words[0];
	unlock.keep = &secret;
	ret = header_unlock(header, &unlock, &key);
	header_free(header);
	header = NULL;
	if (!ret)
		ret = go_on(&e, secret);
out:
	secret_free(key);
	secret_free(secret);
	header_free(header);
	enable_free(&e);
	return ret;
}

int cmd_pause(const struct args *args)
{
	struct header *header = NULL;
	struct volume volume;
	struct convert_run run;
	int ret;

	ret = volume_find(args->words[0], NULL, &volume);
	if (ret)
		return ret;
	ret = journal_load(&volume.device, NULL, &header);
	if (!ret) {
		convert_get_run(header->uuid, &run);
		ret = run.running ? convert_pause(header->uuid, true) :
		      fail(E_NO_VOLUME, NULL, "no conversion of %s is running", args->words[0]);
	}
	if (!ret)
		say("%s waits; coffer resume %s goes on.", args->words[0], args->words[0]);
	header_free(header);
	volume_free(&volume);
	return ret;
}
