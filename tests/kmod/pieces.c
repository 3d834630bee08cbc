// SPDX-License-Identifier: GPL-2.0-only
/*
 * Submits bios whose memory comes in small pieces, each in a page of its own, as no
 * direct I/O can: the device's dma_alignment does not let it through, but only for user
 * memory.
 *
 *   insmod pieces.ko device=PATH unit=BYTES [most=BYTES] [align=BYTES] [units=N] [rounds=N]
 *	[seed=N]
 *
 * Each round writes random bytes at a random data unit in pieces and reads them in
 * whole pages, or writes in whole pages and reads in pieces, and compares. A piece is
 * up to "most" bytes, and it begins and ends at multiples of "align"; where data units
 * begin has nothing to do with it. What lies around a piece must stay what it was,
 * and so must the source of a write.
 *
 * insmod succeeds, or says EILSEQ for wrong data, EFAULT for a byte that was not ours to
 * change, or the error of the bio.
 */
#include <linux/bio.h>
#include <linux/blkdev.h>
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/highmem.h>
#include <linux/module.h>
#include <linux/prandom.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#define CANARY 0xa5

static char *device;
module_param(device, charp, 0444);
static unsigned int unit = 4096;
module_param(unit, uint, 0444);
static unsigned int most = 512;
module_param(most, uint, 0444);
static unsigned int align = 512;
module_param(align, uint, 0444);
static unsigned int units = 1;
module_param(units, uint, 0444);
static unsigned int rounds = 16;
module_param(rounds, uint, 0444);
static unsigned int seed = 1;
module_param(seed, uint, 0444);

static struct rnd_state rnd;
static struct page *pages[BIO_MAX_VECS];
static struct piece {
	unsigned int offset, len;
} pieces[BIO_MAX_VECS];
static unsigned int nr_pieces;

static unsigned int below(unsigned int n)
{
	return prandom_u32_state(&rnd) % n;
}

/* Whole pages, or pieces, if so many are enough. */
static int cut(unsigned int bytes, bool whole)
{
	struct piece *piece = pieces;

	for (nr_pieces = 0; bytes; nr_pieces++, piece++) {
		if (nr_pieces == BIO_MAX_VECS)
			return -E2BIG;
		piece->len = whole ? PAGE_SIZE : align * (1 + below(most / align));
		piece->len = min(piece->len, bytes);
		piece->offset = whole ? 0 :
				align * below((PAGE_SIZE - piece->len) / align + 1);
		bytes -= piece->len;
	}
	return 0;
}

static int transfer(struct block_device *bdev, blk_opf_t opf, sector_t sector)
{
	struct bio *bio = bio_alloc(bdev, nr_pieces, opf | REQ_SYNC, GFP_KERNEL);
	unsigned int i;
	int ret = -E2BIG;

	bio->bi_iter.bi_sector = sector;
	for (i = 0; i < nr_pieces; i++)
		if (bio_add_page(bio, pages[i], pieces[i].len, pieces[i].offset) != pieces[i].len)
			goto put;
	ret = submit_bio_wait(bio);
put:
	bio_put(bio);
	return ret;
}

/* Compares with the data, and what lies around a piece with the canary. */
static int holds(const u8 *data)
{
	unsigned int i;

	for (i = 0; i < nr_pieces; i++) {
		unsigned int end = pieces[i].offset + pieces[i].len;
		const u8 *p = page_address(pages[i]);

		if (memcmp(p + pieces[i].offset, data, pieces[i].len))
			return -EILSEQ;
		if (memchr_inv(p, CANARY, pieces[i].offset) ||
		    memchr_inv(p + end, CANARY, PAGE_SIZE - end))
			return -EFAULT;
		data += pieces[i].len;
	}
	return 0;
}

static int put(struct block_device *bdev, sector_t sector, const u8 *data, unsigned int bytes,
	       bool whole)
{
	const u8 *from = data;
	unsigned int i;
	int ret = cut(bytes, whole);

	if (ret)
		return ret;
	for (i = 0; i < nr_pieces; i++) {
		memset(page_address(pages[i]), CANARY, PAGE_SIZE);
		memcpy(page_address(pages[i]) + pieces[i].offset, from, pieces[i].len);
		from += pieces[i].len;
	}
	return transfer(bdev, REQ_OP_WRITE, sector) ?: holds(data);
}

static int get(struct block_device *bdev, sector_t sector, const u8 *data, unsigned int bytes,
	       bool whole)
{
	unsigned int i;
	int ret = cut(bytes, whole);

	if (ret)
		return ret;
	for (i = 0; i < nr_pieces; i++)
		memset(page_address(pages[i]), CANARY, PAGE_SIZE);
	return transfer(bdev, REQ_OP_READ, sector) ?: holds(data);
}

static int play(struct block_device *bdev)
{
	unsigned int bytes = unit * units, places, i;
	int ret = 0;
	u8 *data;

	places = (unsigned int)div_u64(bdev_nr_bytes(bdev), unit);
	if (places < units)
		return -ENOSPC;
	data = vmalloc(bytes);
	if (!data)
		return -ENOMEM;
	for (i = 0; i < rounds && !ret; i++) {
		sector_t sector = (sector_t)below(places - units + 1) * (unit / SECTOR_SIZE);

		prandom_bytes_state(&rnd, data, bytes);
		ret = put(bdev, sector, data, bytes, i & 1) ?:
		      get(bdev, sector, data, bytes, !(i & 1));
	}
	vfree(data);
	return ret;
}

static int __init pieces_init(void)
{
	struct file *file;
	unsigned int i;
	int ret = -ENOMEM;

	if (!device || !unit || unit % SECTOR_SIZE || !units || !align || most < align ||
	    most > PAGE_SIZE || unit > BIO_MAX_VECS * PAGE_SIZE / units)
		return -EINVAL;
	prandom_seed_state(&rnd, seed);
	file = filp_open(device, O_RDWR, 0);
	if (IS_ERR(file))
		return PTR_ERR(file);
	for (i = 0; i < BIO_MAX_VECS; i++) {
		pages[i] = alloc_page(GFP_KERNEL);
		if (!pages[i])
			goto free;
	}
	ret = -ENOTBLK;
	if (S_ISBLK(file_inode(file)->i_mode))
		ret = play(I_BDEV(file->f_mapping->host));
free:
	while (i--)
		__free_page(pages[i]);
	filp_close(file, NULL);
	return ret;
}

static void __exit pieces_exit(void)
{
}

module_init(pieces_init);
module_exit(pieces_exit);
MODULE_DESCRIPTION("test of dm-coffer: bios in small pieces");
MODULE_LICENSE("GPL");
