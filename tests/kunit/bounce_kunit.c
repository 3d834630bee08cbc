// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Bounce pages: every page is in one place at a time, all of them are accounted for,
 * and who may wait gets its pages however little memory there is.
 *
 * The accounting is checked in each test's end: the pages owned are those in the
 * stacks and in the reserves, and none when all is torn down.
 */
#include <kunit/run-in-irq-context.h>
#include <kunit/test.h>
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/prandom.h>
#include <linux/xarray.h>

#include "../../driver/bounce.c"

#include "crew.h"

#define MAPPINGS	2

struct fixture {
	struct coffer_bounce mapping[MAPPINGS];
	struct complaint complaint;
	struct xarray out;		/* page frame -> who has it */
	atomic_t served, refused;
};

/* One bio's pages. */
struct load {
	struct bio_vec own[COFFER_INLINE_VECS];
	struct bio_vec *vecs;
	unsigned int nr;
	bool hit;
};

static void claim(struct fixture *f, struct page *page, unsigned long who)
{
	int ret = xa_insert(&f->out, page_to_pfn(page), xa_mk_value(who), GFP_KERNEL);

	if (ret == -EBUSY)
		complain(&f->complaint, "a page is in two vectors", page_to_pfn(page));
	else if (ret)
		complain(&f->complaint, "no memory for the test", -ret);
}

static void disclaim(struct fixture *f, struct page *page, unsigned long who)
{
	if (xa_erase(&f->out, page_to_pfn(page)) != xa_mk_value(who))
		complain(&f->complaint, "a page changed hands", page_to_pfn(page));
}

/* Is the vector what was asked for? Writes all over it, so that KASAN has its say. */
static void check_load(struct fixture *f, struct load *load, u8 fill)
{
	unsigned int i;

	if ((load->vecs == load->own) != (load->nr <= COFFER_INLINE_VECS))
		complain(&f->complaint, "vector in the wrong place", load->nr);
	for (i = 0; i < load->nr; i++) {
		struct bio_vec *vec = &load->vecs[i];

		if (vec->bv_len != PAGE_SIZE || vec->bv_offset)
			complain(&f->complaint, "not a whole page", i);
		if (load->vecs != load->own && vec->bv_page == virt_to_page(load->vecs))
			complain(&f->complaint, "the vector's own page is in it", i);
		memset(page_address(vec->bv_page), fill, PAGE_SIZE);
	}
}

static bool get(struct fixture *f, unsigned int mapping, struct load *load, unsigned int nr,
		bool may_sleep)
{
	load->nr = nr;
	load->vecs = coffer_bounce_get(&f->mapping[mapping], load->own, nr, may_sleep, &load->hit);
	return load->vecs;
}

static void put(struct fixture *f, unsigned int mapping, struct load *load)
{
	coffer_bounce_put(&f->mapping[mapping], load->own, load->vecs, load->nr);
}

/* get() for tests that track every page. */
static bool get_claimed(struct fixture *f, unsigned int mapping, struct load *load,
			unsigned int nr, bool may_sleep, unsigned long who)
{
	unsigned int i;

	if (!get(f, mapping, load, nr, may_sleep))
		return false;
	for (i = 0; i < nr; i++)
		claim(f, load->vecs[i].bv_page, who);
	if (load->vecs != load->own)
		claim(f, virt_to_page(load->vecs), who);
	check_load(f, load, who);
	return true;
}

static void put_claimed(struct fixture *f, unsigned int mapping, struct load *load,
			unsigned long who)
{
	unsigned int i;

	for (i = 0; i < load->nr; i++) {
		if (memchr_inv(page_address(load->vecs[i].bv_page), (u8)who, PAGE_SIZE))
			complain(&f->complaint, "somebody else wrote to a page", i);
		disclaim(f, load->vecs[i].bv_page, who);
	}
	if (load->vecs != load->own)
		disclaim(f, virt_to_page(load->vecs), who);
	put(f, mapping, load);
}

static unsigned long pages_at_rest(struct fixture *f)
{
	unsigned long pages = depot.nr;
	unsigned int i, cpu;

	for_each_possible_cpu(cpu)
		pages += per_cpu_ptr(&cpu_caches, cpu)->stack.nr;
	for (i = 0; i < MAPPINGS; i++)
		pages += f->mapping[i].reserve.curr_nr;
	return pages;
}

