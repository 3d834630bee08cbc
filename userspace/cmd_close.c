// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * coffer close: lock volumes again, or name who keeps them open.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include "commands.h"
#include "error.h"
#include "ui.h"
#include "volume.h"

static int close_one(const struct volume *volume, const struct args *args)
{
	struct device device;
	struct users users;
	char *text;
	int ret;

	ret = device_by_devno(volume->map.devno, &device);
	if (ret)
		return ret;
	device_users(&device, &users);
	/* a process that is neither mount nor holder (udev, a scan) is gone in a moment */
	if (!args->deferred && (users.mounts.nr || users.holders.nr || users.swaps.nr))
		ret = E_BUSY;
	else
		ret = mapping_remove(volume->map.name, args->deferred);
	if (ret == E_BUSY) {
		error_clear();
		users_free(&users);
		device_users(&device, &users);
		text = users_text(&users);
		ret = fail(E_BUSY, "coffer close --deferred closes it when they are gone",
			   "cannot close %s: %s", volume->map.name, text);
		free(text);
	} else if (!ret && args->deferred && users_any(&users)) {
		text = users_text(&users);
		say("%s will be closed when it is not in use any more (%s)", volume->map.name, text);
		put_bool(ui_result(), "deferred", true);
		free(text);
	} else if (!ret) {
		say("%s is closed", volume->map.name);
	}
	users_free(&users);
	device_free(&device);
	return ret;
}

int cmd_close(const struct args *args)
{
	struct json_object *names = json_object_new_array();
	struct volume volume, *all = NULL;
	unsigned int nr = 0;
	int ret = 0, first = 0;

	json_object_object_add(ui_result(), "closed", names);
	if (args->all) {
		if (args->nr)
			return fail(E_USAGE, NULL, "coffer close takes volumes or --all, not both");
		ret = volumes_open(&all, &nr);
		if (ret)
			return ret;
	}
	/* the last opened first: volumes may stand on each other */
	for (unsigned int i = nr ? nr : (unsigned int)args->nr; i-- > 0;) {
		if (nr) {
			ret = close_one(&all[i], args);
			if (!ret)
				json_object_array_add(names, json_object_new_string(all[i].map.name));
			volume_free(&all[i]);
		} else {
			ret = volume_find_open(args->words[args->nr - 1 - i], &volume);
			if (!ret) {
				ret = close_one(&volume, args);
				if (!ret)
					json_object_array_add(names,
							      json_object_new_string(volume.map.name));
				volume_free(&volume);
			}
		}
		/* the others are closed all the same */
		if (ret && !first)
			first = ret;
	}
	free(all);
	return first;
}
