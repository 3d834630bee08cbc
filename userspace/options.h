/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef COFFER_OPTIONS_H
#define COFFER_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include "driver.h"
#include "secret.h"

/* The command line of one verb. */
struct args {
	char **words;			/* what is not an option */
	int nr;
	bool json, yes, quiet, all, force;
	bool read_only, deferred, no_recovery, no_token, no_freeze;
	struct secret_source secret;	/* --key-file, --passphrase-fd */
	struct secret_source new_secret;	/* --new-key-file, --new-passphrase-fd */
	const char *name;		/* --name of a secret */
	const char *header, *label, *from;
	bool have_trim, trim;
	uint64_t size;			/* bytes, 0 for none */
	uint64_t max_rate;		/* bytes a second, 0 for none */
	unsigned int data_unit;		/* bytes, 0 for none */
	unsigned int unlock_time;	/* milliseconds */
	enum driver driver;
};

/* One verb of the command. */
struct verb {
	const char *name;		/* "open", "key add" */
	const char *words;		/* "DEVICE [NAME]" */
	int min, max;			/* how many words it takes; max -1: any number */
	bool root;			/* needs root */
	int (*run)(const struct args *args);
	const char *options;		/* long options it takes, blank between them */
	const char *help;		/* one line */
};

extern const struct verb verbs[];
extern const unsigned int nr_verbs;

const struct verb *options_verb(int *argc, char ***argv);
int options_parse(const struct verb *verb, int argc, char **argv, struct args *args);
int options_help(const struct verb *verb);
void options_list(void);

#endif
