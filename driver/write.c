// SPDX-License-Identifier: GPL-2.0-only
/*
 * The write path. The caller's memory is encrypted into bounce pages, and the clone
 * that device-mapper made is pointed at them. No second bio.
 *
 *   submitter                                   completion (any context)
 *   ---------                                   ------------------------
 *   coffer_map
 *     coffer_write_map: bounce pages
 *       coffer_queue_convert ... may run here:
 *         encrypt, point the clone at the pages
 *         DM_MAPIO_REMAPPED
 *   device <- clone
 *       ... or not: DM_MAPIO_SUBMITTED
 *         worker or several CPUs encrypt
 *         coffer_write_finish
 *   device <- clone                             coffer_end_io
 *                                                 coffer_write_end_io: pages back,
 *                                                 the clone's own vector back
 *
 * Invariants: the caller's memory is read once, byte by byte, and never written to;
 * what goes to the device is a bounce page whatever happens. The clone owns no
 * vector (device-mapper cloned it), so nobody but us frees what it points to; splits
 * below us share the vector and end before the clone does.
 */
#include "compat.h"
#include "device.h"
#include "io.h"
#include "queue.h"

static unsigned int nr_pages(const struct coffer_io *io)
{
	return DIV_ROUND_UP(io->iter.bi_size, PAGE_SIZE);
}

static void put_pages(struct coffer_io *io)
{
	coffer_bounce_put(&io->dev->bounce, io->own, io->bounce, nr_pages(io));
	io->todo = COFFER_NOTHING;
}

static void point_at_bounce_pages(struct coffer_io *io)
{
	struct bio_vec *last = &io->bounce[nr_pages(io) - 1];

	last->bv_len = io->iter.bi_size - (nr_pages(io) - 1) * PAGE_SIZE;
	coffer_bio_set_vecs(coffer_bio(io), io->bounce, nr_pages(io));
}

/**
 * coffer_write_map() - encrypt, here or elsewhere, and send on
 * @io: with iter and source set; its bio already names the lower device and sector
 *
 * Context: task; sleeps for memory unless the bio is REQ_NOWAIT.
 * Return: a DM_MAPIO code; after DM_MAPIO_SUBMITTED @io is not ours.
 */
int coffer_write_map(struct coffer_io *io)
{
	struct coffer_device *dev = io->dev;
	struct bio *bio = coffer_bio(io);
	bool hit;

	io->nowait = bio->bi_opf & REQ_NOWAIT;
	io->bounce = coffer_bounce_get(&dev->bounce, io->own, nr_pages(io),
				       !io->nowait, &hit);
	if (unlikely(!io->bounce)) {
		io->todo = COFFER_NOTHING;
		bio_wouldblock_error(bio);
		return DM_MAPIO_SUBMITTED;
	}
	if (likely(hit))
		coffer_stat_add(dev, cache_hits, 1);
	else
		coffer_stat_add(dev, cache_misses, 1);
	io->todo = COFFER_RETURN_PAGES;

	if (coffer_queue_convert(io) == COFFER_QUEUED)
		return DM_MAPIO_SUBMITTED;
	if (unlikely(io->error)) {
		put_pages(io);
		coffer_stat_add(dev, errors, 1);
		return DM_MAPIO_KILL;
	}
	point_at_bounce_pages(io);
	return DM_MAPIO_REMAPPED;
}

/**
 * coffer_write_finish() - send on a write that was encrypted elsewhere
 * @io: the write; not ours afterwards
 *
 * Context: task.
 */
void coffer_write_finish(struct coffer_io *io)
{
	struct bio *bio = coffer_bio(io);

	if (unlikely(io->error)) {
		/* end_io gives the pages back */
		bio->bi_status = errno_to_blk_status(io->error);
		bio_endio(bio);
		return;
	}
	point_at_bounce_pages(io);
	/* promises of the submitter's context: we may wait, and it cannot poll for us */
	bio->bi_opf &= ~(REQ_POLLED | REQ_NOWAIT);
	dm_submit_bio_remap(bio, NULL);
}

/**
 * coffer_write_end_io() - give the bounce pages back
 * @io: a write that the device has finished, well or not
 *
 * Context: any.
 */
void coffer_write_end_io(struct coffer_io *io)
{
	coffer_bio(io)->bi_io_vec = io->source;
	put_pages(io);
}
