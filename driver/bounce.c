// SPDX-License-Identifier: GPL-2.0-only
/*
 * Bounce pages: where writes are encrypted to.
 *
 * Three layers, each the next one's fallback:
 *   1. a cache for each CPU, a stack of pages. A bio takes all its pages, and gives
 *      them back, in one go, with preemption off. Interrupts stay on: one that comes
 *      upon its CPU's cache in use takes the next layer.
 *   2. the depot, one stack for all CPUs, for machines where writes complete on
 *      another CPU than they were submitted on: it refills a cache in one step. Then
 *      the page allocator, without waiting and only up to a share of memory.
 *   3. each mapping's reserve, for one bio of the largest size.
 *
 * Invariants:
 *  - Forward progress: only one bio of a mapping at a time takes from the reserve
 *    (bounce->lock), it holds no other page while it waits, and every other bio with
 *    pages has all that it needs, so it completes and gives them back, to the reserve
 *    first. Two bios that each held half could wait for each other for ever.
 *  - All pages, in use, cached or in reserve, are counted in owned_pages; page
 *    allocator calls are the only places that touch the count, so a cache hit costs
 *    nothing for it.
 *  - Pages hold ciphertext only, so nothing is wiped; cached ones stay allocated, which
 *    saves the clearing that many distributions do on each allocation.
 *  - Giving back may run in hard interrupt context.
 */
#include <linux/cpumask.h>
#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/percpu.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#include "bounce.h"
#include "compat.h"

/* the vector of the largest bio fits a page exactly, or nearly */
#define MAX_PAGES	BIO_MAX_VECS
static_assert(MAX_PAGES * sizeof(struct bio_vec) <= PAGE_SIZE);
#define RESERVE_PAGES	(MAX_PAGES + 1)

/* Bounds; a machine with little memory gets less, see coffer_bounce_start(). */
#define MIN_CPU_CACHE_PAGES	40	/* one write of 128 KiB with its vector, and some */
#define MAX_CPU_CACHE_PAGES	512
#define MAX_DEPOT_PAGES		4096
#define CACHE_SHARE		1024	/* one of so many pages of memory may lie in caches */
#define OWNED_PERCENT		2	/* of memory, reserves aside; as in dm-crypt */

struct page_stack {
	unsigned int nr, max;
	struct page **pages;
};

struct cpu_cache {
	bool in_use;			/* by the CPU itself, below an interrupt */
	struct page_stack stack;	/* in_use */
};

static DEFINE_PER_CPU(struct cpu_cache, cpu_caches);

static struct page_stack depot;		/* depot_lock */
static DEFINE_RAW_SPINLOCK(depot_lock);	/* interrupts off, on RT too */

static atomic_long_t owned_pages;
static atomic_long_t max_owned_pages;

static struct page *alloc_bounce_page(gfp_t gfp, bool capped)
{
	struct page *page;

	if (capped && atomic_long_read(&owned_pages) >= atomic_long_read(&max_owned_pages))
		return NULL;
	page = alloc_page(gfp);
	if (page)
		atomic_long_inc(&owned_pages);
	return page;
}

static void free_bounce_page(struct page *page)
{
	__free_page(page);
	atomic_long_dec(&owned_pages);
}

static void *reserve_alloc(gfp_t gfp, void *unused)
{
	/* mempool sets NORETRY when it wants a page for a caller, not to fill itself */
	return alloc_bounce_page(gfp, gfp & __GFP_NORETRY);
}

static void reserve_free(void *page, void *unused)
{
	free_bounce_page(page);
}

static bool reserve_is_full(const struct coffer_bounce *bounce)
{
	return READ_ONCE(bounce->reserve.curr_nr) >= bounce->reserve.min_nr;
}

/* Is the vector of @nr pages in a page of its own? */
static bool needs_vec_page(unsigned int nr)
{
	return nr > COFFER_INLINE_VECS;
}

static void set_vec(struct bio_vec *vec, struct page *page)
{
	vec->bv_page = page;
	vec->bv_len = PAGE_SIZE;
	vec->bv_offset = 0;
}

/* NOMEMALLOC: not even for swap the pages that the kernel keeps for emergencies. */
static struct page *get_page_nowait(void)
{
	return alloc_bounce_page(GFP_NOWAIT | __GFP_NOWARN | __GFP_NORETRY | __GFP_NOMEMALLOC,
				 true);
}

/*
 * This CPU's cache, for a moment, or NULL. Whoever comes in between is an interrupt and
 * has gone again, so plain accesses in program order are enough.
 */