/* Nobody has pages now: all that are owned must be found, and the reserves be full. */
static void expect_at_rest(struct kunit *test)
{
	struct fixture *f = test->priv;
	unsigned int i, cpu;

	EXPECT_NO_COMPLAINT(test, &f->complaint);
	KUNIT_EXPECT_TRUE(test, xa_empty(&f->out));
	KUNIT_EXPECT_EQ(test, atomic_long_read(&owned_pages), pages_at_rest(f));
	KUNIT_EXPECT_LE(test, depot.nr, depot.max);
	for_each_possible_cpu(cpu)
		KUNIT_EXPECT_LE(test, per_cpu_ptr(&cpu_caches, cpu)->stack.nr,
				per_cpu_ptr(&cpu_caches, cpu)->stack.max);
	for (i = 0; i < MAPPINGS; i++) {
		KUNIT_EXPECT_EQ(test, f->mapping[i].reserve.curr_nr, RESERVE_PAGES);
		KUNIT_EXPECT_FALSE(test, mutex_is_locked(&f->mapping[i].lock));
	}
}

static void resize_stack(struct kunit *test, struct page_stack *stack, unsigned int max)
{
	stack_exit(stack);
	KUNIT_ASSERT_EQ(test, stack_init(stack, max), 0);
}

/* Empty caches of other sizes. */
static void resize(struct kunit *test, unsigned int cpu_max, unsigned int depot_max)
{
	unsigned int cpu;

	resize_stack(test, &depot, depot_max);
	for_each_possible_cpu(cpu)
		resize_stack(test, &per_cpu_ptr(&cpu_caches, cpu)->stack, cpu_max);
}

/* From now on the page allocator has nothing for us. */
static void no_more_pages(void)
{
	atomic_long_set(&max_owned_pages, 0);
}

static const unsigned int sizes[] = { 1, 2, 3, 4, 31, 32, 33, 254, 255, 256 };

/* ---- one at a time ------------------------------------------------------------------- */

static void vectors(struct kunit *test)
{
	struct fixture *f = test->priv;
	struct load load;
	unsigned int i;

	BUILD_BUG_ON(BIO_MAX_VECS != 256);
	resize(test, 512, 512);
	migrate_disable();
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		unsigned int need = sizes[i] + (sizes[i] > COFFER_INLINE_VECS);
		unsigned int cached = this_cpu_ptr(&cpu_caches)->stack.nr;

		KUNIT_EXPECT_TRUE(test, get_claimed(f, 0, &load, sizes[i], true, 1 + i));
		KUNIT_EXPECT_EQ_MSG(test, load.hit, cached >= need, "%u pages", sizes[i]);
		put_claimed(f, 0, &load, 1 + i);
		/* the same again must come from the cache */
		KUNIT_EXPECT_TRUE(test, get_claimed(f, 0, &load, sizes[i], false, 101 + i));
		KUNIT_EXPECT_TRUE_MSG(test, load.hit, "%u pages", sizes[i]);
		put_claimed(f, 0, &load, 101 + i);
		KUNIT_EXPECT_EQ(test, this_cpu_ptr(&cpu_caches)->stack.nr, max(cached, need));
	}
	migrate_enable();
	expect_at_rest(test);
}

/* An interrupt that comes upon its CPU's cache in use leaves it alone, both ways. */
static void cache_in_use(struct kunit *test)
{
	struct fixture *f = test->priv;
	unsigned int i, cached, kept;
	struct cpu_cache *cache;
	struct load load;

	resize(test, 512, 512);
	migrate_disable();
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		unsigned int need = sizes[i] + (sizes[i] > COFFER_INLINE_VECS);

		/* something to be tempted by */
		KUNIT_EXPECT_TRUE(test, get_claimed(f, 0, &load, sizes[i], true, 1 + i));
		put_claimed(f, 0, &load, 1 + i);

		cache = claim_cache();
		KUNIT_ASSERT_NOT_NULL(test, cache);
		KUNIT_EXPECT_NULL(test, claim_cache());
		cached = cache->stack.nr;
		kept = depot.nr;
		/* not get_claimed(), which may sleep: preemption is off */
		if (!get(f, 0, &load, sizes[i], false)) {
			release_cache(cache);
			KUNIT_FAIL(test, "%u pages refused", sizes[i]);
			continue;
		}
		check_load(f, &load, i);
		put(f, 0, &load);
		KUNIT_EXPECT_FALSE(test, load.hit);
		KUNIT_EXPECT_EQ(test, cache->stack.nr, cached);
		KUNIT_EXPECT_EQ(test, depot.nr, min(kept + need, depot.max));
		release_cache(cache);
	}
	migrate_enable();
	expect_at_rest(test);
}

