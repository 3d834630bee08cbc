/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef COFFER_TAKEOVER_H
#define COFFER_TAKEOVER_H

#include <stdbool.h>
#include "util.h"

#define TAKEOVER_CONF "/etc/modprobe.d/coffer.conf"

/* What would keep volumes from opening under takeover, and what cannot be told. */
struct takeover_check {
	struct strings unfit, unknown;
};

bool takeover_configured(void);
int takeover_write(void);
int takeover_remove(void);
int takeover_check(struct takeover_check *check);
void takeover_check_free(struct takeover_check *check);

#endif
