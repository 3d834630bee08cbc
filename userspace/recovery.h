/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef COFFER_RECOVERY_H
#define COFFER_RECOVERY_H

#include "header.h"

int recovery_add(struct header *header, const struct secret *volume_key, const char *name,
		 struct secret **key, int *slot);
int recovery_show(const struct secret *key, const char *volume);

#endif
