// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Keyslots and their names.
 *
 * A name lives in a LUKS2 token of type "coffer" that is assigned to the keyslot:
 *
 *	{"type":"coffer","keyslots":["0"],"name":"anna","kind":"passphrase","created":"..."}
 *
 * Tokens of other programs are read for what they say and never changed. LUKS1 has no
 * tokens: there, and where a token is missing, a keyslot is called slot-N.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "error.h"
#include "header.h"

#define TOKEN_TYPE "coffer"
#define NAME_MAX_LEN 64
#define BRIEF 50		/* milliseconds */

/* Token types of others, and what opens their keyslots. */
static const struct {
	const char *type, *kind;
} foreign[] = {
	{ "systemd-tpm2", "tpm2" },
	{ "systemd-fido2", "fido2" },
	{ "systemd-pkcs11", "pkcs11" },
	{ "systemd-recovery", "recovery" },
	{ "clevis", "clevis" },
	{ "luks2-keyring", "keyring" },
};

static const char *string_of(struct json_object *object, const char *key)
{
	struct json_object *value;

	return json_object_object_get_ex(object, key, &value) &&
	       json_object_is_type(value, json_type_string) ? json_object_get_string(value) : NULL;
}

/* A header is input from whoever had the disk: nothing in a name may reach the terminal raw. */
static char *printable(const char *text)
{
	char *copy = xasprintf("%.*s", NAME_MAX_LEN, text);

	for (char *p = copy; *p; p++)
		if (!isprint((unsigned char)*p))
			*p = '?';
	return copy;
}

static void read_token(struct keyslot *k, const struct header *header, int token)
{
	struct json_object *object;
	const char *json, *type, *value;

	if (crypt_token_is_assigned(header->cd, token, k->slot) ||
	    crypt_token_json_get(header->cd, token, &json) < 0)
		return;
	object = json_tokener_parse(json);
	type = object ? string_of(object, "type") : NULL;
	if (!type) {
		json_object_put(object);
		return;
	}
	if (!strcmp(type, TOKEN_TYPE)) {
		free(k->name);
		free(k->created);
		k->token = token;
		value = string_of(object, "name");
		k->name = printable(value ? value : "?");
		value = string_of(object, "created");
		k->created = value ? printable(value) : NULL;
		value = string_of(object, "kind");
		if (value && !k->kind)
			k->kind = printable(value);
	} else {
		for (unsigned int i = 0; i < ARRAY_SIZE(foreign); i++) {
			if (strcmp(type, foreign[i].type))
				continue;
			free(k->kind);
			k->kind = xstrdup(foreign[i].kind);
			if (!k->name)
				k->name = xstrdup(foreign[i].kind);
		}
		if (!k->kind)
			k->kind = printable(type);
	}
	json_object_put(object);
}

static void read_slot(struct keyslot *k, const struct header *header, int slot,
		      crypt_keyslot_info info)
{
	struct crypt_pbkdf_type pbkdf = { 0 };
	crypt_keyslot_priority priority = crypt_keyslot_get_priority(header->cd, slot);

	*k = (struct keyslot){ .slot = slot, .token = -1 };
	for (int token = 0; header->luks2 && token < crypt_token_max(CRYPT_LUKS2); token++)
		read_token(k, header, token);
	if (info == CRYPT_SLOT_UNBOUND) {
		free(k->kind);
		k->kind = xstrdup("unbound");
	}
	if (!k->kind)
		k->kind = xstrdup("unknown");
	if (!k->name)
		k->name = xasprintf("slot-%d", slot);
	if (!crypt_keyslot_get_pbkdf(header->cd, slot, &pbkdf) && pbkdf.type) {
		k->pbkdf = xstrdup(pbkdf.type);
		k->memory_kib = strcmp(pbkdf.type, CRYPT_KDF_PBKDF2) ? pbkdf.max_memory_kb : 0;
	}
	k->preferred = priority == CRYPT_SLOT_PRIORITY_PREFER;
	k->ignored = priority == CRYPT_SLOT_PRIORITY_IGNORE;
}

/**
 * keyslots_get() - the keyslots that are in use
 * @header: the header
 * @list: filled in; keyslots_free() it
 *
 * Names are made unique: two keyslots of one name become "tpm2" and "tpm2-5".
 *
 * Return: 0.
 */
int keyslots_get(const struct header *header, struct keyslots *list)
{
	int max = crypt_keyslot_max(crypt_get_type(header->cd));

	memset(list, 0, sizeof(*list));
	for (int slot = 0; slot < max; slot++) {
		crypt_keyslot_info info = crypt_keyslot_status(header->cd, slot);
		struct keyslot k;

		if (info != CRYPT_SLOT_ACTIVE && info != CRYPT_SLOT_ACTIVE_LAST &&
		    info != CRYPT_SLOT_UNBOUND)
			continue;
		read_slot(&k, header, slot, info);
		if (keyslot_by_name(list, k.name)) {
			char *name = xasprintf("%s-%d", k.name, slot);

			free(k.name);
			k.name = name;
		}
		list->slots = xrealloc(list->slots, (list->nr + 1) * sizeof(*list->slots));
		list->slots[list->nr++] = k;
	}
	return 0;
}

