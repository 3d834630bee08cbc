/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef COFFER_QUEUE_H
#define COFFER_QUEUE_H

#include <linux/sizes.h>

/* Waking a worker costs some µs; so does encrypting this many bytes. */
#define COFFER_MIN_CHUNK	SZ_32K

/* A bio that makes two chunks is large: worth sharing with another CPU. */
#define COFFER_DEFAULT_INLINE	(2 * COFFER_MIN_CHUNK - 1)

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
int coffer_queue_start(void);
void coffer_queue_stop(void);

#endif
