// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * coffer key: the secrets of a volume, by name.
 *
 * Each change ends with the automatic copy of the header renewed, so that no copy of ours
 * keeps a secret that was removed.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include "backup.h"
#include "commands.h"
#include "error.h"
#include "live.h"
#include "manage.h"
#include "ui.h"

/* The secret that the user named, or NULL after fail(). */
static const struct keyslot *named(const struct managed *m, const char *name)
{
	const struct keyslot *k = keyslot_by_name(&m->list, name);
	char *rest;

	if (k)
		return k;
	rest = manage_names(&m->list, -1);
	fail(E_NO_VOLUME, NULL, "%s has no secret called %s; it has %s", volume_display(&m->volume),
	     name, rest);
	free(rest);
	return NULL;
}

static int new_secret(const struct args *args, const char *what, struct secret **secret)
{
	char *prompt;
	int ret;

	if (args->new_secret.key_file || args->new_secret.fd >= 0)
		return secret_get(&args->new_secret, secret, "");
	prompt = xasprintf("New passphrase for %s", what);
	ret = secret_ask_new(secret, prompt);
	free(prompt);
	return ret;
}

int cmd_key_list(const struct args *args)
{
	struct json_object *array = json_object_new_array();
	struct managed m;
	int ret;

	json_object_object_add(ui_result(), "secrets", array);
	ret = manage_begin(args, &m);
	for (unsigned int i = 0; !ret && i < m.list.nr; i++) {
		const struct keyslot *k = &m.list.slots[i];
		struct json_object *entry = keyslot_json(k);
		const char *cost = k->memory_kib ? human_size(k->memory_kib * KIB) : "";

		put_str(entry, "pbkdf", k->pbkdf);
		put_num(entry, "memory", k->memory_kib * KIB);
		json_object_array_add(array, entry);
		say("%-20s %-12s keyslot %-3d %s%s%s%s%s", k->name, k->kind, k->slot,
		    k->pbkdf ? k->pbkdf : "", *cost ? " " : "", cost,
		    k->created ? ", since " : "", k->created ? k->created : "");
	}
	if (!ret && !m.list.nr)
		say("%s has no secret: nothing opens it any more.", volume_display(&m.volume));
	if (!ret && !m.header->luks2)
		say("It has a LUKS1 header, which has no room for names.");
	manage_end(&m);
	return ret;
}

int cmd_key_add(const struct args *args)
{
	bool file = args->new_secret.key_file;
	struct secret *key = NULL, *secret = NULL;
	struct unlock unlock = { .source = args->secret, .no_token = args->no_token };
	const struct keyslot *k;
	struct managed m;
	char *name = NULL;
	int ret, slot;

	ret = manage_begin(args, &m);
	if (!ret)
		ret = manage_may_change(&m, "change the secrets");
	if (!ret && args->nr > 1)
		ret = m.header->luks2 ? keyslot_check_name(&m.list, args->words[1]) :
		      fail(E_UNSUPPORTED, "leave the name away",
			   "cannot call a secret of %s %s: a LUKS1 header has no room for names",
			   volume_display(&m.volume), args->words[1]);
	if (ret)
		goto out;
	name = args->nr > 1 ? xstrdup(args->words[1]) :
	       manage_free_name(&m.list, file ? "key file" : "passphrase");
	unlock.what = volume_display(&m.volume);
	ret = header_unlock(m.header, &unlock, &key);
	if (!ret)
		ret = new_secret(args, unlock.what, &secret);
	if (ret)
		goto out;
	signals_hold();
	ret = manage_add(&m, key, secret, name, file ? "key-file" : "passphrase", args->unlock_time,
			 &slot);
	if (!ret)
		ret = backup_update(m.header);
	signals_let_go();
	k = ret ? NULL : keyslot_by_slot(&m.list, slot);
	if (k) {
		say("%s opens %s from now on.", k->name, unlock.what);
		manage_say_rest(&m, slot);
		json_object_object_add(ui_result(), "secret", keyslot_json(k));
	}
out:
	free(name);
	secret_free(secret);
	secret_free(key);
	manage_end(&m);
	return ret;
}

