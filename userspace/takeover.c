// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Takeover: dm-coffer answers to the name "crypt", so that the boot, crypttab and every
 * foreign tool run on it. It is a file for modprobe, and what has to be asked before.
 *
 * Invariant: where dm-coffer cannot be loaded, or has not got the name, the file leads to
 * dm-crypt: a machine never fails to boot for it. The shell that runs the command may be
 * that of an initramfs, with nothing but builtins.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "crypttab.h"
#include "eligible.h"
#include "error.h"
#include "mapping.h"
#include "takeover.h"

#define MARK "# Written by \"coffer takeover on\"; \"coffer takeover off\" takes it away."

static const char text[] = MARK "\n"
	"# Who asks for the target \"crypt\" gets dm-coffer, or dm-crypt if that does not work.\n"
	"options dm-coffer takeover=1\n"
	"install dm-crypt { /sbin/modprobe -q dm-coffer && "
	"read -r t < /sys/module/dm_coffer/parameters/takeover && [ \"$t\" = Y ]; } 2> /dev/null || "
	"/sbin/modprobe --ignore-install dm-crypt $CMDLINE_OPTS\n";

/* Whether modprobe is told to; a file that somebody else wrote does not count. */
bool takeover_configured(void)
{
	char *there = read_text(TAKEOVER_CONF);
	bool ours = there && starts_with(there, MARK);

	free(there);
	return ours;
}

static int foreign(void)
{
	return fail(E_EXISTS, "move it away first", "cannot use " TAKEOVER_CONF ": somebody else wrote it");
}

/* Write the file, whole or not at all. */
int takeover_write(void)
{
	static const char temporary[] = TAKEOVER_CONF ".new";	/* modprobe reads *.conf only */
	int fd, err = 0;

	if (!access(TAKEOVER_CONF, F_OK) && !takeover_configured())
		return foreign();
	fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0)
		return fail(E_FAILED, NULL, "cannot write %s: %s", temporary, strerror(errno));
	fchmod(fd, 0644);
	err = write_all(fd, text, sizeof(text) - 1);
	if (!err && fsync(fd))
		err = -errno;
	close(fd);
	if (!err && rename(temporary, TAKEOVER_CONF))
		err = -errno;
	if (!err)
		return 0;
	unlink(temporary);
	return fail(E_FAILED, NULL, "cannot write " TAKEOVER_CONF ": %s", strerror(-err));
}

/* Take it away; not there is fine. */
int takeover_remove(void)
{
	if (access(TAKEOVER_CONF, F_OK))
		return 0;
	if (!takeover_configured())
		return foreign();
	if (unlink(TAKEOVER_CONF))
		return fail(E_FAILED, NULL, "cannot remove " TAKEOVER_CONF ": %s", strerror(errno));
	return 0;
}

static void check_mappings(struct takeover_check *check, const struct strings *names)
{
	for (unsigned int i = 0; i < names->nr; i++) {
		struct mapping map;
		char *why;

		if (!mapping_find(names->s[i], &map))
			continue;
		if (map.target && !strcmp(map.target, TARGET_CRYPT)) {
			why = mapping_unfit(&map);
			if (why)
				strings_add(&check->unfit, xasprintf("%s: %s", map.name, why));
			free(why);
		}
		mapping_free(&map);
	}
}

/**
 * takeover_check() - what dm-coffer could not open in dm-crypt's stead
 * @check: active mappings and entries of crypttab, with the reason; takeover_check_free() it
 *
 * Return: 0, or what failed.
 */
int takeover_check(struct takeover_check *check)
{
	struct strings names = { 0 };
	struct crypttab table;
	int ret;

	memset(check, 0, sizeof(*check));
	ret = mapping_names(&names);
	if (ret)
		return ret;
	check_mappings(check, &names);
	crypttab_read(&table);
	for (unsigned int i = 0; i < table.nr; i++) {
		bool unknown;
		char *why = crypttab_unfit(&table.entries[i], &unknown);

		if (why)
			strings_add(unknown ? &check->unknown : &check->unfit,
				    xasprintf("%s in " CRYPTTAB ": %s", table.entries[i].name, why));
		free(why);
	}
	crypttab_free(&table);
	strings_free(&names);
	return 0;
}

void takeover_check_free(struct takeover_check *check)
{
	strings_free(&check->unfit);
	strings_free(&check->unknown);
}
