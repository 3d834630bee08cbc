/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef COFFER_KEY_H
#define COFFER_KEY_H

#include <linux/types.h>

struct coffer_cipher;

/* What may be said about the key that is set: never its bytes. */
struct coffer_key {
	char *description;	/* ":<bytes>:<type>:<description>", NULL for a hex key */
	unsigned int bytes;	/* 32 or 64, both XTS halves */
};

int coffer_key_set(struct coffer_key *key, struct coffer_cipher *cipher, char *word,
		   char **error);
int coffer_key_wipe(const struct coffer_key *key, struct coffer_cipher *cipher);
void coffer_key_exit(struct coffer_key *key);
unsigned int coffer_key_emit(const struct coffer_key *key, char *result,
			     unsigned int maxlen);

#endif
