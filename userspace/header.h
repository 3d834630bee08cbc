/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef COFFER_HEADER_H
#define COFFER_HEADER_H

#include <json-c/json.h>
#include <libcryptsetup.h>
#include <stdbool.h>
#include <stdint.h>
#include "secret.h"
#include "util.h"

/* A LUKS header that has been read. */
struct header {
	struct crypt_device *cd;
	char *device;		/* where the data is */
	char *path;		/* where the header is, if it is detached; else NULL */
	const char *uuid;
	bool luks2;
};

/* What opens a volume, one for each keyslot. */
struct keyslot {
	int slot;
	int token;		/* that names it; -1 */
	char *name;		/* "anna"; "slot-3" for one without a name */
	char *kind;		/* passphrase, key-file, recovery, tpm2, fido2, pkcs11, clevis, unbound, unknown */
	char *created;		/* ISO 8601, or NULL */
	char *pbkdf;		/* "argon2id", or NULL */
	uint32_t memory_kib;
	bool preferred, ignored;
};

struct keyslots {
	struct keyslot *slots;
	unsigned int nr;
};

/* How to get at the volume key. */
struct unlock {
	struct secret_source source;
	const char *what;	/* the volume's name in the prompt */
	const char *name;	/* only this secret; NULL for any */
	bool no_token;		/* do not try TPM2 and the like first */
	struct secret **keep;	/* result: the secret itself, if it is wanted */
	int slot;		/* result: the keyslot that opened, -1 for a token's volume key */
};

int header_load(const char *device, const char *path, struct header **header);
int header_check(const struct header *header);
void header_free(struct header *header);
void header_quiet(struct crypt_device *cd);
const char *header_log(void);
int header_failed(int err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

int header_unlock(struct header *header, struct unlock *unlock, struct secret **volume_key);
int header_try(struct header *header, int slot, const struct secret *secret,
	       struct secret **volume_key, int *opened);
uint64_t memory_available(void);

int keyslots_get(const struct header *header, struct keyslots *list);
void keyslots_free(struct keyslots *list);
const struct keyslot *keyslot_by_name(const struct keyslots *list, const char *name);
const struct keyslot *keyslot_by_slot(const struct keyslots *list, int slot);
bool keyslot_typeable(const struct keyslot *slot);
int keyslot_set_name(struct header *header, int slot, const char *name, const char *kind);
int keyslot_add(struct header *header, const struct secret *volume_key,
		const struct secret *secret, const struct crypt_pbkdf_type *pbkdf, const char *name,
		const char *kind, int *slot);
int keyslot_remove(struct header *header, int slot);
struct json_object *keyslot_json(const struct keyslot *slot);
int keyslot_check_name(const struct keyslots *list, const char *name);

void pbkdf_passphrase(struct crypt_pbkdf_type *pbkdf, unsigned int milliseconds);
void pbkdf_random(struct crypt_pbkdf_type *pbkdf);

#endif
