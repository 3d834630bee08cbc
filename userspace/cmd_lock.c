// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * coffer lock, coffer unlock: an open volume without its key, and with it again.
 *
 * Whoever reads or writes waits until the key is back. The mapping is suspended first and
 * the key wiped then; unlock sets the key before it resumes. So a command that is killed
 * leaves the volume running or suspended, and never running without a key. What the page
 * cache holds stays in memory: this is about the key.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "activate.h"
#include "commands.h"
#include "error.h"
#include "keyring.h"
#include "live.h"
#include "ui.h"

/* Where these are, a volume cannot be locked: nobody could unlock it. */
static const char *const needed[] = { "/", "/usr", "/etc", "/proc/self/exe" };

/* The device of the file system that a path is on. */
static bool path_devno(const char *path, dev_t *devno)
{
	char *real = realpath(path, NULL), *slash;
	bool found = false;

	while (real && !(found = mount_devno(real, devno))) {
		slash = strrchr(real, '/');
		if (!slash || !real[1])
			break;
		slash[slash == real] = 0;
	}
	free(real);
	return found;
}

/* Whether a device is a mapping, or stands on it. */
static bool stands_on(dev_t devno, const struct mapping *map)
{
	char *kname = devno_kname(devno), *want = devno_kname(map->devno);
	struct strings stack = { 0 };
	bool found = false;

	if (kname && want) {
		strings_add(&stack, xstrdup(kname));
		device_stack_below(kname, &stack);
		found = strings_has(&stack, want);
	}
	strings_free(&stack);
	free(kname);
	free(want);
	return found;
}

static int check_lock(const struct volume *volume, const struct args *args)
{
	const struct mapping *map = &volume->map;
	struct header *header;
	struct device device;
	struct users users;
	dev_t devno;
	int ret;

	ret = live_check(volume, "lock");
	if (ret)
		return ret;
	for (unsigned int i = 0; i < ARRAY_SIZE(needed); i++)
		if (path_devno(needed[i], &devno) && stands_on(devno, map))
			return fail(E_REFUSED, NULL, "cannot lock %s: %s is on it, and coffer unlock could not run",
				    map->name, i == ARRAY_SIZE(needed) - 1 ? "this program" :
				    needed[i]);
	/* without a header no secret would bring the key back */
	ret = live_header(volume, args->header, &header);
	header_free(header);
	if (!ret)
		ret = device_by_devno(map->devno, &device);
	if (ret)
		return ret;
	device_users(&device, &users);
	if (users.swaps.nr)
		ret = fail(E_REFUSED, "swapoff it first", "cannot lock %s: there is %s, and any program may wait for it",
			   map->name, users.swaps.s[0]);
	users_free(&users);
	device_free(&device);
	return ret;
}

static int lock_one(const struct volume *volume, const struct args *args)
{
	const char *name = volume->map.name;
	int ret, err;

	ret = check_lock(volume, args);
	if (ret)
		return ret;
	/* to write everything out may take long: it can be broken off */
	ret = mapping_suspend(name, !args->no_freeze);
	if (ret)
		return ret;
	signals_hold();
	err = mapping_message(name, "key wipe");
	if (err) {
		ret = fail(E_FAILED, NULL, "cannot wipe the key of %s: %s", name, strerror(-err));
		mapping_resume(name);
	}
	signals_let_go();
	if (!ret)
		say("%s is locked: its key is not in memory. coffer unlock %s goes on.", name, name);
	return ret;
}

int cmd_lock(const struct args *args)
{
	struct json_object *names = json_object_new_array();
	struct volume volume, *all = NULL;
	unsigned int nr = 0;
	int ret = 0, first = 0;

	json_object_object_add(ui_result(), "locked", names);
	if (args->all && args->nr)
		return fail(E_USAGE, NULL, "coffer lock takes volumes or --all, not both");
	if (args->all)
		ret = volumes_open(&all, &nr);
	if (ret)
		return ret;
	/* the last opened first: volumes may stand on each other */
	for (unsigned int i = args->all ? nr : (unsigned int)args->nr; i-- > 0;) {
		if (args->all) {
			volume = all[i];
			/* what is locked is as it should be */
			if (mapping_key_wiped(&volume.map)) {
				volume_free(&volume);
				continue;
			}
			ret = 0;
		} else {
			ret = volume_find_open(args->words[args->nr - 1 - i], &volume);
		}
		if (!ret) {
			ret = lock_one(&volume, args);
			if (!ret)
				json_object_array_add(names, json_object_new_string(volume.map.name));
			volume_free(&volume);
		}
		if (ret && !first)
			first = ret;
	}
	free(all);
	return first;
}

/* "key set :64:logon:DESCRIPTION" with the key in this thread's keyring */
static int set_key(const struct volume *volume, const struct header *header,
		   const struct secret *key)
{
	char *description = volume_key_description(header);
	char *message = xasprintf("key set :%zu:logon:%s", key->len, description);
	int serial, err, ret;

	ret = keyring_add(description, key, &serial);
	if (!ret) {
		err = mapping_message(volume->map.name, message);
		keyring_drop(serial);
		if (err)
			ret = fail(E_FAILED, "the kernel log (dmesg) says what the target did not like",
				   "cannot give %s its key: %s", volume->map.name, strerror(-err));
	}
	free(message);
	free(description);
	return ret;
}

int cmd_unlock(const struct args *args)
{
	struct header *header = NULL;
	struct secret *key = NULL;
	struct volume volume;
	int ret;

	ret = volume_find_open(args->words[0], &volume);
	if (ret)
		return ret;
	if (!mapping_is_crypt(&volume.map)) {
		ret = live_check(&volume, "unlock");
	} else if (!volume.map.suspended) {
		ret = fail(E_EXISTS, NULL, "cannot unlock %s: it is not locked", volume.map.name);
	} else if (mapping_key_wiped(&volume.map)) {
		ret = live_key(&volume, args, &header, &key);
		signals_hold();
		if (!ret)
			ret = set_key(&volume, header, key);
		if (!ret)
			ret = mapping_resume(volume.map.name);
		signals_let_go();
	} else {
		/* a lock that was broken off: the key never went */
		ret = mapping_resume(volume.map.name);
	}
	if (!ret) {
		say("%s is unlocked.", volume.map.name);
		put_str(ui_result(), "name", volume.map.name);
	}
	secret_free(key);
	header_free(header);
	volume_free(&volume);
	return ret;
}
