// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Where a conversion runs, and the counting of its parts: every byte is converted once;
 * the bio is finished once, by the caller (CONVERTED) or by somebody else (QUEUED),
 * never both; whoever does not own it any more does not touch it; the first error is
 * the bio's.
 *
 * io.c and queue.c are the driver's. Below them are a cipher that keeps books instead
 * of encrypting, and above them read and write paths that free the bio's data as soon
 * as they are told that it is done, so that KASAN sees any later access.
 */
#include <kunit/run-in-irq-context.h>
#include <kunit/test.h>
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/prandom.h>

/* Those of the driver are in this module too: these are others. */
#define coffer_cipher_usable	kunit_cipher_usable
#define coffer_encrypt		kunit_encrypt
#define coffer_decrypt		kunit_decrypt
#define coffer_write_finish	kunit_write_finish
#define coffer_read_finish	kunit_read_finish

#include "../../driver/io.c"
#include "../../driver/queue.c"

#include "crew.h"

#define UNIT	512
#define LARGE	(8 * COFFER_CHUNK)
#define INLINE_BYTES	(COFFER_MIN_HELPER_BYTES - 1)

/* Who says that the FPU is in use. */
enum fpu { FPU_FREE, FPU_BUSY_IN_SOFTIRQ, FPU_BUSY };
static enum fpu fpu;

struct fixture {
	struct coffer_device dev;
	struct dm_dev lower;
	struct complaint complaint;
	atomic64_t total;		/* bytes that the statistics must come to */
	atomic_t next;			/* of the bios for interrupts */
	struct record *records;
};

/* What became of one bio; outlives it. */
struct record {
	struct fixture *f;
	struct bio_vec vec;		/* "the caller's memory": only its address is used */
	struct bio_vec *bounce;		/* likewise */
	unsigned int size;
	sector_t sector;
	bool write;
	atomic_t *units;		/* how often each was converted */
	atomic_t finished;		/* by coffer_io_finish() */
	atomic_t returned;		/* as COFFER_CONVERTED */
	int error;			/* the bio's in the end */
	atomic_t parts;
	atomic_t foreign;		/* parts that the caller did not convert */
	struct task_struct *caller;
	struct completion done;

	/* what the cipher is to do */
	unsigned int delay;		/* microseconds */
	unsigned int fail_at;		/* first byte of the unit that fails, with -EIO */
	unsigned int fail_too;		/* another, with -ENOMEM */
	int caller_error;		/* of all parts that the caller converts */
	int foreign_error;		/* of all others */
	struct coffer_io *io;		/* for caller_last only */
	struct completion *foreign_in;	/* a helper has begun */
	struct completion *foreign_waits; /* helpers wait for it when they have begun */
	struct completion *caller_waits; /* the caller waits for it */
	bool caller_last;		/* the caller waits until all else is converted */
};

#define NO_FAILURE	UINT_MAX

/* The bio's own data: freed the moment that it is done. */
struct subject {
	struct coffer_io io;
	struct record *record;
};

static struct record *record_of(struct coffer_io *io)
{
	return container_of(io, struct subject, io)->record;
}

/* ---- below: a cipher that keeps books ------------------------------------------------- */

bool kunit_cipher_usable(void)
{
	if (in_hardirq() || irqs_disabled())
		return false;
	switch (READ_ONCE(fpu)) {
	case FPU_BUSY:
		return false;
	case FPU_BUSY_IN_SOFTIRQ:
		return !in_serving_softirq();
	default:
		return true;
	}
}

static int convert_part(const struct coffer_cipher *cipher, const struct bio_vec *vecs,
			struct bvec_iter iter, const struct bio_vec *bounce)
{
	struct record *r = container_of(vecs, struct record, vec);
	unsigned int from = mp_bvec_iter_offset(vecs, iter), i;
	struct complaint *c = &r->f->complaint;
	int ret = 0;

