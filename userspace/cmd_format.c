// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * coffer format: an empty encrypted volume.
 *
 * Everything that can be refused is refused, and every question asked, before the first
 * byte is written.
 */
#define _GNU_SOURCE
#include <blkid/blkid.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "backup.h"
#include "commands.h"
#include "error.h"
#include "recovery.h"
#include "ui.h"
#include "volume.h"

/* LUKS2's own area in front of the data, and what is worth to have behind it. */
#define HEADER_BYTES (16 * MIB)
#define SMALLEST (HEADER_BYTES + MIB)

static int check_device(const struct volume *volume, const struct args *args)
{
	const struct device *device = &volume->device;
	struct users users;
	char *text;
	int ret = 0;

	if (volume->open)
		return fail(E_BUSY, "close it first", "cannot format %s: it is open as %s",
			    device->path, volume->map.name);
	device_users(device, &users);
	if (users_any(&users)) {
		text = users_text(&users);
		ret = fail(E_BUSY, NULL, "cannot format %s: %s", device->path, text);
		free(text);
	} else if (device->read_only) {
		ret = fail(E_REFUSED, NULL, "cannot format %s: it is read-only", device->path);
	} else if (device->zoned) {
		ret = fail(E_UNSUPPORTED, "cryptsetup and dm-crypt can use it",
			   "cannot format %s: zoned devices are not supported", device->path);
	} else if (device->size < (args->header ? MIB : SMALLEST)) {
		ret = fail(E_TOO_SMALL, NULL, "cannot format %s: it has %s, the smallest volume needs %s",
			   device->path, human_size(device->size),
			   human_size(args->header ? MIB : SMALLEST));
	}
	users_free(&users);
	return ret;
}

static int choose_data_unit(const struct device *device, const struct args *args,
			    unsigned int *unit, const char **why)
{
	if (args->data_unit) {
		if (args->data_unit < device->logical)
			return fail(E_USAGE, NULL, "cannot use data units of %u bytes: the blocks of %s have %u",
				    args->data_unit, device->path, device->logical);
		*unit = args->data_unit;
		*why = "as asked";
		return 0;
	}
	if (device->logical > 4096)
		return fail(E_UNSUPPORTED, NULL, "cannot format %s: its blocks have %u bytes, more than a data unit can",
			    device->path, device->logical);
	*unit = 4096;
	*why = device->physical >= 4096 ? "the device's physical block" :
	       "fastest, and what file systems use";
	return 0;
}

static int confirm(const struct device *device, const struct args *args)
{
	struct strings found = { 0 };
	char *what = device_describe(device), *has;
	int ret = device_signatures(device->path, &found);

	has = found.nr ? strings_join(&found, ", ") : xstrdup("nothing that is known");
	if (!ret)
		ret = ui_confirm(args->yes, "This erases everything on %s.\nIt holds: %s.", what, has);
	free(has);
	free(what);
	strings_free(&found);
	return ret;
}

/* Old signatures, also those at the end of the device that the header does not cover. */
static int wipe_signatures(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC | O_EXCL), ret = 0;
	blkid_probe probe = fd >= 0 ? blkid_new_probe() : NULL;

	if (fd < 0)
		return fail(errno == EBUSY ? E_BUSY : E_IO, NULL, "cannot write to %s: %s", path,
			    strerror(errno));
	if (!probe || blkid_probe_set_device(probe, fd, 0, 0)) {
		ret = fail(E_IO, NULL, "cannot read %s for signatures", path);
		goto out;
	}
	blkid_probe_enable_superblocks(probe, 1);
	blkid_probe_set_superblocks_flags(probe, BLKID_SUBLKS_MAGIC);
	blkid_probe_enable_partitions(probe, 1);
	blkid_probe_set_partitions_flags(probe, BLKID_PARTS_MAGIC);
	while (!ret && !blkid_do_probe(probe))
		if (blkid_do_wipe(probe, 0))
			ret = fail(E_IO, NULL, "cannot erase an old signature on %s", path);
	fsync(fd);
out:
	if (probe)
		blkid_free_probe(probe);
	close(fd);
	return ret;
}

static int make_header_file(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600), ret = 0;

	if (fd < 0)
		return fail(errno == EEXIST ? E_EXISTS : E_FAILED, NULL,
			    "cannot make the header file %s: %s", path, strerror(errno));
	if (posix_fallocate(fd, 0, HEADER_BYTES))
		ret = fail(E_FAILED, NULL, "cannot make the header file %s: no space", path);
	close(fd);
	return ret;
}

