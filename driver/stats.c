// SPDX-License-Identifier: GPL-2.0-only
/*
 * Summing and printing the counters.
 */
#include <linux/cpumask.h>
#include <linux/device-mapper.h>

#include "stats.h"

static u64 total(const u64 *bytes)
{
	return bytes[COFFER_INLINE] + bytes[COFFER_OFFLOADED] + bytes[COFFER_FANNED_OUT];
}

static u64 both(const struct coffer_stats *stats, enum coffer_where where)
{
	return stats->read[where] + stats->written[where];
}

/**
 * coffer_stats_emit() - print the sums over all CPUs
 * @stats: the counters
 * @result: text buffer
 * @maxlen: its size in bytes
 *
 * The sums are not a snapshot: bios may complete meanwhile.
 *
 * Return: characters written, without the trailing NUL.
 */
unsigned int coffer_stats_emit(const struct coffer_stats __percpu *stats, char *result,
			       unsigned int maxlen)
{
	struct coffer_stats sum = {};
	unsigned int sz = 0, cpu, i;

	for_each_possible_cpu(cpu) {
		const struct coffer_stats *one = per_cpu_ptr(stats, cpu);

		for (i = 0; i < COFFER_WHERES; i++) {
			sum.read[i] += READ_ONCE(one->read[i]);
			sum.written[i] += READ_ONCE(one->written[i]);
		}
		sum.cache_hits += READ_ONCE(one->cache_hits);
		sum.cache_misses += READ_ONCE(one->cache_misses);
		sum.errors += READ_ONCE(one->errors);
	}
	DMEMIT("read %llu written %llu inline %llu offloaded %llu fanned_out %llu",
	       total(sum.read), total(sum.written), both(&sum, COFFER_INLINE),
	       both(&sum, COFFER_OFFLOADED), both(&sum, COFFER_FANNED_OUT));
	DMEMIT(" cache_hits %llu cache_misses %llu errors %llu",
	       sum.cache_hits, sum.cache_misses, sum.errors);
	return sz;
}