	if (in_hardirq() || irqs_disabled())
		complain(c, "converts with interrupts off", from);
	if (cipher != &r->f->dev.cipher)
		complain(c, "another cipher", from);
	if (!iter.bi_size || from % PAGE_SIZE || iter.bi_size % UNIT || from > r->size ||
	    iter.bi_size > r->size - from) {
		complain(c, "a part that is not within the bio", from);
		return -EIO;
	}
	if (iter.bi_sector != r->sector + from / 512)
		complain(c, "wrong sector for a part", from);
	if (bounce != (r->write ? r->bounce + from / PAGE_SIZE : NULL))
		complain(c, "wrong bounce page for a part", from);
	atomic_inc(&r->parts);
	if (current != r->caller || in_serving_softirq()) {
		atomic_inc(&r->foreign);
		if (r->foreign_in)
			complete_all(r->foreign_in);
		if (r->foreign_waits)
			wait_for_completion(r->foreign_waits);
		ret = r->foreign_error;
	} else {
		if (r->caller_waits)
			wait_for_completion(r->caller_waits);
		/* left: this part, and one for taking part */
		while (r->caller_last && atomic_read(&r->io->chunks_left) > 2)
			msleep(1);
		ret = r->caller_error;
	}
	udelay(r->delay);
	for (i = from / UNIT; i < (from + iter.bi_size) / UNIT; i++) {
		if (i * UNIT == r->fail_at || i * UNIT == r->fail_too)
			ret = ret ?: i * UNIT == r->fail_at ? -EIO : -ENOMEM;
		if (atomic_inc_return(&r->units[i]) != 1)
			complain(c, "converted twice", i * UNIT);
	}
	return ret;
}

int kunit_encrypt(const struct coffer_cipher *cipher, const struct bio_vec *vecs,
		  const struct bvec_iter *iter, const struct bio_vec *bounce)
{
	return convert_part(cipher, vecs, *iter, bounce);
}

int kunit_decrypt(const struct coffer_cipher *cipher, struct bio_vec *vecs,
		  const struct bvec_iter *iter)
{
	return convert_part(cipher, vecs, *iter, NULL);
}

/* ---- above: who owns a bio that is done ------------------------------------------------ */

/* In the hands of its owner, for the last time. */
static void release(struct coffer_io *io, atomic_t *how)
{
	struct record *r = record_of(io);
	struct complaint *c = &r->f->complaint;
	unsigned int i;

	if (in_hardirq() || irqs_disabled())
		complain(c, "finished with interrupts off", 0);
	atomic_inc(how);
	if (atomic_read(&r->finished) + atomic_read(&r->returned) != 1)
		complain(c, "finished twice", atomic_read(&r->finished));
	for (i = 0; i < r->size / UNIT; i++)
		if (atomic_read(&r->units[i]) != 1)
			complain(c, "finished before it was converted", i * UNIT);
	r->error = io->error;
	kfree(container_of(io, struct subject, io));
	complete(&r->done);
}

static void finish(struct coffer_io *io, bool write)
{
	struct record *r = record_of(io);

	if (r->write != write)
		complain(&r->f->complaint, "finished by the wrong path", write);
	release(io, &r->finished);
}

void kunit_write_finish(struct coffer_io *io)
{
	finish(io, true);
}

void kunit_read_finish(struct coffer_io *io)
{
	finish(io, false);
}

static void record_init(struct fixture *f, struct record *r, unsigned int size, bool write,
			atomic_t *units)
{
	memset(r, 0, sizeof(*r));
	memset(units, 0, size / UNIT * sizeof(*units));
	r->f = f;
	r->size = size;
	r->write = write;
	r->units = units;
	r->sector = 0x123456788ULL;
	r->vec.bv_len = size;
	r->bounce = (struct bio_vec *)r;	/* any address */
	r->fail_at = NO_FAILURE;
	r->fail_too = NO_FAILURE;
	init_completion(&r->done);
}

static struct coffer_io *subject_init(struct record *r, struct subject *s)
{
	s->record = r;
	s->io.dev = &r->f->dev;
	s->io.source = &r->vec;
	s->io.bounce = r->write ? r->bounce : NULL;
	s->io.iter.bi_sector = r->sector;
	s->io.iter.bi_size = r->size;
	s->io.todo = r->write ? COFFER_RETURN_PAGES : COFFER_DECRYPT;
	r->caller = current;
	r->io = &s->io;
	return &s->io;
}

/* Hands the bio in; what is returned is all that the caller may still know. */
static enum coffer_outcome submit(struct record *r, gfp_t gfp)
{
	struct subject *s = kzalloc(sizeof(*s), gfp);
	enum coffer_outcome outcome;

