// SPDX-License-Identifier: GPL-2.0-only
/*
 * The device-mapper target: a table line becomes a struct coffer_device, bios are
 * sent to the read or the write path, and status, messages and limits are answered.
 *
 * Invariants: the device is in ti->private from the first moment of the constructor
 * on, zeroed, and one destructor that takes any half-made device serves both. The key
 * changes only while the mapping is suspended, when no bio is on its way. Two tables that
 * share a key belong to one mapping, so one of them at most is active.
 */
#include <linux/module.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "compat.h"
#include "device.h"
#include "io.h"
#include "keeper.h"
#include "queue.h"
#include "target.h"

#define DM_MSG_PREFIX "coffer"

static void coffer_dtr(struct dm_target *ti)
{
	struct coffer_device *dev = ti->private;

	coffer_queue_destroy(dev->queue);
	if (dev->keeper)
		coffer_keeper_put(dev->keeper);
	else
		coffer_cipher_exit(&dev->cipher);
	coffer_bounce_exit(&dev->bounce);
	free_percpu(dev->stats);
	if (dev->lower)
		dm_put_device(ti, dev->lower);
	kfree(dev);
}

static int open_lower(struct dm_target *ti, struct coffer_device *dev)
{
	sector_t size;
	int ret;

	ret = dm_get_device(ti, dev->params.device, dm_table_get_mode(ti->table), &dev->lower);
	dev->params.device = NULL;
	if (ret) {
		ti->error = "Cannot open the device";
		return ret;
	}
	if (bdev_is_zoned(dev->lower->bdev)) {
		ti->error = "Zoned devices are not supported, see dm-crypt";
		return -EINVAL;
	}
	size = bdev_nr_sectors(dev->lower->bdev);
	if (dev->params.start > size || ti->len > size - dev->params.start) {
		ti->error = "Device is too small for the mapping";
		return -EINVAL;
	}
	return 0;
}

static int get_key(struct dm_target *ti, struct coffer_device *dev)
{
	struct coffer_keeper *keeper;
	char *error = NULL;

	keeper = coffer_keeper_get(dm_table_get_md(ti->table), &dev->cipher, dev->params.key,
				   &error);
	dev->params.key = NULL;
	if (IS_ERR(keeper)) {
		ti->error = error;
		return PTR_ERR(keeper);
	}
	dev->keeper = keeper;
	return 0;
}

static int setup(struct dm_target *ti, struct coffer_device *dev)
{
	int ret;

	ret = open_lower(ti, dev);
	if (ret)
		return ret;
	ret = coffer_cipher_init(&dev->cipher, dev->params.data_unit,
				 test_bit(COFFER_IV_LARGE_SECTORS, &dev->params.flags));
	if (ret) {
		ti->error = "No synchronous xts(aes) in this kernel";
		return ret;
	}
	ret = get_key(ti, dev);
	if (ret)
		return ret;

	dev->unit_mask = dev->params.data_unit - 1;
	dev->helper_bytes = max_t(unsigned int, COFFER_MIN_HELPER_BYTES,
				  coffer_cipher_measure(&dev->cipher, COFFER_HELPER_NS));
	dev->inline_bytes = dev->params.inline_bytes ?: dev->helper_bytes - 1;
	dev->stats = alloc_percpu(struct coffer_stats);
	dev->queue = coffer_queue_create(dev);
	if (!dev->stats || !dev->queue || coffer_bounce_init(&dev->bounce)) {
		ti->error = "Out of memory";
		return -ENOMEM;
	}
	return 0;
}

static int coffer_ctr(struct dm_target *ti, unsigned int argc, char **argv)
{
	struct coffer_device *dev;
	int ret;

	dev = kzalloc(sizeof(*dev), GFP_KERNEL);
	if (!dev) {
		ti->error = "Out of memory";
		ret = -ENOMEM;
		goto blank;
	}
	ti->private = dev;
	/* active only once resumed: where that fails for want of a key, one can be set */
	set_bit(COFFER_SUSPENDED, &dev->state);
	ret = coffer_table_parse(&dev->params, argc, argv, ti->len, &ti->error);
	if (!ret)
		ret = setup(ti, dev);
	if (ret) {
		coffer_dtr(ti);
		goto blank;
	}

	ti->per_io_data_size = sizeof(struct coffer_io);
	ti->num_flush_bios = 1;
	ti->num_discard_bios = test_bit(COFFER_ALLOW_DISCARDS, &dev->params.flags);
	ti->accounts_remapped_io = true;
	/* every write holds memory until it is done, and swap must not eat it all */
	ti->limit_swap_bios = true;
	coffer_flush_bypasses_map(ti);
	DMINFO("%s: %s", dev->lower->name, coffer_cipher_driver(&dev->cipher));
blank:
	/* on whatever way here: the line is in a buffer that others free */
	if (argc > 1 && *argv[1] != ':')
		memset(argv[1], 'x', strlen(argv[1]));
	return ret;
}