static int write_header(struct header *header, const struct args *args, unsigned int unit,
			bool trim, const struct secret *passphrase, struct secret **volume_key)
{
	struct crypt_params_luks2 params = {
		.sector_size = unit,
		.label = args->label,
		.data_device = args->header ? header->device : NULL,
	};
	bool file = args->secret.key_file;
	struct crypt_pbkdf_type pbkdf;
	struct secret *proof = NULL;
	int ret, opened;

	ret = secret_random(volume_key, 64);
	if (ret)
		return ret;
	pbkdf_passphrase(&pbkdf, args->unlock_time);
	ret = crypt_set_pbkdf_type(header->cd, &pbkdf);
	if (!ret)
		ret = crypt_format(header->cd, CRYPT_LUKS2, "aes", "xts-plain64", NULL,
				   (*volume_key)->data, (*volume_key)->len, &params);
	if (ret)
		return header_failed(ret, "cannot write a header to %s", header->device);
	header->uuid = crypt_get_uuid(header->cd);
	header->luks2 = true;
	ret = crypt_keyslot_add_by_volume_key(header->cd, 0, (*volume_key)->data,
					      (*volume_key)->len, passphrase->data,
					      passphrase->len);
	if (ret < 0)
		return header_failed(ret, "cannot add the %s to %s", file ? "key file" : "passphrase",
				     header->device);
	ret = keyslot_set_name(header, 0, args->name ? args->name : file ? "key file" : "passphrase",
			       file ? "key-file" : "passphrase");
	if (ret)
		return ret;
	if (trim) {
		ret = crypt_persistent_flags_set(header->cd, CRYPT_FLAGS_ACTIVATION,
						 CRYPT_ACTIVATE_ALLOW_DISCARDS);
		if (ret)
			return header_failed(ret, "cannot keep the TRIM setting in the header");
	}
	/* a secret counts when it has opened the volume once */
	ret = header_try(header, 0, passphrase, &proof, &opened);
	if (!ret && !secret_equal(proof, *volume_key))
		ret = fail(E_HEADER, NULL, "the new header of %s does not give the volume key back",
			   header->device);
	secret_free(proof);
	return ret;
}

int cmd_format(const struct args *args)
{
	struct header header = { 0 };
	struct secret *passphrase = NULL, *key = NULL, *recovery = NULL;
	bool trim = args->trim, want_recovery = !args->no_recovery;
	struct volume volume;
	unsigned int unit = 0;
	const char *why = "";
	char *text;
	int ret, slot;

	ret = args->name ? keyslot_check_name(NULL, args->name) : 0;
	if (ret)
		return ret;
	ret = volume_find(args->words[0], NULL, &volume);
	if (ret)
		return ret;
	header.device = volume.device.path;
	ret = check_device(&volume, args);
	if (!ret)
		ret = choose_data_unit(&volume.device, args, &unit, &why);
	if (!ret && args->header && !access(args->header, F_OK))
		ret = fail(E_EXISTS, NULL, "cannot make the header file %s: it exists", args->header);
	if (!ret)
		ret = confirm(&volume.device, args);
	if (!ret && (args->secret.key_file || args->secret.fd >= 0))
		ret = secret_get(&args->secret, &passphrase, "");
	else if (!ret)
		ret = secret_ask_new(&passphrase, "New passphrase");
	if (!ret && !args->have_trim && volume.device.discards)
		ret = ui_question(&trim, true, "Let the SSD know which blocks are free (TRIM)? It stays fast, but the disk shows\n"
				  "how much of it is in use.");
	if (!ret && !args->no_recovery)
		ret = ui_question(&want_recovery, true, "Make a recovery key, for the day the passphrase is lost?");
	if (!ret)
		ret = wipe_signatures(volume.device.path);
	if (!ret && args->header)
		ret = make_header_file(args->header);
	if (ret)
		goto out;
	ret = crypt_init(&header.cd, args->header ? args->header : volume.device.path);
	if (ret) {
		ret = header_failed(ret, "cannot use %s", volume.device.path);
		goto out;
	}
	header_quiet(header.cd);
	header.path = (char *)args->header;
	ret = write_header(&header, args, unit, trim, passphrase, &key);
	if (!ret && want_recovery)
		ret = recovery_add(&header, key, "recovery", &recovery, &slot);
	if (!ret)
		ret = backup_update(&header);
	if (ret)
		goto out;
	text = device_describe(&volume.device);
	say("%s is encrypted with AES-256-XTS.", text);
	free(text);
	say("Data unit: %u bytes (%s). TRIM: %s.", unit, why, trim ? "on" : "off");
	text = backup_path(header.uuid);
	say("A copy of its header is in %s.", text);
	put_str(ui_result(), "device", volume.device.path);
	put_str(ui_result(), "uuid", header.uuid);
	put_num(ui_result(), "data_unit", unit);
	put_bool(ui_result(), "trim", trim);
	put_str(ui_result(), "header_backup", text);
	free(text);
	if (volume.device.size % unit)
		note("the last %u bytes of %s are not used: its size is not a multiple of the data unit",
		     (unsigned int)(volume.device.size % unit), volume.device.path);
	if (recovery) {
		ret = recovery_show(recovery, volume.device.path);
		if (ret) {
			keyslot_remove(&header, slot);
			backup_update(&header);
			note("the recovery key was taken away again; the volume itself is ready");
		}
	}
	if (!ret)
		say("coffer open %s opens it.", args->words[0]);
out:
	secret_free(passphrase);
	secret_free(recovery);
	secret_free(key);
	if (header.cd)
		crypt_free(header.cd);
	volume_free(&volume);
	return ret;
}
