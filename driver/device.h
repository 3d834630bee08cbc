/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What one mapping owns, and what one bio carries. Leaf headers only above this one.
 */
#ifndef COFFER_DEVICE_H
#define COFFER_DEVICE_H

#include <linux/bio.h>
#include <linux/device-mapper.h>
#include <linux/llist.h>

#include "bounce.h"
#include "cipher.h"
#include "keeper.h"
#include "stats.h"
#include "table.h"

enum coffer_state {
	COFFER_SUSPENDED,
};

/* Fixed from ctr to dtr, but for what is marked. */
struct coffer_device {
	struct dm_dev *lower;
	struct coffer_params params;
	unsigned int unit_mask;		/* bytes of a data unit - 1 */
	unsigned int inline_bytes;	/* a bio up to here is converted where we are */
	unsigned int helper_bytes;	/* of a larger one, for each helper */
	struct coffer_cipher cipher;	/* the keeper's: its key changes only while suspended */
	struct coffer_keeper *keeper;	/* guarded by itself */
	struct coffer_bounce bounce;	/* guarded by itself */
	struct coffer_queue *queue;	/* guarded by itself */
	struct coffer_stats __percpu *stats;
	unsigned long state;		/* enum coffer_state; atomic bit operations */
};

/* What end_io has to do. A clone comes by again after a conversion elsewhere. */
enum coffer_todo {
	COFFER_NOTHING,
	COFFER_DECRYPT,
	COFFER_RETURN_PAGES,
};

/*
 * The bio's own data, which device-mapper keeps in front of the clone. Kept small:
 * many kernels clear it on each allocation.
 *
 * Owned by whoever has the bio. While its chunks are being converted by several CPUs
 * only what is marked may change.
 */
struct coffer_io {
	struct coffer_device *dev;
	struct bio_vec *source;		/* the clone's vector as it came to us */
	struct bio_vec *bounce;		/* writes: what the clone points to below us */
	struct bvec_iter iter;		/* the data in @source; bi_sector is the IV sector */
	u8 todo;			/* enum coffer_todo */
	bool nowait;			/* writes: the submitter must not sleep */
	u8 chunk_shift;			/* log2 of what a CPU takes at a time, bytes */
	int error;			/* conversion: first error wins, cmpxchg */
	union {
		struct llist_node softirq_node;
		struct list_head queue_node;	/* queue lock */
	};
	u32 next_byte;			/* first byte that nobody has taken; queue lock */
	atomic_t chunks_left;		/* not finished; whoever makes it 0 completes */
	struct bio_vec own[COFFER_INLINE_VECS];
};

static inline struct bio *coffer_bio(struct coffer_io *io)
{
	return dm_bio_from_per_bio_data(io, sizeof(*io));
}

static inline struct coffer_io *coffer_io(struct bio *bio)
{
	return dm_per_bio_data(bio, sizeof(struct coffer_io));
}

#endif
