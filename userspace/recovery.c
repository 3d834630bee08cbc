// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Recovery keys in headers: made, proved, shown once.
 *
 * A key is shown only after it has really opened the volume; until the user has read it
 * back the caller keeps what opened the volume before.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "error.h"
#include "recovery.h"
#include "recovery_key.h"
#include "ui.h"

/**
 * recovery_add() - add a recovery key to a header
 * @header: the header
 * @volume_key: the volume key
 * @name: of the new secret
 * @key: the recovery key
 * @slot: its keyslot
 *
 * Return: 0, or what failed; the keyslot is gone again then.
 */
int recovery_add(struct header *header, const struct secret *volume_key, const char *name,
		 struct secret **key, int *slot)
{
	struct crypt_pbkdf_type pbkdf;
	int ret;

	ret = recovery_key_new(key);
	if (ret)
		return ret;
	pbkdf_random(&pbkdf);
	ret = keyslot_add(header, volume_key, *key, &pbkdf, name, "recovery", slot);
	if (ret) {
		secret_free(*key);
		*key = NULL;
	}
	return ret;
}

/**
 * recovery_show() - show a recovery key and have it read back
 * @key: the key
 * @volume: what it opens, in words
 *
 * Without a terminal it is printed once, or put into the JSON object.
 *
 * Return: 0; E_REFUSED when the user did not type it.
 */
int recovery_show(const struct secret *key, const char *volume)
{
	struct secret *typed, *parsed;
	bool same;
	int ret;

	if (ui_json()) {
		struct json_object *text = json_object_new_string_len(key->data, key->len);

		json_object_object_add(ui_result(), "recovery_key", text);
		return 0;
	}
	if (!secret_interactive()) {
		fflush(stdout);
		if (dprintf(STDOUT_FILENO, "Recovery key: %.*s\n", (int)key->len, key->data) < 0)
			return fail(E_IO, NULL, "cannot show the recovery key: %s", strerror(errno));
		return 0;
	}
	fflush(stdout);
	dprintf(STDERR_FILENO, "\nRecovery key of %s:\n\n    %.*s\n\n"
		"It opens the volume when the passphrase is lost. Write it down and keep it away\n"
		"from this machine: it is not shown again.\n\n", volume, (int)key->len, key->data);
	for (int i = 0; i < 3; i++) {
		ret = secret_ask(&typed, "Type it, to be sure that you have it");
		if (ret)
			return ret;
		parsed = recovery_key_parse(typed);
		same = parsed && secret_equal(parsed, key);
		secret_free(parsed);
		secret_free(typed);
		if (same)
			return 0;
		dprintf(STDERR_FILENO, "That is not it.\n");
	}
	return fail(E_REFUSED, NULL, "the recovery key was not confirmed");
}
