// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Which kernel module carries the mappings, and getting it there.
 *
 * Two ways lead to coffer's data path. If dm-crypt is not in use, the module takes over
 * the name "crypt", and libcryptsetup with all foreign tools works on it. Else mappings
 * use the target's own name. Without the module dm-crypt carries the same bytes.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>
#include "driver.h"
#include "error.h"
#include "mapping.h"
#include "util.h"

/**
 * run_program() - run a program of the system and wait for it
 * @argv: its words; looked for in the system's own directories only
 * @output: what it printed, stdout and stderr, to be freed; or NULL
 *
 * Return: its exit status, or -1 if it could not be started or died.
 */
int run_program(char *const argv[], char **output)
{
	static char *const environment[] = {
		"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C", NULL
	};
	size_t len = 0, size = 65536;
	char *text = xcalloc(1, size);
	int ends[2], status;
	ssize_t got;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC)) {
		free(text);
		return -1;
	}
	pid = fork();
	if (!pid) {
		int null = open("/dev/null", O_RDONLY);

		dup2(null, STDIN_FILENO);
		dup2(ends[1], STDOUT_FILENO);
		dup2(ends[1], STDERR_FILENO);
		execvpe(argv[0], argv, environment);
		_exit(127);
	}
	close(ends[1]);
	while (pid > 0 && ((got = read(ends[0], text + len, size - 1 - len)) > 0 ||
			   (got < 0 && errno == EINTR))) {
		if (got > 0)
			len += got;
		if (len == size - 1)
			text = xrealloc(text, size *= 2);
		text[len] = 0;
	}
	close(ends[0]);
	if (output)
		*output = text;
	else
		free(text);
	if (pid < 0)
		return -1;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static bool in_sys(const char *module)
{
	char *path = xasprintf("/sys/module/%s", module);
	bool there = !access(path, F_OK);

	free(path);
	return there;
}

/**
 * module_load() - modprobe a module
 * @module: its name
 * @parameter: one parameter, or NULL
 * @why: modprobe's words if it failed, to be freed; or NULL
 */
bool module_load(const char *module, const char *parameter, char **why)
{
	char *argv[] = { "modprobe", (char *)module, (char *)parameter, NULL };
	char *output = NULL;
	bool ok = !run_program(argv, &output);

	if (!ok && why)
		*why = output;
	else
		free(output);
	return ok;
}

bool module_unload(const char *module)
{
	char *argv[] = { "modprobe", "-r", (char *)module, NULL };

	return !run_program(argv, NULL);
}

/* What there is now; loads nothing. */
void drivers_get(struct drivers *d)
{
	char *argv[] = { "modprobe", "-n", "-q", "dm-coffer", NULL };
	unsigned int version[3];
	uint64_t count;
	char *text;

	memset(d, 0, sizeof(*d));
	d->coffer_loaded = mapping_target_version(TARGET_COFFER, d->coffer_version);
	d->crypt_target = mapping_target_version(TARGET_CRYPT, version);
	d->dm_crypt_loaded = in_sys("dm_crypt");
	text = read_text("/sys/module/dm_coffer/parameters/takeover");
	d->takeover = d->coffer_loaded && text && *text == 'Y' && d->crypt_target &&
		      !d->dm_crypt_loaded;
	free(text);
	d->dm_crypt_used = read_number(&count, "/sys/module/dm_crypt/refcnt") && count;
	d->dm_crypt_builtin = d->crypt_target && !d->takeover &&
			      access("/sys/module/dm_crypt/refcnt", F_OK);
	d->coffer_loadable = d->coffer_loaded || !run_program(argv, NULL);
}

static void load_coffer(struct drivers *d, char **why)
{
	bool idle = d->dm_crypt_loaded && !d->dm_crypt_used && !d->dm_crypt_builtin;

	if (d->coffer_loaded || !d->coffer_loadable)
		return;
	if (idle && module_unload("dm_crypt"))
		drivers_get(d);
	module_load("dm-coffer", d->crypt_target ? NULL : "takeover=1", why);
	drivers_get(d);
}

/**
 * driver_prepare() - have the module that is to carry a new mapping loaded
 * @want: what the user asked for
 * @through_crypt: whether the mapping's target is called "crypt"
 * @got: DRIVER_COFFER or DRIVER_DM_CRYPT
 *
 * Falling back to dm-crypt is said in a note.
 *
 * Return: 0, or E_MODULE when what was asked for, or any driver, is not there.
 */
int driver_prepare(enum driver want, bool *through_crypt, enum driver *got)
{
	struct drivers d;
	char *why = NULL;

	module_load("dm-mod", NULL, NULL);
	drivers_get(&d);
	if (want != DRIVER_DM_CRYPT) {
		load_coffer(&d, &why);
		if (d.coffer_loaded) {
			*through_crypt = d.takeover;
			*got = DRIVER_COFFER;
			free(why);
			return 0;
		}
		if (want == DRIVER_COFFER) {
			int ret = fail(E_MODULE, "coffer doctor says more",
				       "cannot use dm-coffer: %s", why && *why ? why :
				       "there is no module for this kernel");

			free(why);
			return ret;
		}
	}
	if (!d.crypt_target || d.takeover) {
		if (d.takeover)
			return fail(E_MODULE, "coffer takeover off",
				    "cannot use dm-crypt: dm-coffer has taken over its name");
		module_load("dm-crypt", NULL, NULL);
		drivers_get(&d);
	}
	if (!d.crypt_target) {
		free(why);
		return fail(E_MODULE, NULL, "cannot open volumes: this kernel has neither dm-coffer nor dm-crypt");
	}
	if (want == DRIVER_AUTO)
		note("dm-coffer cannot be loaded on this kernel; dm-crypt carries the volume (same bytes on disk)");
	free(why);
	*through_crypt = true;
	*got = DRIVER_DM_CRYPT;
	return 0;
}
