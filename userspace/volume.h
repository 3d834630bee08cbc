/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef COFFER_VOLUME_H
#define COFFER_VOLUME_H

#include <stdbool.h>
#include "device.h"
#include "mapping.h"

/* An encrypted volume, open or not, however the user named it. */
struct volume {
	char *called;		/* as the user said it */
	bool open;
	struct mapping map;	/* of an open one */
	bool has_device;
	struct device device;	/* where the data is */
	char *header;		/* file or device of a detached header, or NULL */
	int loop_fd;		/* keeps the loop device of an image alive; -1 */
};

int volume_find(const char *name, const char *header, struct volume *volume);
int volume_find_open(const char *name, struct volume *volume);
int volume_find_closed(const char *name, const char *header, bool read_only,
		       struct volume *volume);
void volume_free(struct volume *volume);
int volumes_open(struct volume **list, unsigned int *nr);
const char *volume_uuid(const struct volume *volume, char uuid[37]);
const char *volume_display(const struct volume *volume);

#endif
