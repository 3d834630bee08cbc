// SPDX-License-Identifier: GPL-2.0-only
/*
 * Commits one bug on purpose when loaded, so that tests/uml/selftest can show
 * that the debug kernels and tests/uml/run notice it: insmod trip.ko bug=NAME.
 */
#include <linux/atomic.h>
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/highmem.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

static char *bug = "none";
module_param(bug, charp, 0444);

static DEFINE_MUTEX(lock_a);
static DEFINE_MUTEX(lock_b);
static DEFINE_SPINLOCK(spin);
static volatile int zero;

static void none(void)
{
}

static void out_of_bounds(void)
{
	volatile char *p = kmalloc(24, GFP_KERNEL);

	if (p)
		p[24 + zero] = 1;
	kfree((void *)p);
}

static void use_after_free(void)
{
	volatile char *p = kmalloc(24, GFP_KERNEL);

	kfree((void *)p);
	if (p)
		p[zero] = 1;
}

/* A page that was given back, as a bounce page would be. */
static void page_after_free(void)
{
	struct page *page = alloc_page(GFP_KERNEL);
	volatile char *p;

	if (!page)
		return;
	p = page_address(page);
	__free_page(page);
	p[zero] = 1;
}

static void lock_order(void)
{
	mutex_lock(&lock_a);
	mutex_lock(&lock_b);
	mutex_unlock(&lock_b);
	mutex_unlock(&lock_a);

	mutex_lock(&lock_b);
	mutex_lock(&lock_a);
	mutex_unlock(&lock_a);
	mutex_unlock(&lock_b);
}

/* Taken with interrupts on here, and in a softirq's context there. */
static void lock_softirq(void)
{
	spin_lock(&spin);
	spin_unlock(&spin);

	local_bh_disable();
	lockdep_softirq_enter();
	spin_lock(&spin);
	spin_unlock(&spin);
	lockdep_softirq_exit();
	local_bh_enable();
}

static void atomic_sleep(void)
{
	spin_lock(&spin);
	msleep(1);
	spin_unlock(&spin);
}

static void might_sleep_allocation(void)
{
	spin_lock(&spin);
	kfree(kmalloc(24, GFP_NOIO));
	spin_unlock(&spin);
}

static void leak(void)
{
	void *p = kmalloc(777, GFP_KERNEL);

	OPTIMIZER_HIDE_VAR(p);
}

static void shift(void)
{
	volatile int by = 40 + zero;

	pr_info("trip: %d\n", 1 << by);
}

static void double_add(void)
{
	LIST_HEAD(head);
	struct list_head entry;

	list_add(&entry, &head);
	list_add(&entry, &head);
}

static void work_fn(struct work_struct *work)
{
}

static void free_active_work(void)
{
	struct delayed_work *work = kmalloc(sizeof(*work), GFP_KERNEL);

	if (!work)
		return;
	INIT_DELAYED_WORK(work, work_fn);
	schedule_delayed_work(work, HZ);
	kfree(work);
}

static void warning(void)
{
	WARN_ON(!zero);
}

static const struct {
	const char *name;
	void (*commit)(void);
} bugs[] = {
	{ "none", none },
	{ "out_of_bounds", out_of_bounds },
	{ "use_after_free", use_after_free },
	{ "page_after_free", page_after_free },
	{ "lock_order", lock_order },
	{ "lock_softirq", lock_softirq },
	{ "atomic_sleep", atomic_sleep },
	{ "might_sleep_allocation", might_sleep_allocation },
	{ "leak", leak },
	{ "shift", shift },
	{ "double_add", double_add },
	{ "free_active_work", free_active_work },
	{ "warning", warning },
};

static int __init trip_init(void)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(bugs); i++) {
		if (strcmp(bugs[i].name, bug))
			continue;
		pr_info("trip: %s\n", bug);
		bugs[i].commit();
		return 0;
	}
	return -EINVAL;
}
module_init(trip_init);

static void __exit trip_exit(void)
{
}
module_exit(trip_exit);

MODULE_DESCRIPTION("Bugs on purpose");
MODULE_LICENSE("GPL");
