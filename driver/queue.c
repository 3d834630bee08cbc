// SPDX-License-Identifier: GPL-2.0-only
/*
 * Where a conversion runs. One rule, for each bio by itself:
 *
 *   the context forbids it, as in a hard interrupt   to the softirq of this CPU
 *   a softirq came upon the FPU in use               to a worker
 *   small                                            here
 *   another CPU has no large bio to convert          here and there at once
 *   fewer large bios wait for a CPU than there are   to the helpers, whole
 *   else                                             here
 *
 * So a single large bio is done soonest, and with many in flight each is converted by
 * one CPU, which costs least, on all CPUs, while the caller keeps the disk busy.
 *
 * Helpers. A mapping has a list of bios with chunks that nobody has taken yet, and up
 * to one worker for each CPU, the helpers. Whoever publishes a bio wakes helpers and
 * takes chunks too; a helper takes chunks until the list is empty. A helper that comes
 * late finds nothing and goes, so nobody ever waits for one.
 *
 * Invariants:
 *  - chunks_left counts the untaken and the unfinished chunks, and one for the
 *    publisher while it takes part. A taken chunk keeps the bio alive; who brings the
 *    count to 0 has the bio for itself.
 *  - Forward progress: the workqueue has a rescuer, a helper waits for no other, and
 *    a bio on the list needs nothing but one helper.
 */
#include <linux/cpumask.h>
#include <linux/percpu.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#include "compat.h"
#include "device.h"
#include "io.h"
#include "queue.h"
#include "stats.h"

/*
 * More than CPUs: one that sends a write on may sleep there, and must not leave the
 * rest of the list to nobody.
 */
#define NR_HELPERS	64

/* What a softirq converts before it lets others have the CPU. */
#define SOFTIRQ_BYTES	SZ_256K

/*
 * What a CPU converts at a time of a bio that is not shared, before it looks for others
 * that want the CPU. Large, so that most bios that are handed over stay with one CPU.
 */
#define ALONE_BYTES	((unsigned int)SZ_128K)

struct helper {
	struct work_struct work;
	struct coffer_queue *queue;
};

struct coffer_queue {
	struct workqueue_struct *workers;
	atomic_t busy;			/* callers that convert a large bio just now */
	spinlock_t lock;		/* bottom halves off */
	struct list_head bios;		/* with untaken chunks; lock */
	unsigned int nr_bios;		/* of these; lock */
	DECLARE_BITMAP(awake, NR_HELPERS); /* helpers queued or running; lock */
	unsigned int nr_awake;		/* lock */
	struct helper helpers[NR_HELPERS];
};

struct softirq_list {
	struct coffer_softirq softirq;
	struct llist_head bios;		/* newest first, added to in hard irq */
	struct llist_node *todo;	/* oldest first; the softirq's own */
};

static DEFINE_PER_CPU(struct softirq_list, softirq_lists);

/* no two CPUs encrypt into the same bounce page */
static_assert(COFFER_CHUNK % PAGE_SIZE == 0 && ALONE_BYTES % PAGE_SIZE == 0);

static void count(const struct coffer_io *io, enum coffer_where where)
{
	if (io->todo == COFFER_RETURN_PAGES)
		coffer_stat_add(io->dev, written[where], io->iter.bi_size);
	else
		coffer_stat_add(io->dev, read[where], io->iter.bi_size);
}

/* Takes the next chunk; the bio leaves the list with its last one. */
static bool take_chunk(struct coffer_queue *queue, struct coffer_io *io,
		       unsigned int *from, unsigned int *bytes)
{
	lockdep_assert_held(&queue->lock);

	if (io->next_byte == io->iter.bi_size)
		return false;
	*from = io->next_byte;
	*bytes = min(1U << io->chunk_shift, io->iter.bi_size - io->next_byte);
	io->next_byte += *bytes;
	if (io->next_byte == io->iter.bi_size) {
		list_del(&io->queue_node);
		queue->nr_bios--;
	}
	return true;
}

static void publish(struct coffer_queue *queue, struct coffer_io *io,
		    unsigned int chunk, unsigned int publishers)
{
	lockdep_assert_held(&queue->lock);

	io->next_byte = 0;
	io->chunk_shift = ilog2(chunk);
	atomic_set(&io->chunks_left, DIV_ROUND_UP(io->iter.bi_size, chunk) + publishers);
	list_add_tail(&io->queue_node, &queue->bios);
	queue->nr_bios++;
}

