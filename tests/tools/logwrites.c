// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Print what dm-log-writes recorded on a device, one line a request:
 *
 *   logwrites LOGDEV        SECTOR SECTORS FLAGS HASH
 *
 * FLAGS: F flush, U FUA, D discard, M mark, m metadata, - none. HASH is over
 * the data (FNV-1a), so two logs can be compared. A mark prints its text.
 * The format is that of Documentation/admin-guide/device-mapper/log-writes.rst.
 */
#include <endian.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC	0x6a736677736872ull

enum { FLUSH = 1, FUA = 2, DISCARD = 4, MARK = 8, METADATA = 16 };

struct super {
	uint64_t magic, version, entries;
	uint32_t sectorsize;
};

struct entry {
	uint64_t sector, sectors, flags, data_len;
};

static uint8_t block[4096];

static int next_block(FILE *f, size_t n)
{
	return fread(block, 1, n, f) == n ? 0 : -1;
}

int main(int argc, char **argv)
{
	struct super s;
	struct entry e;
	uint64_t i;
	FILE *f;

	f = argc == 2 ? fopen(argv[1], "r") : NULL;
	if (!f || next_block(f, 512)) {
		fprintf(stderr, "usage: logwrites LOGDEV\n");
		return 2;
	}
	memcpy(&s, block, sizeof(s));
	s.sectorsize = le32toh(s.sectorsize);
	if (le64toh(s.magic) != MAGIC || s.sectorsize < 512 || s.sectorsize > 4096) {
		fprintf(stderr, "logwrites: %s holds no log\n", argv[1]);
		return 2;
	}
	if (fseek(f, s.sectorsize, SEEK_SET))
		return 2;
	for (i = 0; i < le64toh(s.entries); i++) {
		uint64_t hash = 0xcbf29ce484222325ull, left, n;
		char flags[8] = "", *p = flags;

		if (next_block(f, s.sectorsize))
			return 2;
		memcpy(&e, block, sizeof(e));
		e.flags = le64toh(e.flags);
		left = (e.flags & DISCARD) ? 0 : le64toh(e.sectors) * s.sectorsize;
		if (e.flags & MARK) {	/* its text shares the entry's block */
			block[s.sectorsize - 1] = 0;
			printf("mark %s\n", block + sizeof(e));
			continue;
		}
		while (left) {
			if (next_block(f, s.sectorsize))
				return 2;
			for (n = 0; n < s.sectorsize; n++)
				hash = (hash ^ block[n]) * 0x100000001b3ull;
			left -= s.sectorsize < left ? s.sectorsize : left;
		}
		if (e.flags & FLUSH)
			*p++ = 'F';
		if (e.flags & FUA)
			*p++ = 'U';
		if (e.flags & DISCARD)
			*p++ = 'D';
		if (e.flags & METADATA)
			*p++ = 'm';
		if (p == flags)
			*p++ = '-';
		printf("%" PRIu64 " %" PRIu64 " %s %016" PRIx64 "\n",
		       le64toh(e.sector), le64toh(e.sectors), flags, hash);
	}
	fclose(f);
	return 0;
}