void keyslots_free(struct keyslots *list)
{
	for (unsigned int i = 0; i < list->nr; i++) {
		free(list->slots[i].name);
		free(list->slots[i].kind);
		free(list->slots[i].created);
		free(list->slots[i].pbkdf);
	}
	free(list->slots);
	memset(list, 0, sizeof(*list));
}

const struct keyslot *keyslot_by_name(const struct keyslots *list, const char *name)
{
	for (unsigned int i = 0; i < list->nr; i++)
		if (!strcmp(list->slots[i].name, name))
			return &list->slots[i];
	return NULL;
}

const struct keyslot *keyslot_by_slot(const struct keyslots *list, int slot)
{
	for (unsigned int i = 0; i < list->nr; i++)
		if (list->slots[i].slot == slot)
			return &list->slots[i];
	return NULL;
}

/* Whether a person could open the volume with it from memory or paper. */
bool keyslot_typeable(const struct keyslot *k)
{
	return !strcmp(k->kind, "passphrase") || !strcmp(k->kind, "recovery") ||
	       !strcmp(k->kind, "unknown");
}

/**
 * keyslot_check_name() - whether a name may be given to a new keyslot
 * @list: the keyslots that there are
 * @name: letters, digits, blank and ._-@, not "slot-N"
 *
 * Return: 0, E_USAGE or E_EXISTS.
 */
int keyslot_check_name(const struct keyslots *list, const char *name)
{
	size_t len = strlen(name);

	if (!len || len > NAME_MAX_LEN || !isalnum((unsigned char)*name))
		return fail(E_USAGE, NULL, "cannot use the name \"%s\": it has to begin with a letter or digit and have at most %d characters",
			    name, NAME_MAX_LEN);
	for (const char *p = name; *p; p++)
		if (!isalnum((unsigned char)*p) && !strchr(" ._-@", *p))
			return fail(E_USAGE, NULL, "cannot use the name \"%s\": letters, digits, blanks and ._-@ only",
				    name);
	if (starts_with(name, "slot-"))
		return fail(E_USAGE, NULL, "cannot use the name \"%s\": slot-N is what secrets without a name are called",
			    name);
	if (list && keyslot_by_name(list, name))
		return fail(E_EXISTS, NULL, "cannot use the name \"%s\": there is a secret of that name",
			    name);
	return 0;
}

/**
 * keyslot_set_name() - write a keyslot's name into the header
 * @header: the header; nothing is done for LUKS1
 * @slot: the keyslot; an older name is replaced
 * @name: see keyslot_check_name()
 * @kind: "passphrase", "key-file" or "recovery"
 *
 * Return: 0, or what failed.
 */
int keyslot_set_name(struct header *header, int slot, const char *name, const char *kind)
{
	struct json_object *object, *slots;
	struct keyslots list;
	const struct keyslot *k;
	char number[16], when[32];
	time_t now = time(NULL);
	int ret, token;

	if (!header->luks2)
		return 0;
	ret = keyslots_get(header, &list);
	if (ret)
		return ret;
	k = keyslot_by_slot(&list, slot);
	token = k ? k->token : -1;
	keyslots_free(&list);

	object = json_object_new_object();
	slots = json_object_new_array();
	snprintf(number, sizeof(number), "%d", slot);
	strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
	json_object_object_add(object, "type", json_object_new_string(TOKEN_TYPE));
	json_object_array_add(slots, json_object_new_string(number));
	json_object_object_add(object, "keyslots", slots);
	json_object_object_add(object, "name", json_object_new_string(name));
	json_object_object_add(object, "kind", json_object_new_string(kind));
	json_object_object_add(object, "created", json_object_new_string(when));
	ret = crypt_token_json_set(header->cd, token < 0 ? CRYPT_ANY_TOKEN : token,
				   json_object_to_json_string_ext(object, JSON_C_TO_STRING_PLAIN));
	json_object_put(object);
	return ret < 0 ? header_failed(ret, "cannot write the name of the secret to %s",
				       header->device) : 0;
}

/**
 * keyslot_add() - add a secret to a header, and prove it
 * @header: the header
 * @volume_key: the volume key
 * @secret: the new secret
 * @pbkdf: how it becomes a key
 * @name: its name
 * @kind: "passphrase", "key-file" or "recovery"
 * @slot: its keyslot
 *
 * Return: 0, or what failed; the keyslot is gone again then.
 */