/* More comes back than the caches take: the rest goes to the page allocator. */
static void overflow(struct kunit *test)
{
	struct load *loads = kunit_kcalloc(test, 8, sizeof(*loads), GFP_KERNEL);
	struct fixture *f = test->priv;
	unsigned int round, i;

	KUNIT_ASSERT_NOT_NULL(test, loads);
	resize(test, 10, 300);
	migrate_disable();
	for (round = 0; round < 3; round++) {
		for (i = 0; i < 8; i++)
			KUNIT_EXPECT_TRUE(test, get_claimed(f, 0, &loads[i],
							    sizes[(round + i) % ARRAY_SIZE(sizes)],
							    true, i));
		for (i = 0; i < 8; i++)
			put_claimed(f, 0, &loads[i], i);
	}
	/* three vectors of the largest size for caches of 310 */
	for (i = 0; i < 3; i++)
		KUNIT_EXPECT_TRUE(test, get_claimed(f, 0, &loads[i], MAX_PAGES, true, i));
	for (i = 0; i < 3; i++)
		put_claimed(f, 0, &loads[i], i);
	KUNIT_EXPECT_EQ(test, this_cpu_ptr(&cpu_caches)->stack.nr, 10);
	KUNIT_EXPECT_EQ(test, depot.nr, 300);
	KUNIT_EXPECT_EQ(test, atomic_long_read(&owned_pages), 310 + MAPPINGS * RESERVE_PAGES);
	migrate_enable();
	expect_at_rest(test);
}

/* Every fill of the caches around the size of a vector: off by one shows here. */
static void boundaries(struct kunit *test)
{
	unsigned int cpu_max, depot_max, nr;
	struct fixture *f = test->priv;
	struct load one, load;

	for (cpu_max = 1; cpu_max <= 6; cpu_max++) {
		for (depot_max = 1; depot_max <= 4; depot_max++) {
			resize(test, cpu_max, depot_max);
			for (nr = 1; nr <= 8; nr++) {
				KUNIT_EXPECT_TRUE(test, get_claimed(f, 0, &one, 1, true, 1));
				KUNIT_EXPECT_TRUE(test, get_claimed(f, 0, &load, nr, true, 2));
				put_claimed(f, 0, &load, 2);
				put_claimed(f, 0, &one, 1);
				expect_at_rest(test);
			}
		}
	}
}

/* ---- on two CPUs ----------------------------------------------------------------------- */

struct handover {
	struct fixture *f;
	struct load load;
	unsigned int cached[2];
	struct completion taken, given;
};

static void take_here_give_there(void *ctx, unsigned int number)
{
	struct handover *h = ctx;

	if (number) {
		wait_for_completion(&h->taken);
		put_claimed(h->f, 0, &h->load, 7);
		h->cached[1] = this_cpu_ptr(&cpu_caches)->stack.nr;
		complete(&h->given);
	} else {
		if (!get_claimed(h->f, 0, &h->load, 100, true, 7))
			complain(&h->f->complaint, "no pages", 100);
		h->cached[0] = this_cpu_ptr(&cpu_caches)->stack.nr;
		complete(&h->taken);
		wait_for_completion(&h->given);
		/* what overflowed there is in the depot, and refills our cache */
		no_more_pages();
		if (!get_claimed(h->f, 0, &h->load, 30, false, 8))
			complain(&h->f->complaint, "nothing came back through the depot", depot.nr);
		else
			put_claimed(h->f, 0, &h->load, 8);
		if (!h->load.hit)
			complain(&h->f->complaint, "the depot is no hit", depot.nr);
		/* more than a cache holds, and no memory: what was there already goes back */
		if (get(h->f, 0, &h->load, 100, false))
			complain(&h->f->complaint, "pages from nowhere", depot.nr);
	}
}

static void put_elsewhere(struct kunit *test)
{
	struct handover *h = kunit_kzalloc(test, sizeof(*h), GFP_KERNEL);
	struct fixture *f = test->priv;

	if (num_online_cpus() < 2)
		kunit_skip(test, "one CPU");
	KUNIT_ASSERT_NOT_NULL(test, h);
	resize(test, 40, 100);
	h->f = f;
	init_completion(&h->taken);
	init_completion(&h->given);
	KUNIT_ASSERT_TRUE(test, crew_run(test, 2, take_here_give_there, h));
	KUNIT_EXPECT_EQ(test, h->cached[0], 0);
	KUNIT_EXPECT_EQ(test, h->cached[1], 40);
	expect_at_rest(test);
}

/* ---- little memory ---------------------------------------------------------------------- */

