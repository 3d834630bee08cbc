/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef COFFER_CRYPTTAB_H
#define COFFER_CRYPTTAB_H

#include "util.h"

#define CRYPTTAB "/etc/crypttab"

/* One line: what the boot is to open. */
struct crypttab_entry {
	char *name, *source;
	char *key;		/* NULL for none or "-": ask */
	struct strings options;
};

struct crypttab {
	struct crypttab_entry *entries;
	unsigned int nr;
};

void crypttab_read(struct crypttab *table);
void crypttab_free(struct crypttab *table);
const char *crypttab_option(const struct crypttab_entry *entry, const char *name);

#endif
