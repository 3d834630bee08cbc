/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef COFFER_QUEUE_H
#define COFFER_QUEUE_H

#include <linux/sizes.h>

/*
 * What a CPU takes at a time of a bio that is shared: little, so that all are done at the
 * same time. Whole pages, so that no two CPUs encrypt into the same one.
 */
#define COFFER_CHUNK		(PAGE_SIZE > SZ_16K ? PAGE_SIZE : (unsigned long)SZ_16K)

/*
 * One helper for each so many bytes of a bio, and none below that: what a CPU converts in
 * COFFER_HELPER_NS, which is several times what waking a helper costs, but never less
 * than COFFER_MIN_HELPER_BYTES.
 */
#define COFFER_HELPER_NS	30000
#define COFFER_MIN_HELPER_BYTES	SZ_64K

struct coffer_device;
struct coffer_io;
struct coffer_queue;

/* What became of a conversion when the call returns. */
enum coffer_outcome {
	COFFER_CONVERTED,	/* done, io->error says how; the bio is the caller's */
	COFFER_QUEUED,		/* somebody else completes the bio; touch nothing */
};

enum coffer_outcome coffer_queue_convert(struct coffer_io *io);

struct coffer_queue *coffer_queue_create(struct coffer_device *dev);
void coffer_queue_destroy(struct coffer_queue *queue);
void coffer_queue_start(void);
void coffer_queue_stop(void);

#endif
