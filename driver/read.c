// SPDX-License-Identifier: GPL-2.0-only
/*
 * The read path. The clone that device-mapper made goes down as it is, and is
 * decrypted in place when it comes back. No second bio, no allocation.
 *
 *   submitter                       completion (hard irq, softirq or task)
 *   ---------                       --------------------------------------
 *   coffer_map
 *     coffer_read_map: keep iter
 *   device <- clone                 coffer_end_io
 *                                     coffer_read_end_io
 *                                       coffer_queue_convert ... may run here:
 *                                         decrypt, DM_ENDIO_DONE
 *                                       ... or not:
 *                                         softirq, worker or several CPUs decrypt
 *                                         coffer_read_finish
 *                                           bi_end_io -> coffer_end_io a second
 *                                           time, with nothing left to do
 *
 * Invariant: layers below consume bi_iter, so only the kept iter says where the data
 * is. Until it is decrypted the caller's memory holds ciphertext, as with dm-crypt.
 */
#include "device.h"
#include "io.h"
#include "queue.h"

/**
 * coffer_read_map() - note what to decrypt
 * @io: with iter and source set
 */
void coffer_read_map(struct coffer_io *io)
{
	io->todo = COFFER_DECRYPT;
}

static blk_status_t status(const struct coffer_io *io)
{
	if (likely(!io->error))
		return BLK_STS_OK;
	coffer_stat_add(io->dev, errors, 1);
	return errno_to_blk_status(io->error);
}

/**
 * coffer_read_end_io() - decrypt, here or elsewhere
 * @io: a read that the device has finished
 * @error: the device's verdict, and ours
 *
 * Context: any.
 * Return: DM_ENDIO_DONE or DM_ENDIO_INCOMPLETE; after the latter @io is not ours.
 */
int coffer_read_end_io(struct coffer_io *io, blk_status_t *error)
{
	if (unlikely(*error)) {
		io->todo = COFFER_NOTHING;
		return DM_ENDIO_DONE;
	}
	if (coffer_queue_convert(io) == COFFER_QUEUED)
		return DM_ENDIO_INCOMPLETE;
	*error = status(io);
	return DM_ENDIO_DONE;
}

/**
 * coffer_read_finish() - complete a read that was decrypted elsewhere
 * @io: the read; gone afterwards
 *
 * Context: softirq or task.
 */
void coffer_read_finish(struct coffer_io *io)
{
	struct bio *bio = coffer_bio(io);

	io->todo = COFFER_NOTHING;
	bio->bi_status = status(io);
	/*
	 * Not bio_endio(): the block layer has done its part of the completion, and the
	 * request that kept its queue alive meanwhile is gone.
	 */
	bio->bi_end_io(bio);
}
