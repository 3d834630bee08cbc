// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Search a dump of memory for what keys leave behind:
 *
 *   ram-search DUMP SEED...
 *   ram-search -t			check the search itself
 *
 * For each key of scan-key.h, at every byte of the dump:
 *   raw-N	16 bytes of the key, N = 0 to 3
 *   joint	the last 8 bytes of the first half and the first 8 of the second: a key in
 *		one piece, while schedules lie apart
 *   enc-H-R	round key R of half H's schedule (2 to 14; 0 and 1 are raw)
 *   dec-H-R	the same for the equivalent inverse cipher, as AES-NI wants it
 *   hex-N, HEX-N	the text of raw-N
 *
 * One line for each hit: SEED PATTERN ADDRESS, in hexadecimal. Exit status 0 whatever
 * was found, 2 if it cannot search.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../oracle/aes_xts.h"
#include "scan-key.h"

#define MAX_PATTERNS	4096
#define FILTER_BITS	20

static struct pattern {
	uint64_t seed;
	char name[16];
	uint8_t bytes[32];
	unsigned int len;
} patterns[MAX_PATTERNS];
static unsigned int nr;
/* by the low bits of the first 4 bytes: number of a pattern + 1 and links between them */
static uint16_t first[1 << FILTER_BITS], next[MAX_PATTERNS];

static uint32_t head(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, 4);
	return (v * 0x9e3779b1u) >> (32 - FILTER_BITS);
}

static void add(uint64_t seed, const char *name, const uint8_t *bytes, unsigned int len)
{
	struct pattern *p = &patterns[nr];
	uint32_t h = head(bytes);

	if (nr == MAX_PATTERNS - 1) {
		fprintf(stderr, "ram-search: too many keys\n");
		exit(2);
	}
	p->seed = seed;
	snprintf(p->name, sizeof(p->name), "%s", name);
	memcpy(p->bytes, bytes, len);
	p->len = len;
	next[nr] = first[h];
	first[h] = (uint16_t)++nr;
}

static uint8_t times(uint8_t a, uint8_t b)
{
	uint8_t sum = 0;

	for (; b; b >>= 1) {
		if (b & 1)
			sum ^= a;
		a = (uint8_t)(a << 1 ^ (a & 0x80 ? 0x1b : 0));
	}
	return sum;
}

/* FIPS-197 5.1.3 and 5.3.3, by the first column of the matrix */
static void mix(const uint8_t in[16], uint8_t out[16], const uint8_t m[4])
{
	int c, r, k;

	for (c = 0; c < 16; c += 4)
		for (r = 0; r < 4; r++) {
			out[c + r] = 0;
			for (k = 0; k < 4; k++)
				out[c + r] ^= times(in[c + k], m[(k - r + 4) % 4]);
		}
}

static const uint8_t forward[4] = { 2, 3, 1, 1 }, inverse[4] = { 14, 11, 13, 9 };

static void add_key(uint64_t seed)
{
	uint8_t key[SCAN_KEY_BYTES], round[16];
	char name[32], text[33];
	struct aes_key schedule;
	int half, r, i, n;

	scan_key(key, seed);
	add(seed, "joint", key + 24, 16);
	for (n = 0; n < 4; n++) {
		snprintf(name, sizeof(name), "raw-%d", n);
		add(seed, name, key + 16 * n, 16);
		for (i = 0; i < 16; i++)
			snprintf(text + 2 * i, 3, "%02x", key[16 * n + i]);
		snprintf(name, sizeof(name), "hex-%d", n);
		add(seed, name, (uint8_t *)text, 32);
		for (i = 0; i < 16; i++)
			snprintf(text + 2 * i, 3, "%02X", key[16 * n + i]);
		snprintf(name, sizeof(name), "HEX-%d", n);
		add(seed, name, (uint8_t *)text, 32);
	}
	for (half = 0; half < 2; half++) {
		aes_setkey(&schedule, key + 32 * half, 32);
		for (r = 2; r <= 14; r++) {
			snprintf(name, sizeof(name), "enc-%d-%d", half, r);
			add(seed, name, schedule.rk[r], 16);
		}
		for (r = 1; r <= 13; r++) {
			mix(schedule.rk[r], round, inverse);
			snprintf(name, sizeof(name), "dec-%d-%d", half, r);
			add(seed, name, round, 16);
		}
	}
}

