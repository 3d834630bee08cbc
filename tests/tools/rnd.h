/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Pseudo-random numbers that a seed repeats (xorshift64*). One sequence a program;
 * it sets rnd_state, to anything but 0, before the first number.
 */
#ifndef RND_H
#define RND_H

#include <stdint.h>
#include <string.h>

static uint64_t rnd_state;

static inline uint64_t rnd(void)
{
	rnd_state ^= rnd_state << 13;
	rnd_state ^= rnd_state >> 7;
	rnd_state ^= rnd_state << 17;
	return rnd_state * 0x2545f4914f6cdd1dull;
}

/* 0 to n - 1; 0 for n = 0 */
static inline uint64_t below(uint64_t n)
{
	return n ? (rnd() >> 11) % n : 0;
}

static inline void rnd_fill(uint8_t *p, size_t n)
{
	uint64_t v;

	for (; n >= 8; n -= 8, p += 8) {
		v = rnd();
		memcpy(p, &v, 8);
	}
	v = rnd();
	memcpy(p, &v, n);
}

#endif