/*
 * Large bios exist: direct I/O of huge pages. A write's bounce pages have to fit one
 * vector, and a read is better decrypted while the rest of it is still on its way.
 */
#define MAX_SECTORS	(BIO_MAX_VECS << (PAGE_SHIFT - SECTOR_SHIFT))

static int coffer_map(struct dm_target *ti, struct bio *bio)
{
	struct coffer_device *dev = ti->private;
	struct coffer_io *io = coffer_io(bio);
	sector_t sector = dm_target_offset(ti, bio->bi_iter.bi_sector);

	io->todo = COFFER_NOTHING;
	/* data or not is told by op and size: a flush may bring data */
	if (likely(bio_has_data(bio))) {
		/* where the block layer keeps to io_hints this cannot be */
		if (unlikely(((sector << SECTOR_SHIFT) | bio->bi_iter.bi_size) & dev->unit_mask))
			return DM_MAPIO_KILL;
		if (unlikely(bio_sectors(bio) > MAX_SECTORS)) {
			if (bio->bi_opf & REQ_NOWAIT) {
				/* half of it done and the rest refused helps nobody */
				bio_wouldblock_error(bio);
				return DM_MAPIO_SUBMITTED;
			}
			if (bio->bi_opf & COFFER_REQ_ATOMIC)
				return DM_MAPIO_KILL;
			/* device-mapper sends the rest once this much is on its way */
			dm_accept_partial_bio(bio, MAX_SECTORS);
		}
		io->dev = dev;
		io->source = bio->bi_io_vec;
		io->iter = bio->bi_iter;
		io->iter.bi_sector = sector + dev->params.iv_offset;
		io->error = 0;
	}
	/* bio_set_dev() but for the cgroup, which device-mapper sets as it submits */
	bio_clear_flag(bio, BIO_REMAPPED);
	bio_clear_flag(bio, BIO_BPS_THROTTLED);
	bio->bi_bdev = dev->lower->bdev;
	/* an empty flush is for the whole device and names no sector */
	if (likely(bio_sectors(bio)))
		bio->bi_iter.bi_sector = sector + dev->params.start;

	switch (bio_op(bio)) {
	case REQ_OP_READ:
		if (likely(bio->bi_iter.bi_size))
			coffer_read_map(io);
		return DM_MAPIO_REMAPPED;
	case REQ_OP_WRITE:
		if (likely(bio->bi_iter.bi_size))
			return coffer_write_map(io);
		fallthrough;
	case REQ_OP_FLUSH:
	case REQ_OP_DISCARD:
		return DM_MAPIO_REMAPPED;
	default:
		/* write zeroes and the like would put plaintext on the device */
		return DM_MAPIO_KILL;
	}
}

static int coffer_end_io(struct dm_target *ti, struct bio *bio, blk_status_t *error)
{
	struct coffer_io *io = coffer_io(bio);

	if (io->todo == COFFER_NOTHING)
		return DM_ENDIO_DONE;
	/* what would have had to wait is sent again by whoever asked not to */
	if (unlikely(*error && *error != BLK_STS_AGAIN))
		coffer_stat_add(io->dev, errors, 1);

	switch (io->todo) {
	case COFFER_DECRYPT:
		return coffer_read_end_io(io, error);
	case COFFER_RETURN_PAGES:
		coffer_write_end_io(io);
		return DM_ENDIO_DONE;
	default:
		return DM_ENDIO_DONE;
	}
}

static void coffer_status(struct dm_target *ti, status_type_t type,
			  unsigned int status_flags, char *result, unsigned int maxlen)
{
	struct coffer_device *dev = ti->private;
	struct coffer_keeper *keeper = dev->keeper;
	unsigned int sz = 0;

	switch (type) {
	case STATUSTYPE_INFO:
		DMEMIT("%s %s ", coffer_cipher_driver(&dev->cipher),
		       READ_ONCE(keeper->valid) ? "key_set" : "key_wiped");
		sz += coffer_stats_emit(dev->stats, result + sz, maxlen - sz);
		break;

	case STATUSTYPE_TABLE:
		DMEMIT("aes-xts-plain64 ");
		mutex_lock(&keeper->lock);
		sz += coffer_key_emit(&keeper->key, result + sz, maxlen - sz);
		mutex_unlock(&keeper->lock);
		DMEMIT(" %llu %s %llu", dev->params.iv_offset, dev->lower->name,
		       (unsigned long long)dev->params.start);
		sz += coffer_table_emit_options(&dev->params, result + sz, maxlen - sz);
		break;

	case STATUSTYPE_IMA:
		DMEMIT_TARGET_NAME_VERSION(ti->type);
		DMEMIT(",cipher_string=aes-xts-plain64,key_size=%u,iv_offset=%llu,start=%llu",
		       keeper->key.bytes, dev->params.iv_offset,
		       (unsigned long long)dev->params.start);
		DMEMIT(",sector_size=%u,iv_large_sectors=%c,allow_discards=%c;",
		       dev->params.data_unit,
		       test_bit(COFFER_IV_LARGE_SECTORS, &dev->params.flags) ? 'y' : 'n',
		       test_bit(COFFER_ALLOW_DISCARDS, &dev->params.flags) ? 'y' : 'n');
		break;
	}
}

