/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef COFFER_LIVE_H
#define COFFER_LIVE_H

#include "header.h"
#include "options.h"
#include "volume.h"

int live_check(const struct volume *volume, const char *verb);
int live_header(const struct volume *volume, const char *detached, struct header **header);
int live_key(const struct volume *volume, const struct args *args, struct header **header,
	     struct secret **volume_key);
int live_swap(const struct mapping *map, const struct header *header,
	      const struct secret *volume_key);
void signals_hold(void);
void signals_let_go(void);

#endif
