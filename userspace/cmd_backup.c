// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * coffer backup: a copy of the header, renewed where it is kept, or into a file.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <unistd.h>
#include "backup.h"
#include "commands.h"
#include "error.h"
#include "manage.h"
#include "ui.h"

int cmd_backup(const struct args *args)
{
	const char *file = args->nr > 1 ? args->words[1] : NULL;
	struct managed m;
	char *path;
	int ret;

	ret = manage_begin(args, &m);
	if (!ret)
		ret = manage_may_change(&m, "copy the header");
	if (!ret && file && !access(file, F_OK))
		ret = fail(E_EXISTS, NULL, "cannot write a copy of the header to %s: it exists", file);
	if (!ret)
		ret = file ? backup_write(m.header, file) : backup_update(m.header);
	if (!ret) {
		path = file ? xstrdup(file) : backup_path(m.header->uuid);
		say("A copy of the header of %s is in %s.", volume_display(&m.volume), path);
		say("It opens the disk with each secret of today, also with one that is removed later.");
		put_str(ui_result(), "file", path);
		put_str(ui_result(), "uuid", m.header->uuid);
		free(path);
	}
	manage_end(&m);
	return ret;
}