static void capped(struct kunit *test)
{
	struct fixture *f = test->priv;
	struct load load, other;
	unsigned int i;

	resize(test, 2, 2);
	no_more_pages();
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		unsigned int need = sizes[i] + (sizes[i] > COFFER_INLINE_VECS);

		/* who may not wait gets nothing, and nothing is lost over it */
		KUNIT_EXPECT_FALSE(test, get(f, 0, &load, sizes[i], false));
		expect_at_rest(test);
		/* who may has the reserve, and another mapping has its own */
		KUNIT_EXPECT_TRUE(test, get_claimed(f, 0, &load, sizes[i], true, 1));
		KUNIT_EXPECT_FALSE(test, load.hit);
		KUNIT_EXPECT_EQ(test, f->mapping[0].reserve.curr_nr, RESERVE_PAGES - need);
		KUNIT_EXPECT_TRUE(test, get_claimed(f, 1, &other, MAX_PAGES, true, 2));
		KUNIT_EXPECT_EQ(test, f->mapping[1].reserve.curr_nr, 0);
		put_claimed(f, 0, &load, 1);
		KUNIT_EXPECT_EQ(test, f->mapping[0].reserve.curr_nr, RESERVE_PAGES);
		put_claimed(f, 1, &other, 2);
		expect_at_rest(test);
	}
	KUNIT_EXPECT_EQ(test, atomic_long_read(&owned_pages), MAPPINGS * RESERVE_PAGES);
}

/* Memory for a part of the vector: that part is given back, or joined by the reserve's. */
static void partly_capped(struct kunit *test)
{
	struct fixture *f = test->priv;
	unsigned int extra, i;
	struct load load;

	for (extra = 1; extra < 10; extra++) {
		for (i = 0; i < ARRAY_SIZE(sizes); i++) {
			unsigned int need = sizes[i] + (sizes[i] > COFFER_INLINE_VECS);
			bool got;

			resize(test, 1, 1);
			atomic_long_set(&max_owned_pages, MAPPINGS * RESERVE_PAGES + extra);
			got = get_claimed(f, 0, &load, sizes[i], false, 1);
			KUNIT_EXPECT_EQ_MSG(test, got, need <= extra, "%u pages, %u left",
					    sizes[i], extra);
			if (got)
				put_claimed(f, 0, &load, 1);
			expect_at_rest(test);
			KUNIT_EXPECT_TRUE(test, get_claimed(f, 0, &load, sizes[i], true, 2));
			put_claimed(f, 0, &load, 2);
			expect_at_rest(test);
		}
	}
}

#define ROUNDS	40

static void churn(void *ctx, unsigned int number)
{
	unsigned int round, mapping = number % MAPPINGS;
	struct fixture *f = ctx;
	struct rnd_state rnd;
	struct load load;

	prandom_seed_state(&rnd, number + 1);
	for (round = 0; round < ROUNDS; round++) {
		u32 dice = prandom_u32_state(&rnd);
		unsigned int nr = dice & 1 ? 1 + (dice >> 1) % MAX_PAGES :
					     sizes[(dice >> 1) % ARRAY_SIZE(sizes)];
		bool may_sleep = dice >> 16 & 7;

		if (!get_claimed(f, mapping, &load, nr, may_sleep, number + 1)) {
			if (may_sleep)
				complain(&f->complaint, "no pages though waiting", nr);
			atomic_inc(&f->refused);
			continue;
		}
		atomic_inc(&f->served);
		if (dice >> 20 & 1)
			usleep_range(10, 500);
		else
			cond_resched();
		put_claimed(f, mapping, &load, number + 1);
	}
}

/*
 * Eight threads, two mappings, and no page but the reserves': whoever waits must be
 * served, also where all want the largest size at once.
 */
static void forward_progress(struct kunit *test)
{
	struct fixture *f = test->priv;

	resize(test, 1, 1);
	no_more_pages();
	KUNIT_ASSERT_TRUE(test, crew_run(test, 8, churn, f));
	KUNIT_EXPECT_EQ(test, atomic_read(&f->served) + atomic_read(&f->refused), 8 * ROUNDS);
	KUNIT_EXPECT_GT(test, atomic_read(&f->refused), 0);
	expect_at_rest(test);
	KUNIT_EXPECT_EQ(test, atomic_long_read(&owned_pages), MAPPINGS * RESERVE_PAGES);
}

