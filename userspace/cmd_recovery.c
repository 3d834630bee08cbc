// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * coffer recovery: the key on paper.
 *
 * The old key goes when the new one has opened the volume and the user has it, never
 * before. Recovery keys of others (systemd-cryptenroll's) are checked, and never replaced.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include "backup.h"
#include "commands.h"
#include "error.h"
#include "live.h"
#include "manage.h"
#include "recovery.h"
#include "recovery_key.h"
#include "ui.h"

/* A recovery key that we made. */
static bool is_ours(const struct keyslot *k)
{
	return k->token >= 0 && !strcmp(k->kind, "recovery");
}

static int take_back(struct managed *m, int slot)
{
	int ret = keyslot_remove(m->header, slot);

	if (!ret)
		ret = backup_update(m->header);
	if (!ret)
		note("the new recovery key was taken away again; what opened %s before still does",
		     volume_display(&m->volume));
	return ret;
}

/* The new one is in the user's hands: the old ones go. */
static int remove_old(struct managed *m, unsigned int *nr)
{
	int ret = 0;

	for (unsigned int i = 0; i < m->list.nr && !ret; i++) {
		if (!is_ours(&m->list.slots[i]))
			continue;
		ret = keyslot_remove(m->header, m->list.slots[i].slot);
		*nr += !ret;
	}
	return ret;
}

int cmd_recovery_new(const struct args *args)
{
	struct unlock unlock = { .source = args->secret, .no_token = args->no_token };
	struct secret *key = NULL, *recovery = NULL;
	unsigned int old = 0;
	struct managed m;
	int ret, slot;

	ret = manage_begin(args, &m);
	if (!ret)
		ret = manage_may_change(&m, "change the secrets");
	if (ret)
		goto out;
	unlock.what = volume_display(&m.volume);
	ret = header_unlock(m.header, &unlock, &key);
	if (ret)
		goto out;
	signals_hold();
	ret = recovery_add(m.header, key, "recovery", &recovery, &slot);
	if (!ret)
		ret = backup_update(m.header);
	signals_let_go();
	if (ret)
		goto out;
	ret = recovery_show(recovery, unlock.what);
	signals_hold();
	if (ret)
		take_back(&m, slot);
	else
		ret = remove_old(&m, &old);
	if (!ret)
		ret = manage_refresh(&m);
	if (!ret)
		ret = backup_update(m.header);
	signals_let_go();
	if (ret)
		goto out;
	say("It opens %s.%s", unlock.what, old ? " The old recovery key does not any more." : "");
	if (!m.header->luks2)
		note("a LUKS1 header does not say which secret is a recovery key: older ones still open it");
	json_object_object_add(ui_result(), "secret", keyslot_json(keyslot_by_slot(&m.list, slot)));
	put_num(ui_result(), "replaced", old);
out:
	secret_free(recovery);
	secret_free(key);
	manage_end(&m);
	return ret;
}

int cmd_recovery_check(const struct args *args)
{
	struct secret *secret = NULL, *key = NULL, *parsed = NULL;
	struct unlock unlock = { .source = args->secret, .no_token = true, .keep = &secret };
	const struct keyslot *k;
	struct managed m;
	bool any = false;
	int ret;

	ret = manage_begin(args, &m);
	if (ret)
		goto out;
	unlock.what = volume_display(&m.volume);
	for (unsigned int i = 0; i < m.list.nr; i++)
		any |= !strcmp(m.list.slots[i].kind, "recovery");
	if (m.header->luks2 && !any) {
		ret = fail(E_NO_VOLUME, "coffer recovery new makes one", "%s has no recovery key",
			   unlock.what);
		goto out;
	}
	ret = header_unlock(m.header, &unlock, &key);
	if (ret)
		goto out;
	k = keyslot_by_slot(&m.list, unlock.slot);
	parsed = recovery_key_parse(secret);
	if (strcmp(k->kind, "recovery") && !(parsed && !strcmp(k->kind, "unknown"))) {
		ret = fail(E_REFUSED, NULL, "this opens %s, but it is no recovery key: it is %s",
			   unlock.what, k->name);
	} else {
		say("This recovery key opens %s (%s).", unlock.what, k->name);
		json_object_object_add(ui_result(), "secret", keyslot_json(k));
	}
out:
	secret_free(parsed);
	secret_free(secret);
	secret_free(key);
	manage_end(&m);
	return ret;
}

int cmd_recovery_remove(const struct args *args)
{
	const struct keyslot *k = NULL;
	struct strings names = { 0 };
	struct managed m;
	char *text;
	int ret;

	ret = manage_begin(args, &m);
	if (!ret)
		ret = manage_may_change(&m, "change the secrets");
	if (ret)
		goto out;
	for (unsigned int i = 0; i < m.list.nr; i++) {
		if (strcmp(m.list.slots[i].kind, "recovery") ||
		    (args->nr > 1 && strcmp(m.list.slots[i].name, args->words[1])))
			continue;
		k = &m.list.slots[i];
		strings_add(&names, xstrdup(k->name));
	}
	if (!m.header->luks2) {
		ret = fail(E_UNSUPPORTED, "coffer key remove removes any secret by its name",
			   "a LUKS1 header does not say which secret of %s is a recovery key",
			   volume_display(&m.volume));
	} else if (!k) {
		ret = fail(E_NO_VOLUME, "coffer key list shows what it has", "%s has no recovery key%s%s",
			   volume_display(&m.volume), args->nr > 1 ? " called " : "",
			   args->nr > 1 ? args->words[1] : "");
	} else if (names.nr > 1) {
		text = strings_join(&names, ", ");
		ret = fail(E_USAGE, "name one of them behind the volume", "%s has several recovery keys: %s",
			   volume_display(&m.volume), text);
		free(text);
	} else {
		ret = manage_remove(&m, args, k);
	}
	strings_free(&names);
out:
	manage_end(&m);
	return ret;
}
