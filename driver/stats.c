// SPDX-License-Identifier: GPL-2.0-only
/*
 * Summing and printing the counters.
 */
#include <linux/cpumask.h>
#include <linux/device-mapper.h>

#include "stats.h"

/* All of them at one time, or nearly. */
struct sums {
	u64 read[COFFER_WHERES];
	u64 written[COFFER_WHERES];
	u64 cache_hits, cache_misses, errors;
};

static u64 total(const u64 *bytes)
{
	return bytes[COFFER_INLINE] + bytes[COFFER_OFFLOADED] + bytes[COFFER_FANNED_OUT];
}

static u64 both(const struct sums *sums, enum coffer_where where)
{
	return sums->read[where] + sums->written[where];
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
	struct sums sum = {};
	unsigned int sz = 0, cpu, i;

	for_each_possible_cpu(cpu) {
		const struct coffer_stats *one = per_cpu_ptr(stats, cpu);

		for (i = 0; i < COFFER_WHERES; i++) {
			sum.read[i] += local64_read(&one->read[i]);
			sum.written[i] += local64_read(&one->written[i]);
		}
		sum.cache_hits += local64_read(&one->cache_hits);
		sum.cache_misses += local64_read(&one->cache_misses);
		sum.errors += local64_read(&one->errors);
	}
	DMEMIT("read %llu written %llu inline %llu offloaded %llu fanned_out %llu",
	       total(sum.read), total(sum.written), both(&sum, COFFER_INLINE),
	       both(&sum, COFFER_OFFLOADED), both(&sum, COFFER_FANNED_OUT));
	DMEMIT(" cache_hits %llu cache_misses %llu errors %llu",
	       sum.cache_hits, sum.cache_misses, sum.errors);
	return sz;
}
