// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * coffer status: one answer for the whole machine.
 *
 * Everybody gets to know what is encrypted: names and sizes come from /sys. How it is
 * encrypted and with which secrets stands in headers and tables, which root may read.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "backup.h"
#include "commands.h"
#include "convert.h"
#include "error.h"
#include "header.h"
#include "ui.h"
#include "volume.h"

static void attention(struct json_object *object, struct strings *list, char *owned)
{
	struct json_object *array;

	if (!json_object_object_get_ex(object, "attention", &array)) {
		array = json_object_new_array();
		json_object_object_add(object, "attention", array);
	}
	json_object_array_add(array, json_object_new_string(owned));
	strings_add(list, owned);
}

static void show_secrets(const struct header *header, struct json_object *object)
{
	struct json_object *array = json_object_new_array();
	struct strings names = { 0 };
	struct keyslots list;
	char *text;

	json_object_object_add(object, "secrets", array);
	if (keyslots_get(header, &list))
		return;
	for (unsigned int i = 0; i < list.nr; i++) {
		const struct keyslot *k = &list.slots[i];

		json_object_array_add(array, keyslot_json(k));
		strings_add(&names, strcmp(k->name, k->kind) && strcmp(k->kind, "unknown") ?
			    xasprintf("%s (%s)", k->name, k->kind) : xstrdup(k->name));
	}
	text = strings_join(&names, ", ");
	say("  secrets     %s", list.nr ? text : "none: nothing opens it any more");
	free(text);
	strings_free(&names);
	keyslots_free(&list);
}

static void show_conversion(const struct volume *volume, const struct header *header,
			    struct json_object *object, struct strings *warnings)
{
	struct convert_state state;
	struct convert_run run;
	struct json_object *entry;
	const char *what;
	double percent;

	convert_get_state(header, &state);
	if (!state.active)
		return;
	convert_get_run(header->uuid, &run);
	what = state.decrypting ? "decrypting" : state.rotating ? "changing the key" : "encrypting";
	percent = state.total ? 100.0 * state.done / state.total : 0;
	entry = json_object_new_object();
	json_object_object_add(object, "conversion", entry);
	put_str(entry, "what", what);
	put_num(entry, "done", state.done);
	put_num(entry, "total", state.total);
	put_bool(entry, "running", run.running);
	put_str(entry, "paused", run.paused ? run.why : NULL);
	if (run.running && !run.paused && run.rate) {
		uint64_t left = (state.total - state.done) / run.rate;

		put_num(entry, "bytes_per_second", run.rate);
		put_num(entry, "seconds_left", left);
		say("  conversion  %s, %.1f%%, %s/s, %llu min left", what, percent,
		    human_size(run.rate), (unsigned long long)(left + 59) / 60);
	} else if (run.running) {
		say("  conversion  %s, %.1f%%%s%s", what, percent, run.paused ? ", paused by " : "",
		    run.why);
	} else {
		say("  conversion  %s, %.1f%%, stopped%s", what, percent,
		    state.crashed ? " in the middle of a step" : "");
		attention(object, warnings, xasprintf("%s: the conversion has stopped; coffer %s %s goes on",
						      volume_display(volume),
						      state.decrypting ? "disable" : "resume",
						      volume->device.path));
	}
}

static void show_header(const struct volume *volume, struct json_object *object,
			struct strings *warnings)
{
	struct header *header;
	char when[32];
	time_t backup;

	if (journal_load(&volume->device, volume->header, &header)) {
		if (error_code() == E_HEADER)
			attention(object, warnings, xasprintf("%s: %s", volume_display(volume),
							      error_message()));
		error_clear();
		return;
	}
	put_num(object, "luks", header->luks2 ? 2 : 1);
	put_str(object, "uuid", header->uuid);
	put_str(object, "label", crypt_get_label(header->cd));
	put_num(object, "data_unit", crypt_get_sector_size(header->cd));
	say("  format      LUKS%d, %s-%s, data units of %d bytes", header->luks2 ? 2 : 1,
	    crypt_get_cipher(header->cd), crypt_get_cipher_mode(header->cd),
	    crypt_get_sector_size(header->cd));
	show_secrets(header, object);
	show_conversion(volume, header, object, warnings);
	if (backup_time(header->uuid, &backup)) {
		bool current = backup_is_current(header);

		strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", gmtime(&backup));
		put_str(object, "header_backup", when);
		put_bool(object, "header_backup_current", current);
		strftime(when, sizeof(when), "%Y-%m-%d %H:%M", localtime(&backup));
		say("  header copy %s%s", when, current ? "" : ", older than the header");
	} else {
		put_str(object, "header_backup", NULL);
		say("  header copy none");
		attention(object, warnings, xasprintf("%s has no copy of its header: coffer backup %s",
						      volume_display(volume), volume_display(volume)));
	}
	header_free(header);
}

static void show_open(const struct volume *volume, struct json_object *object,
		      struct strings *warnings)
{
	const struct mapping *map = &volume->map;
	bool wiped = mapping_key_wiped(map);
	struct strings points = { 0 };
	char cipher_driver[64] = "", *text;