static void wake_helpers(struct coffer_queue *queue, unsigned int nr)
{
	lockdep_assert_held(&queue->lock);

	while (nr-- && queue->nr_awake < NR_HELPERS) {
		unsigned int i = find_first_zero_bit(queue->awake, NR_HELPERS);

		__set_bit(i, queue->awake);
		queue->nr_awake++;
		queue_work(queue->workers, &queue->helpers[i].work);
	}
}

static void helper_fn(struct work_struct *work)
{
	struct helper *helper = container_of(work, struct helper, work);
	struct coffer_queue *queue = helper->queue;
	unsigned int from, bytes;
	struct coffer_io *io;

	for (;;) {
		spin_lock_bh(&queue->lock);
		io = list_first_entry_or_null(&queue->bios, struct coffer_io, queue_node);
		if (!io) {
			__clear_bit(helper - queue->helpers, queue->awake);
			queue->nr_awake--;
			spin_unlock_bh(&queue->lock);
			return;
		}
		take_chunk(queue, io, &from, &bytes);
		spin_unlock_bh(&queue->lock);

		coffer_io_convert(io, from, bytes);
		if (atomic_dec_and_test(&io->chunks_left))
			coffer_io_finish(io);
		cond_resched();
	}
}

/* A helper that is awake does not go before the list is empty: more than CPUs are no use. */
static void hand_over(struct coffer_io *io)
{
	struct coffer_queue *queue = io->dev->queue;

	count(io, COFFER_OFFLOADED);
	spin_lock_bh(&queue->lock);
	publish(queue, io, ALONE_BYTES, 0);
	wake_helpers(queue, queue->nr_awake < num_online_cpus());
	spin_unlock_bh(&queue->lock);
}

/* Helpers worth waking for a large bio, that no other large bio keeps busy. */
static unsigned int helpers_to_wake(const struct coffer_io *io)
{
	const struct coffer_queue *queue = io->dev->queue;
	unsigned int cpus = num_online_cpus();
	unsigned int taken = 1 + atomic_read(&queue->busy) + READ_ONCE(queue->nr_awake);

	if (io->dev->params.fanout)
		return min(io->dev->params.fanout - 1, NR_HELPERS);
	return min(cpus > taken ? cpus - taken : 0, io->iter.bi_size / io->dev->helper_bytes);
}

/* Only writes come from a context that is known to allow it. */
static void let_others_run(const struct coffer_io *io)
{
	if (io->todo == COFFER_RETURN_PAGES && !io->nowait)
		cond_resched();
}

static enum coffer_outcome fan_out(struct coffer_io *io, unsigned int wake)
{
	struct coffer_queue *queue = io->dev->queue;
	unsigned int from, bytes, done = 0;
	bool took;

	count(io, COFFER_FANNED_OUT);
	atomic_inc(&queue->busy);
	spin_lock_bh(&queue->lock);
	publish(queue, io, COFFER_CHUNK, 1);
	took = take_chunk(queue, io, &from, &bytes);
	wake_helpers(queue, wake);
	spin_unlock_bh(&queue->lock);
	while (took) {
		coffer_io_convert(io, from, bytes);
		atomic_dec(&io->chunks_left);
		let_others_run(io);
		done += bytes;
		spin_lock_bh(&queue->lock);
		if (in_serving_softirq() && done >= SOFTIRQ_BYTES) {
			took = false;
			/* the rest is the helpers'; make sure that there is one */
			wake_helpers(queue, io->next_byte < io->iter.bi_size);
		} else {
			took = take_chunk(queue, io, &from, &bytes);
		}
		spin_unlock_bh(&queue->lock);
	}
	atomic_dec(&queue->busy);
	return atomic_dec_and_test(&io->chunks_left) ? COFFER_CONVERTED : COFFER_QUEUED;
}

/*
 * Whether the helpers convert a bio for which no CPU is free, and not the caller. A softirq
 * gives it away, for it would keep the disk's next interrupts waiting; a task does so while
 * there is nothing else for the helpers to do.
 */
static bool helpers_take(const struct coffer_io *io)
{
	unsigned int cpus = num_online_cpus();

	if (in_serving_softirq() && io->iter.bi_size > SOFTIRQ_BYTES)
		return true;
	return !io->dev->params.fanout && cpus > 1 &&
	       (in_serving_softirq() || READ_ONCE(io->dev->queue->nr_bios) < cpus);
}

static enum coffer_outcome run_large(struct coffer_io *io, enum coffer_where where)
{
	struct coffer_queue *queue = io->dev->queue;
	unsigned int total = io->iter.bi_size, from, wake;
	bool handover = test_bit(COFFER_HANDOVER, &io->dev->params.flags);

	wake = handover ? 0 : helpers_to_wake(io);
	if (wake)
		return fan_out(io, wake);
	if (handover || helpers_take(io)) {
		hand_over(io);
		return COFFER_QUEUED;
	}

