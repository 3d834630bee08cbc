/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Counters that a user can read in the status line. One set for each CPU, added to
 * without locks from any context, summed when read.
 *
 * local64_t: whole against interrupts of its own CPU, without turning them off
 * where the architecture has an instruction for it or atomics. this_cpu_add() turns
 * them off on all architectures that did not write one of their own.
 */
#ifndef COFFER_STATS_H
#define COFFER_STATS_H

#include <linux/percpu.h>
#include <linux/preempt.h>
#include <linux/types.h>
#include <asm/local64.h>

/* Where a bio was converted. */
enum coffer_where {
	COFFER_INLINE,		/* by whoever submitted or completed it */
	COFFER_OFFLOADED,	/* by a softirq or a worker of ours */
	COFFER_FANNED_OUT,	/* by several CPUs */
	COFFER_WHERES,
};

struct coffer_stats {
	local64_t read[COFFER_WHERES];	/* bytes decrypted */
	local64_t written[COFFER_WHERES]; /* bytes encrypted */
	local64_t cache_hits;		/* writes whose pages all came from the caches */
	local64_t cache_misses;
	local64_t errors;		/* bios that failed, below us or in the cipher */
};

#define coffer_stat_add(dev, field, n)						\
do {										\
	/* on another CPU's set it would not be whole */			\
	preempt_disable();							\
	local64_add(n, &this_cpu_ptr((dev)->stats)->field);			\
	preempt_enable();							\
} while (0)

unsigned int coffer_stats_emit(const struct coffer_stats __percpu *stats, char *result,
			       unsigned int maxlen);

#endif
