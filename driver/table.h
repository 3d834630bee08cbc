/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef COFFER_TABLE_H
#define COFFER_TABLE_H

#include <linux/types.h>
#include <linux/device-mapper.h>

/* The words of a table line, checked for form but not against any device. */
struct coffer_params {
	char *key;			/* argv word; not owned, key.c blanks it */
	u64 iv_offset;			/* sectors */
	const char *device;		/* argv word; not owned */
	sector_t start;			/* sectors into the device */
	unsigned int data_unit;		/* bytes, power of two, 512 to 4096 */
	unsigned int inline_bytes;	/* convert up to here where we are; 0: default */
	unsigned int fanout;		/* most CPUs for one bio; 0: default */
	unsigned long flags;		/* enum coffer_flag */
};

enum coffer_flag {
	COFFER_ALLOW_DISCARDS,
	COFFER_IV_LARGE_SECTORS,
	COFFER_HANDOVER,	/* experiment: large bios go whole to a worker */
	/* dm-crypt's performance flags: kept for the table's sake, without effect */
	COFFER_SAME_CPU_CRYPT,
	COFFER_HIGH_PRIORITY,
	COFFER_SUBMIT_FROM_CRYPT_CPUS,
	COFFER_NO_READ_WORKQUEUE,
	COFFER_NO_WRITE_WORKQUEUE,
};

int coffer_table_parse(struct coffer_params *params, unsigned int argc, char **argv,
		       sector_t len, char **error);
unsigned int coffer_table_emit_options(const struct coffer_params *params, char *result,
				       unsigned int maxlen);

#endif
