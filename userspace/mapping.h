/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef COFFER_MAPPING_H
#define COFFER_MAPPING_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "secret.h"
#include "util.h"

/* One device-mapper device with one target, as the kernel has it. */
struct mapping {
	char *name, *uuid;
	dev_t devno;
	int open_count;
	bool suspended, read_only;
	unsigned int nr_targets;
	char *target;		/* "coffer", "crypt", "linear", ...: the first one */
	uint64_t size;		/* sectors */

	/* "coffer" and "crypt" only */
	char *cipher;		/* "aes-xts-plain64" */
	unsigned int key_bytes;
	char *key_type;		/* "logon"; NULL for a key that stood in the table */
	char *key_description;
	uint64_t iv_offset;	/* sectors */
	dev_t lower;
	uint64_t offset;	/* sectors */
	struct strings options;
	unsigned int data_unit;	/* bytes */
	bool discards;
	char *info;		/* the target's INFO line; "" where it has none */
};

/* The words that the kernel knows for an encrypted mapping. */
#define TARGET_COFFER "coffer"
#define TARGET_CRYPT "crypt"

int mapping_get(const char *name, struct mapping *map);
bool mapping_find(const char *name, struct mapping *map);
void mapping_free(struct mapping *map);
int mapping_names(struct strings *names);
bool mapping_is_crypt(const struct mapping *map);
bool mapping_is_converting(const struct mapping *map);
bool mapping_key_wiped(const struct mapping *map);
bool mapping_on_coffer(const struct mapping *map);

struct secret *mapping_table(const struct mapping *map, const struct secret *key);
int mapping_table_key(const struct mapping *map, struct secret **key);

int mapping_create(const struct mapping *map, const struct secret *key);
int mapping_load(const struct mapping *map, const struct secret *key);
int mapping_suspend(const char *name, bool freeze);
int mapping_resume(const char *name);
int mapping_clear(const char *name);
int mapping_remove(const char *name, bool deferred);
int mapping_message(const char *name, const char *message);
bool mapping_target_version(const char *target, unsigned int version[3]);

#endif
