/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Counters that a user can read in the status line. One set for each CPU, added to
 * without locks from any context, summed when read.
 */
#ifndef COFFER_STATS_H
#define COFFER_STATS_H

#include <linux/percpu.h>
#include <linux/types.h>

/* Where a bio was converted. */
enum coffer_where {
	COFFER_INLINE,		/* by whoever submitted or completed it */
	COFFER_OFFLOADED,	/* by a softirq or a worker of ours */
	COFFER_FANNED_OUT,	/* by several CPUs */
	COFFER_WHERES,
};

struct coffer_stats {
	u64 read[COFFER_WHERES];	/* bytes decrypted */
	u64 written[COFFER_WHERES];	/* bytes encrypted */
	u64 cache_hits;			/* writes whose pages all came from the caches */
	u64 cache_misses;
	u64 errors;			/* bios that failed, below us or in the cipher */
};

#define coffer_stat_add(dev, field, n)	this_cpu_add((dev)->stats->field, n)

unsigned int coffer_stats_emit(const struct coffer_stats __percpu *stats, char *result,
			       unsigned int maxlen);

#endif