int keyslot_add(struct header *header, const struct secret *volume_key,
		const struct secret *secret, const struct crypt_pbkdf_type *pbkdf, const char *name,
		const char *kind, int *slot)
{
	int max = crypt_keyslot_max(crypt_get_type(header->cd)), unused = 0, opened, ret;
	struct secret *proof = NULL;

	for (int i = 0; i < max; i++)
		unused += crypt_keyslot_status(header->cd, i) == CRYPT_SLOT_INACTIVE;
	if (!unused)
		return fail(E_TOO_SMALL, "remove one first: coffer key remove",
			    "cannot add %s to %s: all %d keyslots are in use", name, header->device, max);
	ret = crypt_set_pbkdf_type(header->cd, pbkdf);
	if (ret < 0)
		return header_failed(ret, "cannot add %s to %s", name, header->device);
	*slot = crypt_keyslot_add_by_volume_key(header->cd, CRYPT_ANY_SLOT, volume_key->data,
						volume_key->len, secret->data, secret->len);
	if (*slot < 0)
		return header_failed(*slot, "cannot add %s to %s", name, header->device);
	ret = keyslot_set_name(header, *slot, name, kind);
	if (!ret)
		ret = header_try(header, *slot, secret, &proof, &opened);
	if (!ret && !secret_equal(proof, volume_key))
		ret = fail(E_HEADER, NULL, "cannot add %s to %s: it does not open the volume", name,
			   header->device);
	secret_free(proof);
	if (ret)
		keyslot_remove(header, *slot);
	return ret;
}

/**
 * keyslot_remove() - wipe a keyslot, and the tokens that were for nothing else
 * @header: the header
 * @slot: the keyslot
 *
 * Return: 0, or what failed.
 */
int keyslot_remove(struct header *header, int slot)
{
	int max = header->luks2 ? crypt_token_max(CRYPT_LUKS2) : 0;
	int slots = crypt_keyslot_max(crypt_get_type(header->cd)), ret;
	bool *was = xcalloc(max + 1, sizeof(*was));

	for (int token = 0; token < max; token++)
		was[token] = !crypt_token_is_assigned(header->cd, token, slot);
	ret = crypt_keyslot_destroy(header->cd, slot);
	if (ret < 0) {
		free(was);
		return header_failed(ret, "cannot remove keyslot %d of %s", slot, header->device);
	}
	ret = 0;
	for (int token = 0; token < max; token++) {
		bool needed = false;

		for (int i = 0; was[token] && i < slots; i++)
			needed |= !crypt_token_is_assigned(header->cd, token, i);
		if (was[token] && !needed)
			crypt_token_json_set(header->cd, token, NULL);
	}
	free(was);
	return ret;
}

/* A secret as it stands in JSON output. */
struct json_object *keyslot_json(const struct keyslot *k)
{
	struct json_object *entry = json_object_new_object();

	json_object_object_add(entry, "name", json_object_new_string(k->name));
	json_object_object_add(entry, "kind", json_object_new_string(k->kind));
	json_object_object_add(entry, "slot", json_object_new_int(k->slot));
	json_object_object_add(entry, "created", k->created ? json_object_new_string(k->created) :
			       NULL);
	return entry;
}

/**
 * pbkdf_passphrase() - how a passphrase becomes a key
 * @pbkdf: filled in, for crypt_set_pbkdf_type()
 * @milliseconds: how long unlocking may take on this machine
 *
 * Memory is bounded so that the volume opens in a machine with 512 MiB. libcryptsetup measures
 * with 64 MiB at least, which takes longer than BRIEF: what is asked to be shorter gets what
 * machines of today do in that time, unmeasured.
 */
void pbkdf_passphrase(struct crypt_pbkdf_type *pbkdf, unsigned int milliseconds)
{
	uint64_t memory = memory_available() / 2 / KIB;

	*pbkdf = (struct crypt_pbkdf_type){
		.type = CRYPT_KDF_ARGON2ID,
		.hash = "sha256",
		.time_ms = milliseconds,
		.max_memory_kb = memory < 256 * KIB ? memory : 256 * KIB,
		.parallel_threads = 4,
	};
	if (milliseconds < BRIEF) {
		pbkdf->iterations = 4;
		pbkdf->max_memory_kb = 256 * milliseconds;
		pbkdf->parallel_threads = 1;
		pbkdf->flags = CRYPT_PBKDF_NO_BENCHMARK;
	}
}

/**
 * pbkdf_random() - the same for a secret of 128 random bits or more
 * @pbkdf: filled in
 *
 * Nobody can guess such a secret, so it needs neither time nor memory, and opens the
 * volume where Argon2 cannot run.
 */
void pbkdf_random(struct crypt_pbkdf_type *pbkdf)
{
	*pbkdf = (struct crypt_pbkdf_type){
		.type = CRYPT_KDF_PBKDF2,
		.hash = "sha256",
		.iterations = 1000,
		.flags = CRYPT_PBKDF_NO_BENCHMARK,
	};
}