static struct cpu_cache *claim_cache(void)
{
	struct cpu_cache *cache;

	preempt_disable();
	cache = this_cpu_ptr(&cpu_caches);
	if (unlikely(READ_ONCE(cache->in_use))) {
		preempt_enable();
		return NULL;
	}
	WRITE_ONCE(cache->in_use, true);
	barrier();
	return cache;
}

static void release_cache(struct cpu_cache *cache)
{
	barrier();
	WRITE_ONCE(cache->in_use, false);
	preempt_enable();
}

/* Fill a cache that has too little for a bio. */
static void refill(struct page_stack *stack)
{
	unsigned long flags;

	if (!READ_ONCE(depot.nr))
		return;
	raw_spin_lock_irqsave(&depot_lock, flags);
	while (depot.nr && stack->nr < stack->max)
		stack->pages[stack->nr++] = depot.pages[--depot.nr];
	raw_spin_unlock_irqrestore(&depot_lock, flags);
}

/* Take up to @nr pages, and one for the vector where there is none yet. */
static unsigned int pop(struct page_stack *stack, struct bio_vec **vecs, unsigned int nr)
{
	unsigned int got = 0;

	if (unlikely(stack->nr < nr + !*vecs))
		refill(stack);
	if (!*vecs && stack->nr)
		*vecs = page_address(stack->pages[--stack->nr]);
	if (likely(*vecs)) {
		nr = min(nr, stack->nr);
		while (got < nr)
			set_vec(&(*vecs)[got++], stack->pages[--stack->nr]);
	}
	return got;
}

/* From the page allocator what @vecs lacks, or all from the reserve. */
static struct bio_vec *get_slowly(struct coffer_bounce *bounce, struct bio_vec *own,
				  struct bio_vec *vecs, unsigned int got, unsigned int nr,
				  bool may_sleep)
{
	struct page *page;

	if (!vecs) {
		page = get_page_nowait();
		if (!page)
			goto from_reserve;
		vecs = page_address(page);
	}
	for (; got < nr; got++) {
		page = get_page_nowait();
		if (!page)
			goto give_back;
		set_vec(&vecs[got], page);
	}
	return vecs;

give_back:
	while (got)
		mempool_free(vecs[--got].bv_page, &bounce->reserve);
	if (vecs != own)
		mempool_free(virt_to_page(vecs), &bounce->reserve);
from_reserve:
	if (!may_sleep)
		return NULL;
	/* mempool_alloc() does not fail where it may sleep */
	mutex_lock(&bounce->lock);
	vecs = own;
	if (needs_vec_page(nr))
		vecs = page_address(mempool_alloc(&bounce->reserve, GFP_NOIO));
	for (got = 0; got < nr; got++)
		set_vec(&vecs[got], mempool_alloc(&bounce->reserve, GFP_NOIO));
	mutex_unlock(&bounce->lock);
	return vecs;
}

/**
 * coffer_bounce_get() - take bounce pages for one bio
 * @bounce: the mapping's reserve
 * @own: room for COFFER_INLINE_VECS entries, beside the bio
 * @nr: pages, 1 to BIO_MAX_VECS
 * @may_sleep: wait rather than fail
 * @hit: set to whether the caches had them all
 *
 * Context: task context if @may_sleep, else any.
 * Return: a vector of @nr whole pages, in @own or in a page of its own; NULL if not
 * @may_sleep and memory is short.
 */
struct bio_vec *coffer_bounce_get(struct coffer_bounce *bounce, struct bio_vec *own,
				  unsigned int nr, bool may_sleep, bool *hit)
{
	struct bio_vec *vecs = needs_vec_page(nr) ? NULL : own;
	struct cpu_cache *cache = claim_cache();
	unsigned int got = 0;

	if (likely(cache)) {
		got = pop(&cache->stack, &vecs, nr);
		release_cache(cache);
	}
	*hit = got == nr;
	if (likely(*hit))
		return vecs;
	return get_slowly(bounce, own, vecs, got, nr, may_sleep);
}

static void push(struct page_stack *stack, struct bio_vec *vecs, unsigned int *nr,
		 struct page **vec_page)
{
	/* the vector's page last: until then it holds what is left to push */
	while (*nr && stack->nr < stack->max)
		stack->pages[stack->nr++] = vecs[--*nr].bv_page;
	if (!*nr && *vec_page && stack->nr < stack->max) {
		stack->pages[stack->nr++] = *vec_page;
		*vec_page = NULL;
	}
}