	if (!s) {
		complain(&r->f->complaint, "no memory for the test", 0);
		complete(&r->done);
		return COFFER_QUEUED;
	}
	/* who must not sleep says so: a write path may rest between its parts else */
	s->io.nowait = !gfpflags_allow_blocking(gfp);
	atomic64_add(r->size, &r->f->total);
	outcome = coffer_queue_convert(subject_init(r, s));
	if (outcome == COFFER_CONVERTED)
		release(&s->io, &r->returned);
	return outcome;
}

static void submit_irqs_off(struct record *r)
{
	unsigned long flags;

	local_irq_save(flags);
	if (submit(r, GFP_ATOMIC) != COFFER_QUEUED)
		complain(&r->f->complaint, "converted with interrupts off", 0);
	local_irq_restore(flags);
}

static bool wait_for(struct record *r)
{
	if (wait_for_completion_timeout(&r->done, CREW_PATIENCE))
		return true;
	complain(&r->f->complaint, "a bio is not finished", r->size);
	return false;
}

static u64 stat_sum(struct fixture *f, enum coffer_where where)
{
	unsigned int cpu;
	u64 sum = 0;

	for_each_possible_cpu(cpu) {
		struct coffer_stats *stats = per_cpu_ptr(f->dev.stats, cpu);

		sum += local64_read(&stats->read[where]) +
		       local64_read(&stats->written[where]);
	}
	return sum;
}

/* No bio is on its way: nobody is busy, and each byte is in the statistics once. */
static void expect_idle(struct kunit *test)
{
	struct fixture *f = test->priv;
	struct coffer_queue *queue = f->dev.queue;
	u64 sum = 0;
	int i;

	flush_workqueue(queue->workers);
	for (i = 0; i < COFFER_WHERES; i++)
		sum += stat_sum(f, i);
	EXPECT_NO_COMPLAINT(test, &f->complaint);
	KUNIT_EXPECT_TRUE(test, list_empty(&queue->bios));
	KUNIT_EXPECT_EQ(test, queue->nr_bios, 0);
	KUNIT_EXPECT_EQ(test, queue->nr_awake, 0);
	KUNIT_EXPECT_TRUE(test, bitmap_empty(queue->awake, NR_HELPERS));
	KUNIT_EXPECT_EQ(test, atomic_read(&queue->busy), 0);
	KUNIT_EXPECT_EQ(test, sum, atomic64_read(&f->total));
}

static struct record *new_record(struct kunit *test, unsigned int size, bool write)
{
	struct record *r = kunit_kzalloc(test, sizeof(*r), GFP_KERNEL);
	atomic_t *units = kunit_kcalloc(test, size / UNIT, sizeof(*units), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, r);
	KUNIT_ASSERT_NOT_NULL(test, units);
	record_init(test->priv, r, size, write, units);
	return r;
}

/* Keeps the helpers from running: one worker at a time, and a work of ours in its place. */
struct block {
	struct work_struct work;
	struct completion in, out;
};

static void block_fn(struct work_struct *work)
{
	struct block *b = container_of(work, struct block, work);

	complete(&b->in);
	wait_for_completion(&b->out);
}

static struct block *block_helpers(struct kunit *test)
{
	struct block *b = kunit_kzalloc(test, sizeof(*b), GFP_KERNEL);
	struct fixture *f = test->priv;

	KUNIT_ASSERT_NOT_NULL(test, b);
	INIT_WORK(&b->work, block_fn);
	init_completion(&b->in);
	init_completion(&b->out);
	workqueue_set_max_active(f->dev.queue->workers, 1);
	queue_work(f->dev.queue->workers, &b->work);
	wait_for_completion(&b->in);
	return b;
}

/* ---- one bio, each way ------------------------------------------------------------------- */

static const unsigned int small[] = { 512, 1024, 4096, 4608, COFFER_CHUNK,
				      COFFER_CHUNK + 512, SZ_32K, INLINE_BYTES - 511 };