static void coffer_postsuspend(struct dm_target *ti)
{
	struct coffer_device *dev = ti->private;

	set_bit(COFFER_SUSPENDED, &dev->state);
}

/* From here on, before any bio comes, messages leave the key alone. */
static int coffer_preresume(struct dm_target *ti)
{
	struct coffer_device *dev = ti->private;
	struct coffer_keeper *keeper = dev->keeper;
	int ret = 0;

	mutex_lock(&keeper->lock);
	if (keeper->valid) {
		keeper->live = true;
		clear_bit(COFFER_SUSPENDED, &dev->state);
	} else {
		DMERR("%s: not resumed: no key is set", dev->lower->name);
		ret = -EAGAIN;
	}
	mutex_unlock(&keeper->lock);
	return ret;
}

/*
 * key set <key>
 * key wipe
 */
static int coffer_message(struct dm_target *ti, unsigned int argc, char **argv,
			  char *result, unsigned int maxlen)
{
	struct coffer_device *dev = ti->private;
	struct coffer_keeper *keeper = dev->keeper;
	bool set = argc == 3 && !strcasecmp(argv[1], "set");
	bool wipe = argc == 2 && !strcasecmp(argv[1], "wipe");
	char *error = NULL;
	unsigned int noio;
	int ret = -EINVAL;

	mutex_lock(&keeper->lock);
	/* to get memory may mean to write to this very device, which is suspended */
	noio = memalloc_noio_save();
	if (strcasecmp(argv[0], "key") || (!set && !wipe)) {
		DMWARN("%s: unknown message", dev->lower->name);
	} else if (!test_bit(COFFER_SUSPENDED, &dev->state)) {
		DMWARN("%s: the key can only be changed while suspended", dev->lower->name);
	} else if (set) {
		ret = coffer_key_set(&keeper->key, &keeper->cipher, argv[2], &error);
		if (ret)
			DMERR("%s: key not set: %s", dev->lower->name, error);
		else
			keeper->valid = true;
	} else {
		keeper->valid = false;
		ret = coffer_key_wipe(&keeper->key, &keeper->cipher);
	}
	memalloc_noio_restore(noio);
	mutex_unlock(&keeper->lock);
	/* even in a message that was not understood */
	if (argc > 2 && *argv[2] != ':')
		memset(argv[2], 'x', strlen(argv[2]));
	return ret;
}

static int coffer_iterate_devices(struct dm_target *ti, iterate_devices_callout_fn fn,
				  void *data)
{
	struct coffer_device *dev = ti->private;

	return fn(ti, dev->lower, dev->params.start, ti->len, data);
}

static void coffer_io_hints(struct dm_target *ti, struct queue_limits *limits)
{
	struct coffer_device *dev = ti->private;
	unsigned int unit = dev->params.data_unit;

	limits->logical_block_size = max_t(unsigned int, limits->logical_block_size, unit);
	limits->physical_block_size = max_t(unsigned int, limits->physical_block_size, unit);
	limits->io_min = max_t(unsigned int, limits->io_min, unit);
	/* keeps a data unit in one piece of memory, but for a page boundary */
	limits->dma_alignment = max_t(unsigned int, limits->dma_alignment,
				      limits->logical_block_size - 1);
	/* an atomic write may not be split, so its pages have to fit one vector */
	coffer_limit_atomic_writes(limits, dev->lower->bdev, BIO_MAX_VECS << PAGE_SHIFT);
}

struct target_type coffer_target = {
	.name = "coffer",
	.version = { 1, 0, 0 },
	.features = DM_TARGET_NOWAIT | COFFER_TARGET_ATOMIC_WRITES,
	.module = THIS_MODULE,
	.ctr = coffer_ctr,
	.dtr = coffer_dtr,
	.map = coffer_map,
	.end_io = coffer_end_io,
	.status = coffer_status,
	.postsuspend = coffer_postsuspend,
	.preresume = coffer_preresume,
	.message = coffer_message,
	/*
	 * No prepare_ioctl, as in dm-crypt: SG_IO and its like would write around the
	 * encryption, and a virtual machine that is given the mapping sends just those.
	 */
	.iterate_devices = coffer_iterate_devices,
	.io_hints = coffer_io_hints,
};