	count(io, where);
	atomic_inc(&queue->busy);
	for (from = 0; from < total; from += ALONE_BYTES) {
		coffer_io_convert(io, from, min(total - from, ALONE_BYTES));
		let_others_run(io);
	}
	atomic_dec(&queue->busy);
	return COFFER_CONVERTED;
}

/* In softirq or task context with the cipher usable. */
static enum coffer_outcome run(struct coffer_io *io, enum coffer_where where)
{
	if (unlikely(io->iter.bi_size > io->dev->inline_bytes))
		return run_large(io, where);
	count(io, where);
	coffer_io_convert(io, 0, io->iter.bi_size);
	return COFFER_CONVERTED;
}

static COFFER_SOFTIRQ_FN(softirq_fn)
{
	struct softirq_list *list = container_of(coffer_softirq_of(arg), struct softirq_list,
						 softirq);
	unsigned int bytes = 0;
	struct coffer_io *io;

	if (!list->todo)
		list->todo = llist_reverse_order(llist_del_all(&list->bios));
	while (list->todo) {
		if (bytes >= SOFTIRQ_BYTES)
			break;
		io = llist_entry(list->todo, struct coffer_io, softirq_node);
		list->todo = list->todo->next;
		bytes += io->iter.bi_size;
		if (!coffer_cipher_usable())
			hand_over(io);
		else if (run(io, COFFER_OFFLOADED) == COFFER_CONVERTED)
			coffer_io_finish(io);
	}
	if (list->todo || !llist_empty(&list->bios))
		coffer_softirq_queue(&list->softirq);
}

static void to_softirq(struct coffer_io *io)
{
	struct softirq_list *list = this_cpu_ptr(&softirq_lists);

	if (llist_add(&io->softirq_node, &list->bios))
		coffer_softirq_queue(&list->softirq);
}

/**
 * coffer_queue_convert() - convert a bio's data, here or elsewhere
 * @io: ready for conversion, error 0
 *
 * Context: any. Waits for nothing; a write may give up the CPU, unless io->nowait.
 * Return: COFFER_CONVERTED if it is done; COFFER_QUEUED if coffer_io_finish() has been
 * or will be called by somebody else.
 */
enum coffer_outcome coffer_queue_convert(struct coffer_io *io)
{
	if (likely(coffer_cipher_usable()))
		return run(io, COFFER_INLINE);
	if (in_hardirq() || irqs_disabled())
		to_softirq(io);
	else
		hand_over(io);
	return COFFER_QUEUED;
}

/**
 * coffer_queue_create() - make a mapping's helpers
 * @dev: the mapping, for its name
 *
 * Context: may sleep.
 * Return: the queue, or NULL if there is no memory.
 */
struct coffer_queue *coffer_queue_create(struct coffer_device *dev)
{
	struct coffer_queue *queue;
	unsigned int i;

	queue = kzalloc(sizeof(*queue), GFP_KERNEL);
	if (!queue)
		return NULL;
	queue->workers = alloc_workqueue("coffer/%s", WQ_MEM_RECLAIM | WQ_UNBOUND, 0,
					 dev->lower->name);
	if (!queue->workers) {
		kfree(queue);
		return NULL;
	}
	spin_lock_init(&queue->lock);
	INIT_LIST_HEAD(&queue->bios);
	for (i = 0; i < NR_HELPERS; i++) {
		queue->helpers[i].queue = queue;
		INIT_WORK(&queue->helpers[i].work, helper_fn);
	}
	return queue;
}

/**
 * coffer_queue_destroy() - wait for the helpers and free them
 * @queue: without bios, or NULL
 *
 * Context: may sleep.
 */
void coffer_queue_destroy(struct coffer_queue *queue)
{
	if (!queue)
		return;
	destroy_workqueue(queue->workers);
	kfree(queue);
}

/**
 * coffer_queue_start() - set up what all mappings share
 */
void coffer_queue_start(void)
{
	unsigned int cpu;

	for_each_possible_cpu(cpu) {
		struct softirq_list *list = per_cpu_ptr(&softirq_lists, cpu);

		init_llist_head(&list->bios);
		coffer_softirq_init(&list->softirq, softirq_fn);
	}
}

/**
 * coffer_queue_stop() - wait until the last softirq is out of our code
 *
 * Context: may sleep; no mapping may exist.
 */
void coffer_queue_stop(void)
{
	unsigned int cpu;

	for_each_possible_cpu(cpu)
		coffer_softirq_flush(&per_cpu_ptr(&softirq_lists, cpu)->softirq);
}