/* All layers in use at once. */
static void contention(struct kunit *test)
{
	struct fixture *f = test->priv;

	resize(test, 60, 150);
	atomic_long_set(&max_owned_pages, MAPPINGS * RESERVE_PAGES + 500);
	KUNIT_ASSERT_TRUE(test, crew_run(test, 8, churn, f));
	KUNIT_EXPECT_GT(test, atomic_read(&f->served), 8 * ROUNDS / 2);
	expect_at_rest(test);
}

/* ---- interrupts ---------------------------------------------------------------------------- */

/*
 * One vector per call, in a task, a softirq and a hard interrupt that interrupt each
 * other. Each writes its own number all over its pages.
 */
static bool from_any_context(void *ctx)
{
	u8 me = in_hardirq() ? 3 : in_serving_softirq() ? 2 : 1;
	struct fixture *f = ctx;
	struct load load;
	unsigned int i;

	if (!get(f, 0, &load, 1 + atomic_inc_return(&f->served) % 12, false)) {
		atomic_inc(&f->refused);
		return true;
	}
	check_load(f, &load, me);
	for (i = 0; i < load.nr; i++)
		if (memchr_inv(page_address(load.vecs[i].bv_page), me, PAGE_SIZE))
			complain(&f->complaint, "an interrupt had the same page", i);
	put(f, 0, &load);
	return !f->complaint.what;
}

static void contexts(struct kunit *test)
{
	struct fixture *f = test->priv;

	resize(test, 16, 8);
	atomic_long_set(&max_owned_pages, MAPPINGS * RESERVE_PAGES + 30);
	kunit_run_irq_test(test, from_any_context, 3000, f);
	KUNIT_EXPECT_LT(test, atomic_read(&f->refused), atomic_read(&f->served));
	expect_at_rest(test);
}

/* ---- the module's own start and stop -------------------------------------------------------- */

static void shares(struct kunit *test)
{
	unsigned long half = totalram_pages() / CACHE_SHARE / 2, limit, cpu_max;
	unsigned int cpu;

	KUNIT_EXPECT_GE(test, depot.max, 1);
	KUNIT_EXPECT_LE(test, depot.max, max(half, 1UL));
	for_each_possible_cpu(cpu) {
		cpu_max = per_cpu_ptr(&cpu_caches, cpu)->stack.max;
		KUNIT_EXPECT_GE(test, cpu_max, MIN_CPU_CACHE_PAGES);
		KUNIT_EXPECT_LE(test, cpu_max, max_t(unsigned long, half / num_online_cpus(),
						     MIN_CPU_CACHE_PAGES));
	}
	limit = atomic_long_read(&max_owned_pages) - MAPPINGS * RESERVE_PAGES;
	KUNIT_EXPECT_GT(test, limit, RESERVE_PAGES);
	KUNIT_EXPECT_LE(test, limit, totalram_pages() / 50);
}

static int bounce_init(struct kunit *test)
{
	struct fixture *f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, f);
	xa_init(&f->out);
	KUNIT_ASSERT_EQ(test, coffer_bounce_start(), 0);
	test->priv = f;
	for (i = 0; i < MAPPINGS; i++)
		KUNIT_ASSERT_EQ(test, coffer_bounce_init(&f->mapping[i]), 0);
	KUNIT_ASSERT_EQ(test, atomic_long_read(&owned_pages), MAPPINGS * RESERVE_PAGES);
	return 0;
}

static void bounce_exit(struct kunit *test)
{
	struct fixture *f = test->priv;
	unsigned int i;

	if (!f)
		return;
	for (i = 0; i < MAPPINGS; i++)
		coffer_bounce_exit(&f->mapping[i]);
	coffer_bounce_stop();
	KUNIT_EXPECT_EQ(test, atomic_long_read(&owned_pages), 0);
	atomic_long_set(&owned_pages, 0);
	xa_destroy(&f->out);
}

static struct kunit_case bounce_cases[] = {
	KUNIT_CASE(vectors),
	KUNIT_CASE(cache_in_use),
	KUNIT_CASE(overflow),
	KUNIT_CASE(boundaries),
	KUNIT_CASE(put_elsewhere),
	KUNIT_CASE(capped),
	KUNIT_CASE(partly_capped),
	KUNIT_CASE_SLOW(forward_progress),
	KUNIT_CASE_SLOW(contention),
	KUNIT_CASE(contexts),
	KUNIT_CASE(shares),
	{}
};

static struct kunit_suite bounce_suite = {
	.name = "coffer-bounce",
	.init = bounce_init,
	.exit = bounce_exit,
	.test_cases = bounce_cases,
};
kunit_test_suite(bounce_suite);
