/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef COFFER_CONVERT_H
#define COFFER_CONVERT_H

#include <stdbool.h>
#include <stdint.h>
#include "device.h"
#include "header.h"

/* Room that a header in front of the data takes: the header, and as much to move the data. */
#define CONVERT_HEADER (16 * MIB)
#define CONVERT_ROOM (2 * CONVERT_HEADER)

/* What is being done to a volume, as its header tells. */
struct convert_state {
	bool active;		/* a conversion has begun and not ended */
	bool decrypting;	/* else encrypting or changing the key */
	bool rotating;
	bool crashed;		/* its last step was cut off */
	uint64_t done, total;	/* bytes */
};

/* A process that converts, as seen from others. */
struct convert_run {
	bool running, paused;
	int pid;
	char why[64];		/* paused: "user", "battery" */
	uint64_t rate;		/* bytes a second */
};

/* A conversion whose header is not yet, or not any more, on the device. */
struct convert_journal {
	char *stage;		/* "prepare", "place", "export", "decrypt" */
	char *header;		/* file with the header */
	char *uuid;
};

void convert_get_state(const struct header *header, struct convert_state *state);
void convert_get_run(const char *uuid, struct convert_run *run);
int convert_pause(const char *uuid, bool pause);

int journal_find(const struct device *device, struct convert_journal *journal, bool *found);
int journal_load(const struct device *device, const char *file, struct header **header);
void journal_devices(struct strings *paths);
int journal_refuse(const struct device *device, const char *what);
int journal_write(const struct device *device, const char *uuid, const char *stage);
void journal_remove(const char *uuid);
void journal_free(struct convert_journal *journal);
char *journal_header(const char *uuid);

int convert_begin_encrypt(const struct device *device, const char *file, unsigned int data_unit,
			  const struct secret *secret, int slot);
int convert_place_header(const struct device *device, const char *file);
int convert_begin_decrypt(const struct device *device, const char *file,
			  const struct secret *secret, int slot);
int convert_run(struct header *header, const char *active, const struct secret *secret,
		const char *what, uint64_t max_rate);

#endif
