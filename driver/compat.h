/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What differs between the kernels that the driver builds for: 6.1, 6.12 and 7.3.
 *
 * This is the only file that tests a kernel version. Everything else is written
 * against the names below, which behave alike on each of them.
 */
#ifndef COFFER_COMPAT_H
#define COFFER_COMPAT_H

#include <linux/version.h>
#include <linux/bio.h>
#include <linux/blkdev.h>
#include <linux/device-mapper.h>
#include <linux/interrupt.h>
#include <linux/workqueue.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 1, 0)
#error "dm-coffer needs Linux 6.1 or newer"
#endif

/* hex2bin() moved out of kernel.h. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 8, 0)
#include <linux/hex.h>
#else
#include <linux/kernel.h>
#endif

/*
 * Work in softirq context on the CPU that queued it: BH workqueues came with 6.9,
 * before that there is the tasklet. The item is embedded by its user and never
 * freed while the module is loaded, so a tasklet is safe here too.
 */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 9, 0)
struct coffer_softirq {
	struct work_struct work;
};

#define coffer_softirq_init(s, fn)	INIT_WORK(&(s)->work, fn)
#define coffer_softirq_queue(s)		queue_work(system_bh_wq, &(s)->work)
#define coffer_softirq_flush(s)		flush_work(&(s)->work)
#define COFFER_SOFTIRQ_FN(name)		void name(struct work_struct *arg)
#define coffer_softirq_of(arg)		container_of(arg, struct coffer_softirq, work)
#else
struct coffer_softirq {
	struct tasklet_struct work;
};

#define coffer_softirq_init(s, fn)	tasklet_setup(&(s)->work, fn)
#define coffer_softirq_queue(s)		tasklet_schedule(&(s)->work)
#define coffer_softirq_flush(s)		tasklet_kill(&(s)->work)
#define COFFER_SOFTIRQ_FN(name)		void name(struct tasklet_struct *arg)
#define coffer_softirq_of(arg)		container_of(arg, struct coffer_softirq, work)
#endif

/* Empty flushes may skip the target's map function from 6.11 on. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 11, 0)
static inline void coffer_flush_bypasses_map(struct dm_target *ti)
{
	ti->flush_bypasses_map = true;
}
#else
static inline void coffer_flush_bypasses_map(struct dm_target *ti)
{
}
#endif

/**
 * coffer_bio_set_vecs() - point a clone at another vector of the same size
 * @bio: clone that has not been submitted
 * @vecs: vector that covers bio->bi_iter.bi_size bytes from its first byte on
 * @nr: entries in @vecs
 */
static inline void coffer_bio_set_vecs(struct bio *bio, struct bio_vec *vecs,
				       unsigned short nr)
{
	bio->bi_io_vec = vecs;
	bio->bi_vcnt = nr;
	bio->bi_iter.bi_idx = 0;
#if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 3, 0)
	bio->bi_iter.bi_offset = 0;
#else
	bio->bi_iter.bi_bvec_done = 0;
#endif
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 19, 0)
	/* a property of the old vector; the block layer works it out anew */
	bio->bi_bvec_gap_bit = 0;
#endif
}

/* Atomic writes reach targets that ask for them. */
#ifdef DM_TARGET_ATOMIC_WRITES
#define COFFER_TARGET_ATOMIC_WRITES	DM_TARGET_ATOMIC_WRITES
#define COFFER_REQ_ATOMIC		REQ_ATOMIC

/* What the lower queue takes, not what it could take if its blocks were like ours. */
static inline void coffer_limit_atomic_writes(struct queue_limits *limits,
					      struct block_device *lower, unsigned int most)
{
	unsigned int bytes = min(bdev_atomic_write_unit_max_bytes(lower), most);

	if (bytes < limits->logical_block_size)
		bytes = 0;	/* no atomic writes */
	limits->atomic_write_hw_unit_max = min(limits->atomic_write_hw_unit_max, bytes);
	limits->atomic_write_hw_max = min(limits->atomic_write_hw_max, bytes);
	if (bytes)
		limits->atomic_write_hw_unit_min = max(limits->atomic_write_hw_unit_min,
						       limits->logical_block_size);
}
#else
#define COFFER_TARGET_ATOMIC_WRITES	0
#define COFFER_REQ_ATOMIC		0

static inline void coffer_limit_atomic_writes(struct queue_limits *limits,
					      struct block_device *lower, unsigned int most)
{
}
#endif

#endif