int cmd_key_remove(const struct args *args)
{
	const struct keyslot *k;
	struct managed m;
	int ret;

	ret = manage_begin(args, &m);
	if (!ret)
		ret = manage_may_change(&m, "change the secrets");
	if (!ret) {
		k = named(&m, args->words[1]);
		ret = k ? manage_remove(&m, args, k) : error_code();
	}
	manage_end(&m);
	return ret;
}

/* The secret in keyslot @old becomes another one, in another keyslot. */
static int change(struct managed *m, const struct args *args, const struct keyslot *old,
		  const struct secret *key, const struct secret *secret)
{
	bool file = args->new_secret.key_file, nameless = old->token < 0;
	crypt_keyslot_priority priority = crypt_keyslot_get_priority(m->header->cd, old->slot);
	char *name = nameless ? manage_free_name(&m->list, file ? "key file" : "passphrase") :
		     xstrdup(old->name);
	int gone = old->slot, slot, ret;

	signals_hold();
	/* the new one first: it has opened the volume before the old one goes */
	ret = manage_add(m, key, secret, name, file ? "key-file" : "passphrase", args->unlock_time,
			 &slot);
	if (!ret && m->header->luks2 && priority != CRYPT_SLOT_PRIORITY_NORMAL)
		crypt_keyslot_set_priority(m->header->cd, slot, priority);
	if (!ret)
		ret = keyslot_remove(m->header, gone);
	if (!ret)
		ret = manage_refresh(m);
	if (!ret)
		ret = backup_update(m->header);
	signals_let_go();
	if (!ret) {
		say("%s of %s is changed.", keyslot_by_slot(&m->list, slot)->name,
		    volume_display(&m->volume));
		manage_say_rest(m, slot);
		say("A copy of the header that was made before still opens with the old one.");
		json_object_object_add(ui_result(), "secret",
				       keyslot_json(keyslot_by_slot(&m->list, slot)));
	}
	free(name);
	return ret;
}

int cmd_key_change(const struct args *args)
{
	struct unlock unlock = { .source = args->secret, .no_token = true };
	struct secret *key = NULL, *secret = NULL;
	const struct keyslot *k;
	struct managed m;
	int ret;

	ret = manage_begin(args, &m);
	if (!ret)
		ret = manage_may_change(&m, "change the secrets");
	if (!ret && args->nr > 1 && !named(&m, args->words[1]))
		ret = error_code();
	if (ret)
		goto out;
	unlock.what = volume_display(&m.volume);
	unlock.name = args->nr > 1 ? args->words[1] : NULL;
	ret = header_unlock(m.header, &unlock, &key);
	if (ret)
		goto out;
	k = keyslot_by_slot(&m.list, unlock.slot);
	if (!strcmp(k->kind, "recovery"))
		ret = fail(E_REFUSED, "coffer recovery new makes a fresh one",
			   "cannot change %s: it is a recovery key", k->name);
	else if (strcmp(k->kind, "passphrase") && strcmp(k->kind, "key-file") &&
		 strcmp(k->kind, "unknown"))
		ret = fail(E_REFUSED, "systemd-cryptenroll and clevis manage theirs",
			   "cannot change %s: its kind is %s", k->name, k->kind);
	if (!ret)
		ret = new_secret(args, unlock.what, &secret);
	if (!ret)
		ret = change(&m, args, k, key, secret);
out:
	secret_free(secret);
	secret_free(key);
	manage_end(&m);
	return ret;
}

int cmd_key_test(const struct args *args)
{
	struct unlock unlock = { .source = args->secret, .no_token = true };
	const struct keyslot *k;
	struct secret *key = NULL;
	struct managed m;
	int ret;

	ret = manage_begin(args, &m);
	if (!ret && args->nr > 1 && !named(&m, args->words[1]))
		ret = error_code();
	if (ret)
		goto out;
	unlock.what = volume_display(&m.volume);
	unlock.name = args->nr > 1 ? args->words[1] : NULL;
	ret = header_unlock(m.header, &unlock, &key);
	if (ret)
		goto out;
	k = keyslot_by_slot(&m.list, unlock.slot);
	say("It opens %s: this is %s.", unlock.what, k->name);
	json_object_object_add(ui_result(), "secret", keyslot_json(k));
out:
	secret_free(key);
	manage_end(&m);
	return ret;
}
