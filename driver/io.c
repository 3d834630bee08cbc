// SPDX-License-Identifier: GPL-2.0-only
/*
 * One bio's conversion: a part of it, and what follows once all parts are done.
 *
 * Invariants: parts are whole pages of the bio but for the last, so that bounce pages
 * are not shared between them; the first error of any part is the bio's; the bio is
 * finished once, by whoever finished its last part.
 */
#include "cipher.h"
#include "device.h"
#include "io.h"

/**
 * coffer_io_convert() - convert a part of a bio's data
 * @io: the bio
 * @from: first byte of the part, a multiple of PAGE_SIZE
 * @bytes: its length, a whole number of data units
 *
 * Context: any in which coffer_cipher_usable(). Parts may be converted at once.
 */
void coffer_io_convert(struct coffer_io *io, unsigned int from, unsigned int bytes)
{
	const struct coffer_cipher *cipher = &io->dev->cipher;
	const struct bvec_iter *iter = &io->iter;
	struct bvec_iter part;
	int ret;

	if (bytes != iter->bi_size) {
		part = *iter;
		bvec_iter_advance(io->source, &part, from);
		part.bi_sector += from >> SECTOR_SHIFT;
		part.bi_size = bytes;
		iter = &part;
	}
	if (io->todo == COFFER_RETURN_PAGES)
		ret = coffer_encrypt(cipher, io->source, iter,
				     io->bounce + (from >> PAGE_SHIFT));
	else
		ret = coffer_decrypt(cipher, io->source, iter);
	if (unlikely(ret))
		cmpxchg(&io->error, 0, ret);
}

/**
 * coffer_io_finish() - go on with a bio that was converted elsewhere
 * @io: the bio; not to be touched afterwards
 *
 * Context: softirq or task; may sleep in task context for a write.
 */
void coffer_io_finish(struct coffer_io *io)
{
	if (io->todo == COFFER_RETURN_PAGES)
		coffer_write_finish(io);
	else
		coffer_read_finish(io);
}
