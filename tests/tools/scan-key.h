/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The keys of tests/vm/ram-scan. The guest makes them from a number and the host makes
 * the same ones to search for, so that no key is in any file or argument.
 */
#ifndef COFFER_TESTS_SCAN_KEY_H
#define COFFER_TESTS_SCAN_KEY_H

#include <stdint.h>

#define SCAN_KEY_BYTES	64

/* Byte by byte: a wide store could leave the key in a vector register. */
static inline void scan_key(volatile uint8_t key[SCAN_KEY_BYTES], uint64_t seed)
{
	unsigned int i;
	uint64_t v;

	for (i = 0; i < SCAN_KEY_BYTES; i++) {
		v = (seed << 8 | i) + 1;
		v *= 0x9e3779b97f4a7c15ull;
		v ^= v >> 29;
		v *= 0xbf58476d1ce4e5b9ull;
		v ^= v >> 32;
		key[i] = (uint8_t)v;
	}
}

#endif
