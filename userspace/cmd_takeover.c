// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * coffer takeover on, off, status: whether dm-coffer stands in for dm-crypt.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "commands.h"
#include "crypttab.h"
#include "driver.h"
#include "error.h"
#include "takeover.h"
#include "ui.h"

static void put_list(const char *key, const struct strings *list)
{
	struct json_object *array = json_object_new_array();

	for (unsigned int i = 0; i < list->nr; i++)
		json_object_array_add(array, json_object_new_string(list->s[i]));
	json_object_object_add(ui_result(), key, array);
}

/* The boot has a copy of modprobe's files; which program makes it, if any. */
static const char *initramfs_program(void)
{
	static const char *const programs[][2] = {
		{ "/usr/sbin/update-initramfs", "update-initramfs -u -k all" },
		{ "/usr/bin/dracut", "dracut --regenerate-all --force" },
		{ "/usr/bin/mkinitcpio", "mkinitcpio -P" },
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(programs); i++)
		if (!access(programs[i][0], X_OK))
			return programs[i][1];
	return NULL;
}

static void advise(void)
{
	const char *program = initramfs_program();

	put_str(ui_result(), "next", program);
	if (program)
		say("For volumes that the initramfs opens, such as the system's own: %s", program);
}

/* In force now, if nobody holds the modules; else from the next boot on. */
static void apply(bool on)
{
	struct drivers d;

	drivers_get(&d);
	if (on && !d.takeover) {
		if (d.dm_crypt_loaded && !d.dm_crypt_used && !d.dm_crypt_builtin)
			module_unload("dm_crypt");
		if (d.coffer_loaded)
			module_unload("dm_coffer");
		module_load("dm-coffer", "takeover=1", NULL);
	} else if (!on && d.takeover) {
		/* refused by the kernel while a mapping uses it */
		module_unload("dm_coffer");
	}
	drivers_get(&d);
	put_bool(ui_result(), "in_force", d.takeover);
	if (d.takeover == on)
		say(on ? "dm-coffer answers to \"crypt\" from now on." :
		    "dm-crypt answers to \"crypt\" again from now on.");
	else
		say(on ? "dm-crypt is in use; dm-coffer answers to \"crypt\" from the next boot on." :
		    "dm-coffer is in use; dm-crypt answers to \"crypt\" again from the next boot on.");
}

int cmd_takeover_on(const struct args *args)
{
	struct takeover_check check;
	struct drivers d;
	char *list;
	int ret;

	module_load("dm-mod", NULL, NULL);
	drivers_get(&d);
	if (!d.coffer_loadable)
		return fail(E_MODULE, "coffer doctor says more",
			    "cannot take over: there is no module dm-coffer for this kernel");
	if (d.dm_crypt_builtin)
		return fail(E_MODULE, "coffer adopt moves open volumes all the same",
			    "cannot take over: dm-crypt is built into this kernel");
	ret = takeover_check(&check);
	if (ret)
		return ret;
	put_list("unfit", &check.unfit);
	put_list("unknown", &check.unknown);
	if (check.unfit.nr && !args->force) {
		list = strings_join(&check.unfit, "; ");
		ret = fail(E_REFUSED, "without takeover, coffer open and coffer adopt use dm-coffer all the same",
			   "cannot take over, dm-coffer could not open: %s", list);
		free(list);
	}
	for (unsigned int i = 0; !ret && i < check.unfit.nr; i++)
		note("dm-coffer cannot open %s", check.unfit.s[i]);
	for (unsigned int i = 0; !ret && i < check.unknown.nr; i++)
		note("not checked: %s", check.unknown.s[i]);
	takeover_check_free(&check);
	if (!ret)
		ret = takeover_write();
	if (ret)
		return ret;
	put_bool(ui_result(), "configured", true);
	say(TAKEOVER_CONF " is written.");
	apply(true);
	advise();
	return 0;
}

int cmd_takeover_off(const struct args *args)
{
	bool was = takeover_configured();
	int ret = takeover_remove();

	(void)args;
	if (ret)
		return ret;
	put_bool(ui_result(), "configured", false);
	say(was ? TAKEOVER_CONF " is gone." : "Takeover was not configured.");
	apply(false);
	if (was)
		advise();
	return 0;
}

int cmd_takeover_status(const struct args *args)
{
	struct takeover_check check;
	struct drivers d;
	int ret;

	(void)args;
	drivers_get(&d);
	ret = takeover_check(&check);
	if (ret)
		return ret;
	put_bool(ui_result(), "configured", takeover_configured());
	put_bool(ui_result(), "in_force", d.takeover);
	put_str(ui_result(), "crypt", !d.crypt_target ? NULL : d.takeover ? "coffer" : "dm-crypt");
	put_list("unfit", &check.unfit);
	put_list("unknown", &check.unknown);
	say("Takeover is %s, and %s.", takeover_configured() ? "on" : "off",
	    d.takeover ? "dm-coffer answers to \"crypt\"" :
	    d.crypt_target ? "dm-crypt answers to \"crypt\"" : "no module answers to \"crypt\" yet");
	for (unsigned int i = 0; i < check.unfit.nr; i++)
		say("! dm-coffer cannot open %s", check.unfit.s[i]);
	for (unsigned int i = 0; i < check.unknown.nr; i++)
		say("? not checked: %s", check.unknown.s[i]);
	if (!check.unfit.nr)
		say("Everything that is open or in " CRYPTTAB " could be opened by dm-coffer%s.",
		    check.unknown.nr ? ", as far as can be told" : "");
	takeover_check_free(&check);
	return 0;
}