static unsigned long search(const uint8_t *mem, size_t size, bool print)
{
	unsigned long hits = 0;
	unsigned int i;
	size_t at;

	for (at = 0; at + 32 <= size; at++) {
		for (i = first[head(mem + at)]; i; i = next[i - 1]) {
			const struct pattern *p = &patterns[i - 1];

			if (memcmp(mem + at, p->bytes, p->len))
				continue;
			hits++;
			if (print)
				printf("%" PRIu64 " %s %zx\n", p->seed, p->name, at);
		}
	}
	return hits;
}

/* Every pattern at an odd place, and none in noise. */
static int self_test(void)
{
	/* FIPS-197 A.3: the last round key; and 5.3.3 undoes 5.1.3 */
	static const uint8_t key[32] = {
		0x60, 0x3d, 0xeb, 0x10, 0x15, 0xca, 0x71, 0xbe, 0x2b, 0x73, 0xae, 0xf0, 0x85, 0x7d,
		0x77, 0x81, 0x1f, 0x35, 0x2c, 0x07, 0x3b, 0x61, 0x08, 0xd7, 0x2d, 0x98, 0x10, 0xa3,
		0x09, 0x14, 0xdf, 0xf4,
	}, last[16] = {
		0xfe, 0x48, 0x90, 0xd1, 0xe6, 0x18, 0x8d, 0x0b, 0x04, 0x6d, 0xf3, 0x44, 0x70, 0x6c,
		0x63, 0x1e,
	};
	const size_t size = 1 << 20;
	uint8_t *mem = malloc(size), there[16], back[16];
	struct aes_key schedule;
	uint64_t v = 1;
	unsigned int i;
	size_t at;

	if (!mem)
		return 2;
	aes_setkey(&schedule, key, 32);
	mix(key, there, forward);
	mix(there, back, inverse);
	if (memcmp(schedule.rk[14], last, 16) || memcmp(back, key, 16)) {
		fprintf(stderr, "ram-search: the schedule is wrong\n");
		return 1;
	}
	for (at = 0; at < size; at++) {
		v ^= v << 13;
		v ^= v >> 7;
		v ^= v << 17;
		mem[at] = (uint8_t)(v >> 24);
	}
	add_key(1);
	add_key(2);
	if (search(mem, size, false)) {
		fprintf(stderr, "ram-search: found a key in noise\n");
		return 1;
	}
	for (i = 0; i < nr; i++)
		memcpy(mem + 1001 + 97 * i, patterns[i].bytes, patterns[i].len);
	if (search(mem, size, false) != nr) {
		fprintf(stderr, "ram-search: %lu of %u patterns found\n",
			search(mem, size, false), nr);
		return 1;
	}
	printf("ram-search: all %u patterns of two keys found\n", nr);
	free(mem);
	return 0;
}

int main(int argc, char **argv)
{
	const uint8_t *mem;
	struct stat st;
	int fd, i;

	if (argc == 2 && !strcmp(argv[1], "-t"))
		return self_test();
	if (argc < 3) {
		fprintf(stderr, "usage: ram-search DUMP SEED...\n");
		return 2;
	}
	for (i = 2; i < argc; i++)
		add_key(strtoull(argv[i], NULL, 0));
	fd = open(argv[1], O_RDONLY);
	if (fd < 0 || fstat(fd, &st) || !st.st_size) {
		perror(argv[1]);
		return 2;
	}
	mem = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (mem == MAP_FAILED) {
		perror(argv[1]);
		return 2;
	}
	search(mem, (size_t)st.st_size, true);
	return 0;
}
