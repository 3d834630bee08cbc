// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * coffer erase: a disk that nothing opens any more, in a second.
 *
 * The keyslots go first, each by itself, so that a run that is cut off has done that; then
 * all that lies in front of the data, both copies of the header with it, and the automatic
 * copy. Nothing is written while the volume is in use.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "backup.h"
#include "commands.h"
#include "convert.h"
#include "copies.h"
#include "error.h"
#include "header.h"
#include "live.h"
#include "ui.h"
#include "volume.h"

#define USUAL (16 * MIB)	/* what LUKS2 has in front of the data, if the header cannot tell */

static int check_unused(const struct volume *volume)
{
	struct users users;
	char *text;
	int ret = 0;

	if (volume->open)
		return fail(E_BUSY, "close it first: coffer close", "cannot erase %s: it is open as %s",
			    volume->device.path, volume->map.name);
	if (volume->device.read_only)
		return fail(E_REFUSED, NULL, "cannot erase %s: it is read-only", volume->device.path);
	ret = journal_refuse(&volume->device, "erase");
	if (ret)
		return ret;
	device_users(&volume->device, &users);
	if (users_any(&users)) {
		text = users_text(&users);
		ret = fail(E_BUSY, NULL, "cannot erase %s: %s", volume->device.path, text);
		free(text);
	}
	users_free(&users);
	return ret;
}

/* Overwrite the beginning of a device or header file, and see that it is gone. */
static int overwrite(const char *where, uint64_t bytes)
{
	int fd = open(where, O_RDWR | O_CLOEXEC | O_EXCL), ret = 0;
	off_t size = fd >= 0 ? lseek(fd, 0, SEEK_END) : 0;
	char *zeros = xcalloc(1, MIB);
	struct copies left;

	if (fd < 0) {
		ret = fail(errno == EBUSY ? E_BUSY : E_IO, NULL, "cannot write to %s: %s", where,
			   strerror(errno));
		goto out;
	}
	if (bytes > (uint64_t)size)
		bytes = size;
	for (uint64_t at = 0; at < bytes && !ret;) {
		ssize_t done = pwrite(fd, zeros, bytes - at < MIB ? bytes - at : MIB, at);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			ret = fail(E_IO, NULL, "cannot erase %s: %s", where, strerror(errno));
		at += ret ? 0 : done;
	}
	if (fsync(fd) && !ret)
		ret = fail(E_IO, NULL, "cannot erase %s: %s", where, strerror(errno));
	close(fd);
	if (!ret)
		ret = copies_check(where, &left);
	if (!ret && (left.whole[0] || left.whole[1]))
		ret = fail(E_IO, NULL, "cannot erase %s: its header is still there", where);
out:
	free(zeros);
	return ret;
}

static int destroy_keyslots(struct header *header, unsigned int *nr)
{
	int max = crypt_keyslot_max(crypt_get_type(header->cd)), err;

	for (int slot = 0; slot < max; slot++) {
		if (crypt_keyslot_status(header->cd, slot) <= CRYPT_SLOT_INACTIVE)
			continue;
		err = crypt_keyslot_destroy(header->cd, slot);
		if (err < 0)
			return header_failed(err, "cannot erase keyslot %d of %s", slot, header->device);
		(*nr)++;
	}
	return 0;
}

int cmd_erase(const struct args *args)
{
	struct header *header = NULL;
	struct copies copies = { 0 };
	uint64_t bytes = USUAL;
	struct volume volume;
	unsigned int nr = 0;
	bool copy = false;
	const char *where;
	char *what = NULL;
	int ret;

	ret = volume_find(args->words[0], args->header, &volume);
	if (ret)
		return ret;
	where = args->header ? args->header : volume.device.path;
	ret = check_unused(&volume);
	if (!ret)
		ret = copies_check(where, &copies);
	if (!ret)
		ret = header_load(volume.device.path, args->header, &header);
	if (ret == E_HEADER) {
		/* what is damaged may still be mended by somebody else */
		error_clear();
		ret = 0;
	}
	if (ret)
		goto out;
	if (header)
		bytes = args->header ? UINT64_MAX : crypt_get_data_offset(header->cd) * SECTOR;
	what = device_describe(&volume.device);
	ret = ui_confirm(args->yes, "Everything on %s becomes unreadable, for everybody and for good.%s%s",
			 what, args->header ? "\nErased is its header, in " : "",
			 args->header ? args->header : "");
	if (ret)
		goto out;
	signals_hold();
	if (header)
		ret = destroy_keyslots(header, &nr);
	if (!ret)
		ret = overwrite(where, bytes);
	if (!ret && *copies.uuid)
		ret = backup_erase(copies.uuid, &copy);
	signals_let_go();
	if (ret)
		goto out;
	say("%s is erased: its header and %u secret%s%s are gone.", what, nr, nr == 1 ? "" : "s",
	    copy ? ", and the automatic copy" : "");
	say("A copy of the header elsewhere still opens the disk: destroy it too, if there is one.");
	put_str(ui_result(), "device", volume.device.path);
	put_num(ui_result(), "secrets", nr);
	put_bool(ui_result(), "automatic_copy", copy);
out:
	free(what);
	header_free(header);
	volume_free(&volume);
	return ret;
}
