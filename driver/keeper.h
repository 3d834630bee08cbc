/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef COFFER_KEEPER_H
#define COFFER_KEEPER_H

#include <linux/list.h>
#include <linux/mutex.h>

#include "cipher.h"
#include "key.h"

struct mapped_device;

/* One key, and the only cipher that it is in. */
struct coffer_keeper {
	struct mutex lock;		/* resuming and changing the key exclude each other */
	struct coffer_key key;		/* lock */
	struct coffer_cipher cipher;	/* its key: lock, and while suspended only */
	bool valid;			/* a key that the user gave is in the cipher; lock */
	bool live;			/* some table with it has been active; lock */
	const struct mapped_device *mapping;	/* to compare, never followed */
	struct list_head node;		/* keepers' lock */
	unsigned int tables;		/* that use it; keepers' lock */
};

struct coffer_keeper *coffer_keeper_get(const struct mapped_device *mapping,
					struct coffer_cipher *cipher, char *word,
					char **error);
void coffer_keeper_put(struct coffer_keeper *keeper);

#endif
