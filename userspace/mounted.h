/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef COFFER_MOUNTED_H
#define COFFER_MOUNTED_H

#include <stdbool.h>
#include <sys/types.h>

/* A mount that is taken off for a moment and put back as it was. */
struct mounted {
	char *point, *type;
	char *data;		/* options of the file system */
	unsigned long flags;	/* MS_ */
	bool off;
};

int mounted_get(dev_t devno, const char *point, struct mounted *mounted);
int mounted_take_off(struct mounted *mounted);
int mounted_put_back(struct mounted *mounted, const char *path);
void mounted_free(struct mounted *mounted);

#endif