static void inline_small(struct kunit *test)
{
	struct fixture *f = test->priv;
	unsigned int i;

	for (i = 0; i < 2 * ARRAY_SIZE(small); i++) {
		struct record *r = new_record(test, small[i / 2], i % 2);

		KUNIT_EXPECT_EQ(test, submit(r, GFP_KERNEL), COFFER_CONVERTED);
		KUNIT_EXPECT_EQ(test, atomic_read(&r->foreign), 0);
		KUNIT_EXPECT_EQ(test, r->error, 0);
	}
	KUNIT_EXPECT_EQ(test, stat_sum(f, COFFER_INLINE), atomic64_read(&f->total));
	expect_idle(test);
}

static void softirq_small(struct kunit *test)
{
	struct fixture *f = test->priv;
	unsigned int i;

	for (i = 0; i < 2 * ARRAY_SIZE(small); i++) {
		struct record *r = new_record(test, small[i / 2], i % 2);

		submit_irqs_off(r);
		KUNIT_ASSERT_TRUE(test, wait_for(r));
		KUNIT_EXPECT_EQ(test, atomic_read(&r->finished), 1);
	}
	KUNIT_EXPECT_EQ(test, stat_sum(f, COFFER_OFFLOADED), atomic64_read(&f->total));
	expect_idle(test);
}

/* Several at once, more than a softirq converts in one go. */
static void softirq_batch(struct kunit *test)
{
	struct record *r[20];
	unsigned long flags;
	unsigned int i;

	BUILD_BUG_ON(ARRAY_SIZE(r) * SZ_32K < 2 * SOFTIRQ_BYTES);
	for (i = 0; i < ARRAY_SIZE(r); i++)
		r[i] = new_record(test, SZ_32K, i % 2);
	local_irq_save(flags);
	for (i = 0; i < ARRAY_SIZE(r); i++)
		submit(r[i], GFP_ATOMIC);
	local_irq_restore(flags);
	for (i = 0; i < ARRAY_SIZE(r); i++)
		KUNIT_ASSERT_TRUE(test, wait_for(r[i]));
	expect_idle(test);
}

static void worker(struct kunit *test, enum fpu busy, bool irqs_off)
{
	static const unsigned int sizes[] = { 512, 4096, INLINE_BYTES + 1, LARGE, SZ_4M };
	struct fixture *f = test->priv;
	unsigned int i;

	WRITE_ONCE(fpu, busy);
	for (i = 0; i < 2 * ARRAY_SIZE(sizes); i++) {
		struct record *r = new_record(test, sizes[i / 2], i % 2);

		if (irqs_off)
			submit_irqs_off(r);
		else
			KUNIT_EXPECT_EQ(test, submit(r, GFP_KERNEL), COFFER_QUEUED);
		KUNIT_ASSERT_TRUE(test, wait_for(r));
		KUNIT_EXPECT_EQ(test, atomic_read(&r->finished), 1);
		KUNIT_EXPECT_EQ(test, atomic_read(&r->foreign), atomic_read(&r->parts));
	}
	KUNIT_EXPECT_EQ(test, stat_sum(f, COFFER_OFFLOADED), atomic64_read(&f->total));
	expect_idle(test);
}

static void hand_over_from_task(struct kunit *test)
{
	worker(test, FPU_BUSY, false);
}

static void hand_over_from_softirq(struct kunit *test)
{
	worker(test, FPU_BUSY_IN_SOFTIRQ, true);
}

/* ---- several CPUs --------------------------------------------------------------------------- */

static bool one_cpu(struct kunit *test)
{
	if (num_online_cpus() >= 2)
		return false;
	kunit_mark_skipped(test, "one CPU");
	return true;
}

