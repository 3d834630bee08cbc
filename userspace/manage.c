// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The secrets of a volume: adding one, and taking one away.
 *
 * A new secret counts when it has opened the volume; until then nothing else is changed. An
 * old one goes only after one that stays has opened the volume in the same run.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include "backup.h"
#include "convert.h"
#include "error.h"
#include "live.h"
#include "manage.h"
#include "ui.h"

/**
 * manage_begin() - find a volume, open or not, and read its header
 * @args: the command line; the first word is the volume
 * @m: filled in; manage_end() it also after a failure
 *
 * Return: 0, or what failed.
 */
int manage_begin(const struct args *args, struct managed *m)
{
	int ret;

	memset(m, 0, sizeof(*m));
	ret = volume_find(args->words[0], args->header, &m->volume);
	if (ret) {
		m->volume.loop_fd = -1;
		return ret;
	}
	if (m->volume.open && mapping_is_crypt(&m->volume.map))
		ret = live_header(&m->volume, args->header, &m->header);
	else
		ret = header_load(m->volume.device.path, args->header, &m->header);
	return ret ? ret : keyslots_get(m->header, &m->list);
}

void manage_end(struct managed *m)
{
	keyslots_free(&m->list);
	header_free(m->header);
	volume_free(&m->volume);
	memset(m, 0, sizeof(*m));
	m->volume.loop_fd = -1;
}

/* A conversion has secret and header in its own hands: @what has to wait for its end. */
int manage_may_change(const struct managed *m, const char *what)
{
	struct convert_state state;

	convert_get_state(m->header, &state);
	return state.active ? fail(E_BUSY, "coffer status says how far it is",
				   "cannot %s of %s: it is being converted", what,
				   volume_display(&m->volume)) : 0;
}

/* Read the list of keyslots again. */
int manage_refresh(struct managed *m)
{
	keyslots_free(&m->list);
	return keyslots_get(m->header, &m->list);
}

/* "passphrase", or "passphrase-2" where there is one; to be freed. */
char *manage_free_name(const struct keyslots *list, const char *base)
{
	char *name = xstrdup(base);

	for (int n = 2; keyslot_by_name(list, name); n++) {
		free(name);
		name = xasprintf("%s-%d", base, n);
	}
	return name;
}

/* The names of all secrets but one, as text; to be freed. */
char *manage_names(const struct keyslots *list, int but)
{
	struct strings names = { 0 };
	char *text;

	for (unsigned int i = 0; i < list->nr; i++)
		if (list->slots[i].slot != but && strcmp(list->slots[i].kind, "unbound"))
			strings_add(&names, xstrdup(list->slots[i].name));
	text = names.nr ? strings_join(&names, ", ") : xstrdup("none");
	strings_free(&names);
	return text;
}

/* Say which secrets, all but one, open the volume. */
void manage_say_rest(const struct managed *m, int but)
{
	char *rest = manage_names(&m->list, but);

	say("What %sopens %s: %s", but < 0 ? "" : "else ", volume_display(&m->volume), rest);
	free(rest);
}

/**
 * manage_add() - add a secret and prove it
 * @m: the volume
 * @volume_key: its key
 * @secret: the new secret
 * @name: of the secret
 * @kind: "passphrase" or "key-file"
 * @milliseconds: how long unlocking may take
 * @slot: its keyslot
 *
 * Return: 0, or what failed; the header has no new keyslot then.
 */
int manage_add(struct managed *m, const struct secret *volume_key, const struct secret *secret,
	       const char *name, const char *kind, unsigned int milliseconds, int *slot)
{
	struct header *header = m->header;
	struct crypt_pbkdf_type pbkdf;
	int ret;

	pbkdf_passphrase(&pbkdf, milliseconds);
	if (!header->luks2)
		pbkdf = (struct crypt_pbkdf_type){
			.type = CRYPT_KDF_PBKDF2, .hash = "sha256", .time_ms = milliseconds,
		};
	ret = keyslot_add(header, volume_key, secret, &pbkdf, name, kind, slot);
	return ret ? ret : manage_refresh(m);
}

/* Whether a volume can do without a secret; with @force, without any that can be typed. */
static int may_remove(const struct managed *m, const struct keyslot *k, bool force)
{
	const char *what = volume_display(&m->volume);
	unsigned int others = 0, typeable = 0;
	char *rest, *next;
	int ret = 0;

	for (unsigned int i = 0; i < m->list.nr; i++) {
		const struct keyslot *other = &m->list.slots[i];

		if (other->slot == k->slot || !strcmp(other->kind, "unbound"))
			continue;
		others++;
		typeable += keyslot_typeable(other);
	}
	if (!strcmp(k->kind, "unbound"))
		return 0;
	rest = manage_names(&m->list, k->slot);
	if (!others) {
		next = xasprintf("coffer key add gives it another; coffer erase %s makes it unreadable for good",
				 m->header->device);
		ret = fail(E_REFUSED, next, "cannot remove %s: it is the last secret of %s, and nothing would remain",
			   k->name, what);
		free(next);
	} else if (keyslot_typeable(k) && !typeable && !force) {
		ret = fail(E_REFUSED, "--force removes it all the same",
			   "cannot remove %s: it is the last one that a person can type; what remains of %s: %s",
			   k->name, what, rest);
	}
	free(rest);
	return ret;
}

/* Have a secret that stays open the volume. */
static int prove_rest(struct managed *m, const struct args *args, const struct keyslot *k)
{
	char *what = xasprintf("%s (a secret that stays, not %s)", volume_display(&m->volume), k->name);
	struct secret *secret = NULL, *key = NULL, *again = NULL;
	struct unlock unlock = { .source = args->secret, .what = what, .no_token = true,
				 .keep = &secret };
	int ret, opened;

	ret = header_unlock(m->header, &unlock, &key);
	if (!ret && unlock.slot == k->slot) {
		/* the same secret may be in two keyslots */
		ret = E_SECRET;
		for (unsigned int i = 0; i < m->list.nr && ret == E_SECRET; i++) {
			if (m->list.slots[i].slot == k->slot)
				continue;
			ret = header_try(m->header, m->list.slots[i].slot, secret, &again, &opened);
			if (ret)
				error_clear();
		}
		if (ret)
			ret = fail(E_REFUSED, "give one that stays, so that it is known to work",
				   "cannot remove %s: the secret that was given is %s itself", k->name,
				   k->name);
	}
	secret_free(secret);
	secret_free(key);
	secret_free(again);
	free(what);
	return ret;
}

/**
 * manage_remove() - take a secret away
 * @m: the volume; its list is as it was before
 * @args: where a secret that stays comes from, and --force
 * @k: the secret that is to go
 *
 * Return: 0; E_REFUSED with what would remain; or what failed.
 */
int manage_remove(struct managed *m, const struct args *args, const struct keyslot *k)
{
	int ret;

	ret = may_remove(m, k, args->force);
	if (!ret)
		ret = prove_rest(m, args, k);
	if (ret)
		return ret;
	signals_hold();
	ret = keyslot_remove(m->header, k->slot);
	if (!ret)
		ret = backup_update(m->header);
	signals_let_go();
	if (ret)
		return ret;
	say("%s does not open %s any more.", k->name, volume_display(&m->volume));
	manage_say_rest(m, k->slot);
	say("A copy of the header that was made before still opens with it.");
	json_object_object_add(ui_result(), "removed", keyslot_json(k));
	return 0;
}
