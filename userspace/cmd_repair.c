// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * coffer repair: a damaged header, from its other copy or from a file.
 *
 * What is nearest to the disk comes first: a copy on the disk knows of all secrets, one in
 * a file of those of its day. A file of another disk is refused wherever anything is left
 * that says so; where nothing is, the user has to agree.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "backup.h"
#include "commands.h"
#include "convert.h"
#include "copies.h"
#include "error.h"
#include "live.h"
#include "ui.h"
#include "volume.h"

static const char *const ordinal[] = { "first", "second" };

struct repair {
	struct volume volume;
	const char *where;	/* the device or file with the header */
	struct copies copies;
	bool whole;		/* nothing is damaged */
};

static int check_target(const struct repair *r)
{
	struct users users;
	char *text;
	int ret = 0;

	if (r->volume.device.read_only)
		return fail(E_REFUSED, NULL, "cannot repair %s: it is read-only", r->where);
	if (r->volume.open)
		return 0;
	device_users(&r->volume.device, &users);
	if (users_any(&users)) {
		text = users_text(&users);
		ret = fail(E_BUSY, NULL, "cannot repair %s: %s", r->where, text);
		free(text);
	}
	users_free(&users);
	return ret;
}

/* One copy from the other: libcryptsetup does it as it reads. */
static int mend(struct repair *r)
{
	unsigned int bad = r->copies.whole[0] ? 1 : 0;
	struct header *header = NULL;
	int ret;

	signals_hold();
	ret = header_load(r->volume.device.path, r->where == r->volume.device.path ? NULL : r->where,
			  &header);
	if (!ret)
		ret = copies_check(r->where, &r->copies);
	if (!ret && !(r->copies.whole[0] && r->copies.whole[1]))
		ret = fail(E_HEADER, NULL, "cannot repair %s: the %s copy of its header does not stay",
			   r->where, ordinal[bad]);
	if (!ret)
		ret = backup_update(header);
	signals_let_go();
	header_free(header);
	if (ret)
		return ret;
	say("The %s copy of the header of %s was damaged. It is restored from the %s one.",
	    ordinal[bad], r->where, ordinal[!bad]);
	put_str(ui_result(), "damaged", ordinal[bad]);
	put_str(ui_result(), "from", bad ? "first copy" : "second copy");
	return 0;
}

/* Is this file a header that can be of this volume? */
static int check_file(const struct repair *r, const char *file, struct crypt_device **cd)
{
	const char *known = *r->copies.uuid ? r->copies.uuid : NULL;
	const struct mapping *map = &r->volume.map;
	uint64_t offset;
	char open[37];

	if (access(file, R_OK))
		return fail(E_NO_VOLUME, NULL, "cannot read %s: %s", file, strerror(errno));
	if (crypt_init(cd, file))
		return fail(E_HEADER, NULL, "cannot use %s: it cannot be read", file);
	header_quiet(*cd);
	if (crypt_load(*cd, CRYPT_LUKS, NULL))
		return fail(E_HEADER, NULL, "cannot use %s: it is not a whole copy of a LUKS header", file);
	if (r->volume.open && volume_uuid(&r->volume, open))
		known = open;
	if (known && strcmp(known, crypt_get_uuid(*cd)))
		return fail(E_REFUSED, NULL, "cannot use %s: it is the header of another disk, with the UUID %s; that of %s is %s",
			    file, crypt_get_uuid(*cd), r->where, known);
	offset = crypt_get_data_offset(*cd);
	if (r->volume.open && mapping_is_crypt(map) &&
	    (map->offset != offset || (int)map->key_bytes != crypt_get_volume_key_size(*cd)))
		return fail(E_REFUSED, NULL, "cannot use %s: its data begin elsewhere or have another key than those of %s",
			    file, map->name);
	if (offset * SECTOR >= r->volume.device.size)
		return fail(E_REFUSED, NULL, "cannot use %s: its data begin at %s, %s has %s", file,
			    human_size(offset * SECTOR), r->volume.device.path,
			    human_size(r->volume.device.size));
	return 0;
}