/* Sizes around those where the number of chunks changes; read and write. */
static void fan_out_sizes(struct kunit *test)
{
	static const unsigned int sizes[] = {
		INLINE_BYTES + 1, INLINE_BYTES + 513, 5 * COFFER_CHUNK - 512,
		5 * COFFER_CHUNK, 6 * COFFER_CHUNK + 4096, SZ_1M - 512, SZ_1M, SZ_1M + 512,
		SZ_4M + 3584,
	};
	struct fixture *f = test->priv;
	unsigned int i, fanout, foreign = 0;

	if (one_cpu(test))
		return;
	for (fanout = 0; fanout <= 3; fanout++) {
		f->dev.params.fanout = fanout;
		for (i = 0; i < 2 * ARRAY_SIZE(sizes); i++) {
			struct record *r = new_record(test, sizes[i / 2], i % 2);

			r->delay = 50;
			submit(r, GFP_KERNEL);
			KUNIT_ASSERT_TRUE(test, wait_for(r));
			KUNIT_EXPECT_LE(test, atomic_read(&r->parts),
					DIV_ROUND_UP(r->size, COFFER_CHUNK));
			if (fanout == 1)
				KUNIT_EXPECT_EQ(test, atomic_read(&r->foreign), 0);
			foreign += atomic_read(&r->foreign);
			/* a helper may be on its way out: then the next bio finds no idle CPU */
			flush_workqueue(f->dev.queue->workers);
		}
	}
	KUNIT_EXPECT_GT(test, stat_sum(f, COFFER_FANNED_OUT), 0);
	KUNIT_EXPECT_GT(test, foreign, 0);
	expect_idle(test);
}

/* The caller is through first and goes; the helper finishes the bio. */
static void helper_last(struct kunit *test)
{
	struct completion *in = kunit_kzalloc(test, sizeof(*in), GFP_KERNEL);
	struct completion *out = kunit_kzalloc(test, sizeof(*out), GFP_KERNEL);
	struct record *r = new_record(test, LARGE, true);

	if (one_cpu(test))
		return;
	KUNIT_ASSERT_NOT_NULL(test, in);
	KUNIT_ASSERT_NOT_NULL(test, out);
	init_completion(in);
	init_completion(out);
	r->foreign_in = in;
	r->caller_waits = in;
	r->foreign_waits = out;
	r->caller_error = -EIO;
	r->foreign_error = -ENOMEM;
	KUNIT_EXPECT_EQ(test, submit(r, GFP_KERNEL), COFFER_QUEUED);
	KUNIT_EXPECT_FALSE(test, completion_done(&r->done));
	KUNIT_EXPECT_EQ(test, atomic_read(&r->finished), 0);
	complete_all(out);
	KUNIT_ASSERT_TRUE(test, wait_for(r));
	KUNIT_EXPECT_EQ(test, atomic_read(&r->finished), 1);
	/* the first, not the last and not the worst */
	KUNIT_EXPECT_EQ(test, r->error, -EIO);
	expect_idle(test);
}

/* The helpers are through first: the bio is the caller's. */
static void caller_last(struct kunit *test)
{
	struct record *r = new_record(test, LARGE, false);

	if (one_cpu(test))
		return;
	r->caller_last = true;
	r->caller_error = -EIO;
	r->foreign_error = -ENOMEM;
	KUNIT_EXPECT_EQ(test, submit(r, GFP_KERNEL), COFFER_CONVERTED);
	KUNIT_EXPECT_EQ(test, atomic_read(&r->finished), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&r->foreign), atomic_read(&r->parts) - 1);
	KUNIT_EXPECT_EQ(test, r->error, -ENOMEM);
	expect_idle(test);
}

/* With the option, a large bio goes whole to a worker; a small one does not. */
static void handover_option(struct kunit *test)
{
	struct fixture *f = test->priv;
	struct record *r;

	set_bit(COFFER_HANDOVER, &f->dev.params.flags);
	r = new_record(test, LARGE, true);
	KUNIT_EXPECT_EQ(test, submit(r, GFP_KERNEL), COFFER_QUEUED);
	KUNIT_ASSERT_TRUE(test, wait_for(r));
	KUNIT_EXPECT_EQ(test, atomic_read(&r->foreign), atomic_read(&r->parts));
	r = new_record(test, 4096, true);
	KUNIT_EXPECT_EQ(test, submit(r, GFP_KERNEL), COFFER_CONVERTED);
	expect_idle(test);
}

