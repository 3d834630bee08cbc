/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef COFFER_DRIVER_H
#define COFFER_DRIVER_H

#include <stdbool.h>

/* Which code is to carry a mapping. */
enum driver {
	DRIVER_AUTO,	/* coffer if it is there, dm-crypt if not */
	DRIVER_COFFER,
	DRIVER_DM_CRYPT,
};

/* What the kernel has, and could have. */
struct drivers {
	bool coffer_loaded;	/* target "coffer" is there */
	bool takeover;		/* and answers to "crypt" too */
	bool coffer_loadable;	/* modprobe would find a module for this kernel */
	bool crypt_target;	/* somebody answers to "crypt" */
	bool dm_crypt_loaded;	/* the module dm_crypt is there */
	bool dm_crypt_used;	/* and has mappings */
	bool dm_crypt_builtin;
	unsigned int coffer_version[3];
};

void drivers_get(struct drivers *drivers);
int driver_prepare(enum driver want, bool *through_crypt, enum driver *got);
bool module_load(const char *module, const char *parameter, char **why);
bool module_unload(const char *module);
int run_program(char *const argv[], char **output);

#endif