	mounts_of(map->devno, NULL, &points);
	text = strings_join(&points, ", ");
	say("%s: %s, %s%s%s", map->name, human_size(map->size * SECTOR),
	    wiped ? "locked (its key is not in memory)" : map->suspended ? "suspended" : "open",
	    points.nr ? ", mounted at " : "", text);
	free(text);
	put_str(object, "name", map->name);
	put_str(object, "state", wiped ? "locked" : map->suspended ? "suspended" : "open");
	put_num(object, "size", map->size * SECTOR);
	put_str(object, "target", map->target);
	put_str(object, "driver", mapping_on_coffer(map) ? "coffer" : "dm-crypt");
	put_bool(object, "trim", map->discards);
	put_bool(object, "read_only", map->read_only);
	put_num(object, "data_unit", map->data_unit);
	if (mapping_on_coffer(map))
		sscanf(map->info, "%63s", cipher_driver);
	put_str(object, "cipher_driver", *cipher_driver ? cipher_driver : NULL);
	say("  device      %s", volume->has_device ? volume->device.path : "?");
	say("  driver      %s%s%s%s", mapping_on_coffer(map) ? "coffer" : "dm-crypt",
	    *cipher_driver ? " (" : "", cipher_driver, *cipher_driver ? ")" : "");
	say("  TRIM        %s", map->discards ? "on" : "off: coffer open --trim on keeps it on from the next time");
	strings_free(&points);
	if (volume->has_device)
		show_header(volume, object, warnings);
}

static void show_closed(const struct volume *volume, struct json_object *object,
			struct strings *warnings)
{
	char *text = device_describe(&volume->device);

	say("%s: closed", text);
	free(text);
	put_str(object, "name", NULL);
	put_str(object, "state", "closed");
	put_num(object, "size", volume->device.size);
	show_header(volume, object, warnings);
}

static void show(const struct volume *volume, struct json_object *array, struct strings *warnings)
{
	struct json_object *object = json_object_new_object();

	json_object_array_add(array, object);
	if (volume->has_device) {
		put_str(object, "device", volume->device.path);
		put_str(object, "model", volume->device.model);
	}
	if (volume->open)
		show_open(volume, object, warnings);
	else
		show_closed(volume, object, warnings);
}

/*
 * Closed volumes: every device that looks like LUKS, or has its header with us while it is
 * converted, and carries no mapping.
 */
static void show_rest(struct json_object *array, struct strings *warnings,
		      const struct volume *open, unsigned int nr)
{
	struct strings paths = { 0 };
	unsigned int luks;

	devices_with_luks(&paths);
	luks = paths.nr;
	journal_devices(&paths);
	for (unsigned int p = 0; p < paths.nr; p++) {
		struct volume volume;
		bool shown = false;

		for (unsigned int i = 0; i < luks && p >= luks; i++)
			shown |= !strcmp(paths.s[i], paths.s[p]);
		if (shown)
			continue;
		if (volume_find(paths.s[p], NULL, &volume)) {
			error_clear();
			continue;
		}
		for (unsigned int i = 0; i < nr; i++)
			shown |= volume.open && open[i].map.devno == volume.map.devno;
		if (!shown)
			show(&volume, array, warnings);
		volume_free(&volume);
	}
	strings_free(&paths);
}

static bool root_encrypted(void)
{
	struct strings stack = { 0 };
	bool encrypted = false;
	char *kname, *uuid;
	dev_t devno;

	if (!mount_devno("/", &devno))
		return false;
	kname = devno_kname(devno);
	if (!kname)
		return false;
	strings_add(&stack, kname);
	device_stack_below(kname, &stack);
	for (unsigned int i = 0; i < stack.nr && !encrypted; i++) {
		uuid = read_text("/sys/class/block/%s/dm/uuid", stack.s[i]);
		encrypted = uuid && starts_with(uuid, "CRYPT-");
		free(uuid);
	}
	strings_free(&stack);
	return encrypted;
}

/* Without root there are names and sizes, from /sys. */
static void show_from_sys(struct json_object *array)
{
	for (unsigned int minor = 0; minor < 256; minor++) {
		char *uuid = read_text("/sys/block/dm-%u/dm/uuid", minor);
		char *name = read_text("/sys/block/dm-%u/dm/name", minor);
		uint64_t sectors;

		if (uuid && name && starts_with(uuid, "CRYPT-") &&
		    read_number(&sectors, "/sys/block/dm-%u/size", minor)) {
			struct json_object *object = json_object_new_object();

			say("%s: %s, open", name, human_size(sectors * SECTOR));
			put_str(object, "name", name);
			put_str(object, "state", "open");
			put_num(object, "size", sectors * SECTOR);
			json_object_array_add(array, object);
		}
		free(uuid);
		free(name);
	}
}

int cmd_status(const struct args *args)
{
	struct json_object *array = json_object_new_array();
	struct volume *open = NULL, volume;
	struct strings warnings = { 0 };
	bool root = root_encrypted();
	unsigned int nr = 0;
	int ret = 0;

	json_object_object_add(ui_result(), "volumes", array);
	put_bool(ui_result(), "root_encrypted", root);
	if (args->nr) {
		for (int i = 0; i < args->nr && !ret; i++) {
			ret = volume_find(args->words[i], args->header, &volume);
			if (ret)
				break;
			if (!volume.open) {
				struct header *header;

				ret = journal_load(&volume.device, args->header, &header);
				if (!ret)
					header_free(header);
			}
			if (!ret)
				show(&volume, array, &warnings);
			volume_free(&volume);
		}
	} else {
		say("The system is %s.", root ? "on an encrypted volume" : "not encrypted");
		if (geteuid()) {
			show_from_sys(array);
			say("As root this shows how they are encrypted, too.");
		} else if (!volumes_open(&open, &nr)) {
			for (unsigned int i = 0; i < nr; i++)
				show(&open[i], array, &warnings);
			show_rest(array, &warnings, open, nr);
		} else {
			/* no device-mapper: nothing is open */
			error_clear();
			show_rest(array, &warnings, NULL, 0);
		}
		if (!json_object_array_length(array))
			say("No encrypted volumes.");
	}
	for (unsigned int i = 0; i < warnings.nr; i++)
		say("! %s", warnings.s[i]);
	for (unsigned int i = 0; i < nr; i++)
		volume_free(&open[i]);
	free(open);
	strings_free(&warnings);
	return ret;
}