/* A softirq leaves what is too long for it to the helpers, and nobody forgets it. */
static void softirq_large(struct kunit *test)
{
	static const unsigned int sizes[] = { SOFTIRQ_BYTES, SOFTIRQ_BYTES + 512, SZ_1M, SZ_4M };
	struct fixture *f = test->priv;
	unsigned int i;

	for (i = 0; i < 4 * ARRAY_SIZE(sizes); i++) {
		unsigned int size = sizes[i / 4];
		struct record *r = new_record(test, size, i % 2);
		struct block *block;

		f->dev.params.fanout = i / 2 % 2;
		block = block_helpers(test);
		submit_irqs_off(r);
		msleep(20);
		if (size > SOFTIRQ_BYTES)
			KUNIT_EXPECT_FALSE(test, completion_done(&r->done));
		complete(&block->out);
		KUNIT_ASSERT_TRUE(test, wait_for(r));
		KUNIT_EXPECT_EQ(test, atomic_read(&r->finished), 1);
		expect_idle(test);
	}
}

/*
 * Helpers that come when all is done find nothing, and nobody has waited for them: the
 * caller took every part.
 */
static void late_helpers(struct kunit *test)
{
	struct fixture *f = test->priv;
	unsigned int i;

	if (one_cpu(test))
		return;
	for (i = 0; i < 12; i++) {
		struct record *r = new_record(test, LARGE, i % 2);
		struct block *block = block_helpers(test);

		/* in order then, so the error is that of the lower address */
		if (i % 3) {
			r->fail_at = i % 3 == 1 ? UNIT : LARGE - UNIT;
			r->fail_too = i % 3 == 1 ? LARGE - UNIT : UNIT;
		}
		KUNIT_EXPECT_EQ(test, submit(r, GFP_KERNEL), COFFER_CONVERTED);
		KUNIT_EXPECT_GT(test, f->dev.queue->nr_awake, 0);
		KUNIT_EXPECT_GT(test, atomic_read(&r->parts), 1);
		KUNIT_EXPECT_EQ(test, atomic_read(&r->foreign), 0);
		KUNIT_EXPECT_EQ(test, r->error, i % 3 == 0 ? 0 : i % 3 == 1 ? -EIO : -ENOMEM);
		complete(&block->out);
		expect_idle(test);
	}
}

/* From here on there are so many callers with a large bio, or none. */
static void set_busy(struct fixture *f, unsigned int callers)
{
	atomic_set(&f->dev.queue->busy, callers);
}

/*
 * No CPU is free: a task gives away as many large bios as there are CPUs, and converts
 * the others itself; a softirq gives all away. One CPU for a bio means the caller's.
 */
static void all_cpus_busy(struct kunit *test)
{
	unsigned int cpus = num_online_cpus(), i;
	struct fixture *f = test->priv;
	struct record *given[16], *r;
	struct block *block;

	if (one_cpu(test))
		return;
	KUNIT_ASSERT_LT(test, cpus, ARRAY_SIZE(given));
	for (i = 0; i <= cpus; i++)
		given[i] = new_record(test, LARGE, i % 2);
	block = block_helpers(test);
	set_busy(f, cpus);
	f->dev.params.fanout = 1;
	r = new_record(test, LARGE, true);
	KUNIT_EXPECT_EQ(test, submit(r, GFP_KERNEL), COFFER_CONVERTED);
	f->dev.params.fanout = 0;
	for (i = 0; i < cpus; i++)
		KUNIT_EXPECT_EQ(test, submit(given[i], GFP_KERNEL), COFFER_QUEUED);
	for (i = 0; i < 2; i++) {
		r = new_record(test, LARGE, i);
		KUNIT_EXPECT_EQ(test, submit(r, GFP_KERNEL), COFFER_CONVERTED);
		KUNIT_EXPECT_EQ(test, atomic_read(&r->foreign), 0);
		KUNIT_EXPECT_EQ(test, r->error, 0);
	}
	submit_irqs_off(given[cpus]);
	msleep(20);
	KUNIT_EXPECT_LE(test, f->dev.queue->nr_awake, cpus);
	for (i = 0; i <= cpus; i++)
		KUNIT_EXPECT_FALSE(test, completion_done(&given[i]->done));
	complete(&block->out);
	for (i = 0; i <= cpus; i++) {
		KUNIT_ASSERT_TRUE(test, wait_for(given[i]));
		KUNIT_EXPECT_EQ(test, atomic_read(&given[i]->foreign),
				atomic_read(&given[i]->parts));
	}
	set_busy(f, 0);
	expect_idle(test);
}

