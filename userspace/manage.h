/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef COFFER_MANAGE_H
#define COFFER_MANAGE_H

#include "header.h"
#include "options.h"
#include "volume.h"

/* A volume whose secrets or header a verb is about. */
struct managed {
	struct volume volume;
	struct header *header;
	struct keyslots list;
};

int manage_begin(const struct args *args, struct managed *m);
void manage_end(struct managed *m);
int manage_may_change(const struct managed *m, const char *what);
int manage_refresh(struct managed *m);

char *manage_free_name(const struct keyslots *list, const char *base);
int manage_add(struct managed *m, const struct secret *volume_key, const struct secret *secret,
	       const char *name, const char *kind, unsigned int milliseconds, int *slot);
int manage_remove(struct managed *m, const struct args *args, const struct keyslot *k);
char *manage_names(const struct keyslots *list, int but);
void manage_say_rest(const struct managed *m, int but);

#endif