static int agree(const struct repair *r, const struct args *args, const char *file, const char *uuid)
{
	struct strings found = { 0 };
	char *what, *has;
	int ret;

	if (*r->copies.uuid && !r->whole)
		return 0;
	what = device_describe(&r->volume.device);
	if (r->whole) {
		ret = ui_confirm(args->yes, "The header of %s is whole.\nIt is replaced by that in %s: secrets that were added since are lost.",
				 what, file);
	} else {
		ret = device_signatures(r->volume.device.path, &found);
		has = found.nr ? strings_join(&found, ", ") : xstrdup("nothing that is known");
		if (!ret)
			ret = ui_confirm(args->yes, "Nothing is left of a header on %s.\nIt holds: %s.\nThe header in %s is written to it (UUID %s). If it is another disk's, what is there is lost.",
					 what, has, file, uuid);
		free(has);
	}
	free(what);
	strings_free(&found);
	return ret;
}

static int restore(struct repair *r, const struct args *args, const char *file, bool automatic)
{
	struct crypt_device *from = NULL, *to = NULL;
	struct header *header = NULL;
	char when[32] = "";
	struct stat st;
	int ret, err;

	ret = journal_refuse(&r->volume.device, "restore the header of");
	if (!ret)
		ret = check_file(r, file, &from);
	if (!ret)
		ret = agree(r, args, file, crypt_get_uuid(from));
	if (ret)
		goto out;
	if (!stat(file, &st))
		strftime(when, sizeof(when), "%Y-%m-%d %H:%M", localtime(&st.st_mtime));
	signals_hold();
	err = crypt_init(&to, r->where);
	if (!err) {
		header_quiet(to);
		err = crypt_header_restore(to, crypt_get_type(from), file);
	}
	if (err)
		ret = header_failed(err, "cannot write the header in %s to %s", file, r->where);
	if (!ret)
		ret = header_load(r->volume.device.path,
				  r->where == r->volume.device.path ? NULL : r->where, &header);
	if (!ret && strcmp(header->uuid, crypt_get_uuid(from)))
		ret = fail(E_HEADER, NULL, "the header in %s did not get to %s", file, r->where);
	if (!ret && !automatic)
		ret = backup_update(header);
	signals_let_go();
	if (ret)
		goto out;
	say("The header of %s is restored from %s %s, of %s.", r->where,
	    automatic ? "the automatic copy" : "the copy", file, when);
	say("It opens with the secrets of that day.");
	put_str(ui_result(), "damaged", r->whole ? NULL : "all");
	put_str(ui_result(), "from", automatic ? "automatic copy" : "file");
	put_str(ui_result(), "file", file);
out:
	header_free(header);
	if (from)
		crypt_free(from);
	if (to)
		crypt_free(to);
	return ret;
}

static int from_automatic(struct repair *r, const struct args *args)
{
	char uuid[37], *path, *next;
	const char *known = r->volume.open ? volume_uuid(&r->volume, uuid) : NULL;
	int ret;

	if (!known)
		known = *r->copies.uuid ? r->copies.uuid : NULL;
	next = xasprintf("if you have a copy: coffer repair %s --from FILE; automatic ones are in " STATE_DIR "/headers",
			 args->words[0]);
	if (!known) {
		ret = fail(E_HEADER, next, "cannot repair %s: nothing is left of a header that says which volume it was",
			   r->where);
	} else {
		path = backup_path(known);
		ret = access(path, R_OK) ?
		      fail(E_HEADER, next, "cannot repair %s: no copy of its header is whole, and there is no %s",
			   r->where, path) : restore(r, args, path, true);
		free(path);
	}
	free(next);
	return ret;
}

int cmd_repair(const struct args *args)
{
	struct repair r = { 0 };
	int ret;

	ret = volume_find(args->words[0], args->header, &r.volume);
	if (ret)
		return ret;
	if (!r.volume.has_device) {
		ret = fail(E_NO_VOLUME, NULL, "cannot repair %s: its device is gone", args->words[0]);
		goto out;
	}
	r.where = args->header ? args->header : r.volume.device.path;
	ret = copies_check(r.where, &r.copies);
	if (ret)
		goto out;
	r.whole = r.copies.whole[0] && (r.copies.nr == 1 || r.copies.whole[1]);
	if (r.whole && !args->from) {
		say("The header of %s is whole: nothing to repair.", r.where);
		put_str(ui_result(), "damaged", NULL);
		goto out;
	}
	ret = check_target(&r);
	if (ret)
		goto out;
	if (args->from)
		ret = restore(&r, args, args->from, false);
	else if (r.copies.whole[0] || r.copies.whole[1])
		ret = mend(&r);
	else
		ret = from_automatic(&r, args);
out:
	volume_free(&r.volume);
	return ret;
}