/* The mapping goes while helpers that nobody needs any more are still to come. */
static void destroy_with_late_helpers(struct kunit *test)
{
	struct fixture *f = test->priv;
	struct block *block;
	unsigned int i;

	if (one_cpu(test))
		return;
	for (i = 0; i < 20; i++) {
		struct record *r = new_record(test, LARGE, i % 2);

		block = block_helpers(test);
		KUNIT_EXPECT_EQ(test, submit(r, GFP_KERNEL), COFFER_CONVERTED);
		complete(&block->out);
		coffer_queue_destroy(f->dev.queue);
		f->dev.queue = coffer_queue_create(&f->dev);
		KUNIT_ASSERT_NOT_NULL(test, f->dev.queue);
	}
	/* and with nothing */
	coffer_queue_destroy(NULL);
	expect_idle(test);
}

/* ---- everything at once ------------------------------------------------------------------------ */

#define STRESS_ROUNDS	120
#define STRESS_DEPTH	4

static unsigned int random_size(u32 dice)
{
	switch (dice & 3) {
	case 0:
		return UNIT * (1 + (dice >> 8) % 8);
	case 1:
		return 4096 * (1 + (dice >> 8) % 32);
	case 2:
		return UNIT * (1 + (dice >> 8) % 2048);
	default:
		return COFFER_CHUNK * (2 + (dice >> 8) % 16) + UNIT * ((dice >> 16) % 3);
	}
}

static void check_error(struct fixture *f, struct record *r)
{
	bool io = r->fail_at < r->size, mem = r->fail_too < r->size;

	if (r->error && !(io && r->error == -EIO) && !(mem && r->error == -ENOMEM))
		complain(&f->complaint, "an error from nowhere", -r->error);
	if (!r->error && (io || mem))
		complain(&f->complaint, "an error was lost", r->fail_at);
}

static bool collect(struct fixture *f, struct record *r)
{
	if (!r)
		return true;
	/* in use for ever then: not to be freed */
	if (!wait_for(r))
		return false;
	check_error(f, r);
	kvfree(r->units);
	kfree(r);
	return true;
}

static void stress_thread(void *ctx, unsigned int number)
{
	struct record *pending[STRESS_DEPTH] = {};
	struct fixture *f = ctx;
	struct rnd_state rnd;
	unsigned int round;

	prandom_seed_state(&rnd, number + 1);
	for (round = 0; round < STRESS_ROUNDS; round++) {
		u32 dice = prandom_u32_state(&rnd);
		unsigned int size = random_size(prandom_u32_state(&rnd));
		struct record *r = kzalloc(sizeof(*r), GFP_KERNEL);
		atomic_t *units = kvcalloc(size / UNIT, sizeof(*units), GFP_KERNEL);

		if (!collect(f, pending[round % STRESS_DEPTH]))
			return;
		pending[round % STRESS_DEPTH] = r;
		if (!r || !units) {
			complain(&f->complaint, "no memory for the test", size);
			return;
		}
		record_init(f, r, size, dice & 1, units);
		r->delay = (dice >> 1 & 3) ? 0 : (dice >> 3) % 60;
		if ((dice >> 9 & 7) == 0)
			r->fail_at = UNIT * ((dice >> 12) % (size / UNIT));
		if ((dice >> 9 & 7) <= 1)
			r->fail_too = UNIT * ((dice >> 16) % (size / UNIT));
		if ((dice >> 28) == 0)
			WRITE_ONCE(fpu, (dice >> 24 & 15) % 3);
		if ((dice >> 26 & 3) == 0)
			submit_irqs_off(r);
		else
			submit(r, GFP_KERNEL);
		cond_resched();
	}
	for (round = 0; round < STRESS_DEPTH; round++)
		if (!collect(f, pending[round]))
			return;
}

static void stress(struct kunit *test)
{
	struct fixture *f = test->priv;

	KUNIT_ASSERT_TRUE(test, crew_run(test, 6, stress_thread, f));
	KUNIT_EXPECT_GT(test, stat_sum(f, COFFER_INLINE), 0);
	KUNIT_EXPECT_GT(test, stat_sum(f, COFFER_OFFLOADED), 0);
	if (num_online_cpus() > 1)
		KUNIT_EXPECT_GT(test, stat_sum(f, COFFER_FANNED_OUT), 0);
	expect_idle(test);
}