/**
 * coffer_bounce_put() - give back what coffer_bounce_get() took
 * @bounce: the same reserve
 * @own: the same room
 * @vecs: what was returned
 * @nr: pages
 *
 * Context: any.
 */
void coffer_bounce_put(struct coffer_bounce *bounce, struct bio_vec *own,
		       struct bio_vec *vecs, unsigned int nr)
{
	struct page *vec_page = vecs == own ? NULL : virt_to_page(vecs);
	struct cpu_cache *cache;
	unsigned long flags;

	/* pairs with the barrier in mempool_alloc(), as in mempool_free() */
	smp_rmb();
	while (unlikely(!reserve_is_full(bounce)) && nr)
		mempool_free(vecs[--nr].bv_page, &bounce->reserve);
	if (unlikely(!nr && vec_page && !reserve_is_full(bounce))) {
		mempool_free(vec_page, &bounce->reserve);
		return;
	}

	cache = claim_cache();
	if (likely(cache)) {
		push(&cache->stack, vecs, &nr, &vec_page);
		release_cache(cache);
	}
	if (likely(!nr && !vec_page))
		return;

	raw_spin_lock_irqsave(&depot_lock, flags);
	push(&depot, vecs, &nr, &vec_page);
	raw_spin_unlock_irqrestore(&depot_lock, flags);

	while (nr)
		free_bounce_page(vecs[--nr].bv_page);
	if (vec_page)
		free_bounce_page(vec_page);
}

/**
 * coffer_bounce_init() - fill a mapping's reserve
 * @bounce: zeroed
 *
 * Context: may sleep.
 * Return: 0 or -ENOMEM; coffer_bounce_exit() is right after either.
 */
int coffer_bounce_init(struct coffer_bounce *bounce)
{
	mutex_init(&bounce->lock);
	atomic_long_add(RESERVE_PAGES, &max_owned_pages);
	bounce->counted = true;
	return mempool_init(&bounce->reserve, RESERVE_PAGES, reserve_alloc, reserve_free, NULL);
}

/**
 * coffer_bounce_exit() - free a mapping's reserve
 * @bounce: initialised or zeroed; no pages may be out
 */
void coffer_bounce_exit(struct coffer_bounce *bounce)
{
	mempool_exit(&bounce->reserve);
	if (bounce->counted)
		atomic_long_sub(RESERVE_PAGES, &max_owned_pages);
}

static void stack_exit(struct page_stack *stack)
{
	while (stack->nr)
		free_bounce_page(stack->pages[--stack->nr]);
	kvfree(stack->pages);
	stack->pages = NULL;
}

static int stack_init(struct page_stack *stack, unsigned long max)
{
	stack->pages = kvmalloc_array(max, sizeof(*stack->pages), GFP_KERNEL);
	if (!stack->pages)
		return -ENOMEM;
	stack->max = max;
	return 0;
}

/**
 * coffer_bounce_start() - set up the caches that all mappings share
 *
 * Context: may sleep.
 * Return: 0 or -ENOMEM.
 */
int coffer_bounce_start(void)
{
	unsigned long share = totalram_pages() / CACHE_SHARE;
	unsigned int cpu;
	int ret;

	atomic_long_set(&max_owned_pages, totalram_pages() / 100 * OWNED_PERCENT);

	/* half of the share for the depot, half for the CPUs that there are now */
	ret = stack_init(&depot, clamp(share / 2, 1UL, (unsigned long)MAX_DEPOT_PAGES));
	if (ret)
		return ret;
	for_each_possible_cpu(cpu) {
		ret = stack_init(&per_cpu_ptr(&cpu_caches, cpu)->stack,
				 clamp(share / 2 / num_online_cpus(),
				       (unsigned long)MIN_CPU_CACHE_PAGES,
				       (unsigned long)MAX_CPU_CACHE_PAGES));
		if (ret) {
			coffer_bounce_stop();
			return ret;
		}
	}
	return 0;
}

/**
 * coffer_bounce_stop() - free the caches
 *
 * Context: may sleep; no mapping may exist.
 */
void coffer_bounce_stop(void)
{
	unsigned int cpu;

	for_each_possible_cpu(cpu)
		stack_exit(&per_cpu_ptr(&cpu_caches, cpu)->stack);
	stack_exit(&depot);
	WARN_ON_ONCE(atomic_long_read(&owned_pages));
}
