/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef COFFER_BOUNCE_H
#define COFFER_BOUNCE_H

#include <linux/bvec.h>
#include <linux/mempool.h>
#include <linux/mutex.h>

/* A vector up to here has room in the bio's own data; a longer one takes a page. */
#define COFFER_INLINE_VECS	2

/* What one mapping has in reserve. */
struct coffer_bounce {
	mempool_t reserve;
	struct mutex lock;	/* held by the one bio that is taking from the reserve */
	bool counted;		/* the reserve raises the bound on all pages */
};

int coffer_bounce_start(void);
void coffer_bounce_stop(void);
int coffer_bounce_init(struct coffer_bounce *bounce);
void coffer_bounce_exit(struct coffer_bounce *bounce);

struct bio_vec *coffer_bounce_get(struct coffer_bounce *bounce, struct bio_vec *own,
				  unsigned int nr, bool may_sleep, bool *hit);
void coffer_bounce_put(struct coffer_bounce *bounce, struct bio_vec *own,
		       struct bio_vec *vecs, unsigned int nr);

#endif