#define INTERRUPTS	1500

/* One small bio per call, from a task, a softirq or a hard interrupt. */
static bool from_any_context(void *ctx)
{
	struct fixture *f = ctx;
	int i = atomic_inc_return(&f->next) - 1;
	enum coffer_outcome outcome;

	if (i >= INTERRUPTS)
		return true;
	outcome = submit(&f->records[i], GFP_ATOMIC);
	if (in_hardirq() && outcome != COFFER_QUEUED)
		complain(&f->complaint, "converted in a hard interrupt", i);
	return !f->complaint.what;
}

static void contexts(struct kunit *test, enum fpu busy)
{
	struct fixture *f = test->priv;
	atomic_t *units;
	int i, used;

	WRITE_ONCE(fpu, busy);
	f->records = kvcalloc(INTERRUPTS, sizeof(*f->records), GFP_KERNEL);
	units = kvcalloc(INTERRUPTS, 8 * sizeof(*units), GFP_KERNEL);
	if (!f->records || !units) {
		KUNIT_FAIL(test, "no memory");
		goto out;
	}
	for (i = 0; i < INTERRUPTS; i++)
		record_init(f, &f->records[i], 4096, i % 2, units + 8 * i);
	kunit_run_irq_test(test, from_any_context, INTERRUPTS, f);
	used = min(atomic_read(&f->next), INTERRUPTS);
	KUNIT_EXPECT_GT(test, used, 2);
	for (i = 0; i < used; i++)
		if (!wait_for(&f->records[i]))
			return;
	expect_idle(test);
out:
	kvfree(units);
	kvfree(f->records);
}

static void contexts_fpu_free(struct kunit *test)
{
	contexts(test, FPU_FREE);
}

static void contexts_fpu_busy_in_softirq(struct kunit *test)
{
	contexts(test, FPU_BUSY_IN_SOFTIRQ);
}

static int queue_suite_init(struct kunit_suite *suite)
{
	coffer_queue_start();
	return 0;
}

static void queue_suite_exit(struct kunit_suite *suite)
{
	coffer_queue_stop();
}

static int queue_init(struct kunit *test)
{
	struct fixture *f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, f);
	test->priv = f;
	WRITE_ONCE(fpu, FPU_FREE);
	strscpy(f->lower.name, "kunit", sizeof(f->lower.name));
	f->dev.lower = &f->lower;
	f->dev.inline_bytes = INLINE_BYTES;
	f->dev.helper_bytes = COFFER_MIN_HELPER_BYTES;
	f->dev.stats = alloc_percpu(struct coffer_stats);
	KUNIT_ASSERT_NOT_NULL(test, f->dev.stats);
	f->dev.queue = coffer_queue_create(&f->dev);
	KUNIT_ASSERT_NOT_NULL(test, f->dev.queue);
	return 0;
}

static void queue_exit(struct kunit *test)
{
	struct fixture *f = test->priv;

	if (!f)
		return;
	coffer_queue_destroy(f->dev.queue);
	free_percpu(f->dev.stats);
}

static struct kunit_case queue_cases[] = {
	KUNIT_CASE(inline_small),
	KUNIT_CASE(softirq_small),
	KUNIT_CASE(softirq_batch),
	KUNIT_CASE(hand_over_from_task),
	KUNIT_CASE(hand_over_from_softirq),
	KUNIT_CASE(fan_out_sizes),
	KUNIT_CASE(helper_last),
	KUNIT_CASE(caller_last),
	KUNIT_CASE(handover_option),
	KUNIT_CASE(softirq_large),
	KUNIT_CASE(late_helpers),
	KUNIT_CASE(all_cpus_busy),
	KUNIT_CASE(destroy_with_late_helpers),
	KUNIT_CASE_SLOW(stress),
	KUNIT_CASE(contexts_fpu_free),
	KUNIT_CASE(contexts_fpu_busy_in_softirq),
	{}
};

static struct kunit_suite queue_suite = {
	.name = "coffer-queue",
	.suite_init = queue_suite_init,
	.suite_exit = queue_suite_exit,
	.init = queue_init,
	.exit = queue_exit,
	.test_cases = queue_cases,
};
kunit_test_suite(queue_suite);
