// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The command coffer: its verbs, and from the command line to an exit code.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "commands.h"
#include "error.h"
#include "options.h"
#include "ui.h"
#include "util.h"

#define VERSION "0.1"
#define SECRET "key-file passphrase-fd"
#define NEW_SECRET " new-key-file new-passphrase-fd unlock-time"

const struct verb verbs[] = {
	{ "status", "[VOLUME...]", 0, -1, false, cmd_status, "header",
	  "what is encrypted, how, what needs care" },
	{ "format", "DEVICE", 1, 1, true, cmd_format,
	  SECRET " yes name label header trim data-unit unlock-time no-recovery",
	  "make an empty volume; erases DEVICE" },
	{ "open", "DEVICE [NAME]", 1, 2, true, cmd_open,
	  SECRET " name header read-only trim no-token driver",
	  "unlock a volume as /dev/mapper/NAME" },
	{ "close", "VOLUME...", 1, -1, true, cmd_close, "all deferred",
	  "close a volume" },
	{ "enable", "DEVICE", 1, 1, true, cmd_enable,
	  SECRET " yes name label trim data-unit unlock-time no-recovery max-rate driver",
	  "encrypt a disk that holds data, where it is" },
	{ "disable", "DEVICE", 1, 1, true, cmd_disable, SECRET " yes max-rate",
	  "decrypt a disk where it is" },
	{ "pause", "VOLUME", 1, 1, true, cmd_pause, "",
	  "have a running conversion wait" },
	{ "resume", "VOLUME", 1, 1, true, cmd_resume, SECRET " max-rate driver",
	  "go on with a conversion" },
	{ "key list", "VOLUME", 1, 1, true, cmd_key_list, "header", "the secrets that open a volume" },
	{ "key add", "VOLUME [NAME]", 1, 2, true, cmd_key_add, SECRET NEW_SECRET " header no-token",
	  "add a passphrase or key file, proved at once" },
	{ "key remove", "VOLUME NAME", 2, 2, true, cmd_key_remove, SECRET " header force",
	  "remove a secret; needs one that stays" },
	{ "key change", "VOLUME [NAME]", 1, 2, true, cmd_key_change, SECRET NEW_SECRET " header",
	  "another passphrase or key file for a secret" },
	{ "key test", "VOLUME [NAME]", 1, 2, true, cmd_key_test, SECRET " header",
	  "which secret this is; changes nothing" },
	{ "recovery new", "VOLUME", 1, 1, true, cmd_recovery_new, SECRET " header no-token",
	  "make a recovery key; it replaces the old one" },
	{ "recovery check", "VOLUME", 1, 1, true, cmd_recovery_check, SECRET " header",
	  "does the recovery key on my paper still open it" },
	{ "recovery remove", "VOLUME [NAME]", 1, 2, true, cmd_recovery_remove, SECRET " header force",
	  "remove the recovery key; another secret stays" },
	{ "backup", "VOLUME [FILE]", 1, 2, true, cmd_backup, "header",
	  "copy the header to FILE, or renew the automatic copy" },
	{ "repair", "VOLUME", 1, 1, true, cmd_repair, "yes header from",
	  "mend a damaged header from a copy" },
	{ "erase", "VOLUME", 1, 1, true, cmd_erase, "yes header",
	  "destroy header and secrets: nothing opens it again" },
	{ "resize", "VOLUME", 1, 1, true, cmd_resize, SECRET " name header size force no-token",
	  "make an open volume as large as its device" },
	{ "lock", "VOLUME...", 1, -1, true, cmd_lock, "all header no-freeze",
	  "wipe an open volume's key from memory; I/O waits" },
	{ "unlock", "VOLUME", 1, 1, true, cmd_unlock, SECRET " name header no-token",
	  "bring the key of a locked volume back; I/O goes on" },
	{ "adopt", "VOLUME...", 1, -1, true, cmd_adopt, SECRET " all name header no-token",
	  "move an open volume from dm-crypt to dm-coffer, in use" },
	{ "release", "VOLUME...", 1, -1, true, cmd_release, SECRET " all name header no-token",
	  "move it back to dm-crypt" },
	{ "image create", "FILE", 1, 1, true, cmd_image_create,
	  SECRET " size name label header trim data-unit unlock-time no-recovery",
	  "make an encrypted volume in a file" },
	{ "image resize", "FILE", 1, 1, true, cmd_image_resize,
	  SECRET " size name header no-token",
	  "make an image larger, open or not" },
	{ "takeover on", "", 0, 0, true, cmd_takeover_on, "force",
	  "have dm-coffer stand in for dm-crypt, at boot too" },
	{ "takeover off", "", 0, 0, true, cmd_takeover_off, "", "let dm-crypt be dm-crypt again" },
	{ "takeover status", "", 0, 0, true, cmd_takeover_status, "",
	  "which of them answers, and what stands in the way" },
	{ "bench", "", 0, 0, true, cmd_bench, "",
	  "measure dm-coffer and dm-crypt on a disk in memory" },
	{ "doctor", "", 0, 0, true, cmd_doctor, "",
	  "what is right here, what is not, and the next boot" },
};

const unsigned int nr_verbs = ARRAY_SIZE(verbs);

static int run(int argc, char **argv)
{
	const struct verb *verb = options_verb(&argc, &argv);
	struct args args = { 0 };
	int ret;

	if (!verb) {
		ui_init("coffer", false, false);
		return error_code();
	}
	ret = options_parse(verb, argc, argv, &args);
	if (ret < 0) {
		free(args.words);
		return options_help(verb);
	}
	ui_init(verb->name, args.json, args.quiet);
	if (!ret && verb->root && geteuid())
		ret = fail(E_NOT_ROOT, "run it with sudo", "coffer %s needs root", verb->name);
	if (!ret)
		ret = verb->run(&args);
	ui_finish(ret);
	free(args.words);
	return ret;
}

int main(int argc, char **argv)
{
	int ret;

	secret_init_process();
	umask(077);
	if (argc == 2 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") ||
			  !strcmp(argv[1], "help")))
		return options_help(NULL);
	if (argc == 2 && !strcmp(argv[1], "--version")) {
		puts("coffer " VERSION);
		return 0;
	}
	if (argc == 2 && !strcmp(argv[1], "--list-options")) {
		options_list();
		return 0;
	}
	ret = run(argc, argv);
	error_report();
	if (fflush(stdout))
		return E_FAILED;
	return ret;
}
