/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef COFFER_COPIES_H
#define COFFER_COPIES_H

#include <stdbool.h>

/* What of a LUKS header is on a device or in a file. */
struct copies {
	unsigned int nr;	/* how many there should be: 2, 1 for LUKS1 */
	bool whole[2];
	char uuid[37];		/* by what is left; "" if nothing says it */
};

int copies_check(const char *where, struct copies *copies);

#endif
