/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the suites share: several threads that do the same thing at once, each tied to
 * a CPU, and the first complaint of any of them. KUnit's own expectations allocate
 * memory when they fail, which most of the contexts tested here may not.
 */
#ifndef COFFER_TEST_CREW_H
#define COFFER_TEST_CREW_H

#include <kunit/test.h>
#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/kthread.h>

#define CREW_MAX	16
#define CREW_PATIENCE	(120 * HZ)

struct crew {
	void (*fn)(void *ctx, unsigned int number);
	void *ctx;
	atomic_t left;
	struct completion done;
};

struct crew_member {
	struct crew *crew;
	unsigned int number;
};

static inline int crew_thread(void *arg)
{
	struct crew_member *member = arg;

	member->crew->fn(member->crew->ctx, member->number);
	if (atomic_dec_and_test(&member->crew->left))
		complete(&member->crew->done);
	return 0;
}

/*
 * Runs @fn in @nr threads, spread over the online CPUs, and waits for them all. False
 * if they do not come to an end: then they still use @ctx, so nothing may be freed.
 */
static inline bool crew_run(struct kunit *test, unsigned int nr,
			    void (*fn)(void *ctx, unsigned int number), void *ctx)
{
	struct crew *crew = kunit_kzalloc(test, sizeof(*crew), GFP_KERNEL);
	struct crew_member *members = kunit_kcalloc(test, nr, sizeof(*members), GFP_KERNEL);
	struct task_struct *tasks[CREW_MAX];
	unsigned int i, cpu = cpumask_first(cpu_online_mask);

	KUNIT_ASSERT_NOT_NULL(test, crew);
	KUNIT_ASSERT_NOT_NULL(test, members);
	KUNIT_ASSERT_LE(test, nr, CREW_MAX);
	crew->fn = fn;
	crew->ctx = ctx;
	atomic_set(&crew->left, nr);
	init_completion(&crew->done);
	for (i = 0; i < nr; i++) {
		members[i] = (struct crew_member) { crew, i };
		tasks[i] = kthread_create(crew_thread, &members[i], "coffer-kunit/%u", i);
		KUNIT_ASSERT_NOT_ERR_OR_NULL(test, tasks[i]);
		kthread_bind(tasks[i], cpu);
		cpu = cpumask_next(cpu, cpu_online_mask);
		if (cpu >= nr_cpu_ids)
			cpu = cpumask_first(cpu_online_mask);
	}
	for (i = 0; i < nr; i++) {
		get_task_struct(tasks[i]);
		wake_up_process(tasks[i]);
	}
	if (!wait_for_completion_timeout(&crew->done, CREW_PATIENCE)) {
		KUNIT_FAIL(test, "threads hang: %d of %u", atomic_read(&crew->left), nr);
		return false;
	}
	for (i = 0; i < nr; i++) {
		/* until it has left our text */
		kthread_stop(tasks[i]);
		put_task_struct(tasks[i]);
	}
	return true;
}

/* The first complaint wins; any context. */
struct complaint {
	const char *what;
	unsigned long value;
};

static inline void complain(struct complaint *c, const char *what, unsigned long value)
{
	if (!cmpxchg(&c->what, NULL, what))
		c->value = value;
}

#define EXPECT_NO_COMPLAINT(test, c) \
	KUNIT_EXPECT_NULL_MSG(test, READ_ONCE((c)->what), "%s: %lu", \
			      READ_ONCE((c)->what) ?: "", READ_ONCE((c)->value))

#endif
