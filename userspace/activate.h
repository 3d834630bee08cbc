/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef COFFER_ACTIVATE_H
#define COFFER_ACTIVATE_H

#include <stdbool.h>
#include "driver.h"
#include "header.h"
#include "volume.h"

int activate(const struct volume *volume, const struct header *header, const char *name,
	     const struct secret *volume_key, bool read_only, enum driver want,
	     enum driver *got);
int activate_describe(const struct volume *volume, const struct header *header,
		      const char *name, bool read_only, struct mapping *map);
int activate_load(const struct mapping *map, const struct secret *volume_key);
char *volume_key_description(const struct header *header);
int header_data_sectors(const struct header *header, const struct device *device,
			uint64_t *sectors);

#endif
