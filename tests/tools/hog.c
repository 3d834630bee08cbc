// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Memory that is more than there is, with content that is checked:
 *
 *   hog MIB SECONDS [INFLIGHT]
 *   hog flip			flip a bit in one page and look for it
 *
 * Fills MIB of anonymous memory with a pattern that no compression nor merging of
 * pages can shrink to nothing, then goes over it in leaps for SECONDS, checks every
 * page it comes by and changes it. INFLIGHT, a file such as
 * /sys/block/X/inflight, is sampled meanwhile; then the memory is in small pages, so
 * that a request is a page.
 *
 * One line of KEY=VALUE words: pages checked, the longest time without any progress,
 * and the most writes seen in flight. Exit status: 0 fine, 1 a page has changed, 2
 * cannot test.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define PAGE	4096u
#define WORDS	(PAGE / sizeof(uint64_t))

static volatile bool watching = true;
static unsigned int most;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1000 + (double)t.tv_nsec / 1e6;
}

static uint64_t mix(uint64_t v)
{
	v ^= v >> 33;
	v *= 0xff51afd7ed558ccdull;
	v ^= v >> 33;
	return v;
}

static void fill(uint64_t *page, uint64_t n, uint64_t generation)
{
	unsigned int i;

	page[0] = generation;
	for (i = 1; i < WORDS; i++)
		page[i] = mix(n * WORDS + i + (generation << 40));
}

static bool right(const uint64_t *page, uint64_t n)
{
	unsigned int i;

	for (i = 1; i < WORDS; i++)
		if (page[i] != mix(n * WORDS + i + (page[0] << 40)))
			return false;
	return true;
}

static void *watch(void *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	while (fd >= 0 && watching) {
		unsigned int reads, writes;
		char text[64];
		ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

		if (n <= 0)
			break;
		text[n] = 0;
		if (sscanf(text, "%u %u", &reads, &writes) == 2 && writes > most)
			most = writes;
		usleep(300);
	}
	if (fd >= 0)
		close(fd);
	return NULL;
}

int main(int argc, char **argv)
{
	static char *small[] = { "hog", "1", "0", NULL };
	uint64_t pages, n = 0, checked = 0, i, step;
	double end, last, t, stall = 0;
	pthread_t thread;
	bool flip = false;
	uint64_t *mem;

	if (argc == 2 && !strcmp(argv[1], "flip")) {
		argv = small;
		argc = 3;
		flip = true;
	}
	if (argc < 3) {
		fprintf(stderr, "usage: hog MIB SECONDS [INFLIGHT]\n");
		return 2;
	}
	pages = strtoull(argv[1], NULL, 0) << 8;
	mem = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (mem == MAP_FAILED || !pages) {
		perror("hog");
		return 2;
	}
	if (argc > 3 && pthread_create(&thread, NULL, watch, argv[3])) {
		perror("hog");
		return 2;
	}
	if (argc > 3)
		madvise(mem, pages * PAGE, MADV_NOHUGEPAGE);
	last = now();
	for (i = 0; i < pages; i++) {
		fill(mem + i * WORDS, i, 1);
		t = now();
		if (t - last > stall)
			stall = t - last;
		last = t;
	}
	if (flip)
		mem[pages / 2 * WORDS + WORDS - 1] ^= 1;
	end = last + 1000 * strtod(argv[2], NULL);
	/* runs of pages in an order that no read-ahead guesses */
	step = pages / 3 + 257;
	while (last < end) {
		n = (n + step) % pages;
		for (i = n; i < n + 16 && i < pages; i++) {
			uint64_t *page = mem + i * WORDS;

			if (!right(page, i)) {
				fprintf(stderr, "hog: page %llu is not what it was\n",
					(unsigned long long)i);
				return 1;
			}
			fill(page, i, page[0] + 1);
			checked++;
		}
		t = now();
		if (t - last > stall)
			stall = t - last;
		last = t;
	}
	/* and every page once more */
	for (i = 0; i < pages; i++)
		if (!right(mem + i * WORDS, i)) {
			fprintf(stderr, "hog: page %llu is not what it was\n",
				(unsigned long long)i);
			return 1;
		}
	watching = false;
	if (argc > 3)
		pthread_join(thread, NULL);
	printf("checked=%llu stall_ms=%.0f inflight=%u\n",
	       (unsigned long long)(checked + pages), stall, most);
	return 0;
}
