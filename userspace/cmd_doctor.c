// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * coffer doctor: what is right on this machine, what is not, and what would go wrong at
 * the next boot. Changes nothing.
 *
 * A failure is what keeps a volume from opening; a warning costs speed or is not as it was
 * asked for. A machine whose boot falls back to dm-crypt works: that is a warning.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>
#include "commands.h"
#include "crypttab.h"
#include "driver.h"
#include "error.h"
#include "mapping.h"
#include "takeover.h"
#include "ui.h"
#include "volume.h"

enum verdict { GOOD, WARNING, FAILURE };

static unsigned int counts[3];

/* One finding; @fix is what to do about it, or NULL. */
static void finding(enum verdict verdict, const char *topic, const char *fix, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

static void finding(enum verdict verdict, const char *topic, const char *fix, const char *fmt, ...)
{
	static const char *const words[] = { "ok", "warning", "failure" };
	struct json_object *list, *entry = json_object_new_object();
	va_list ap;
	char *text;

	va_start(ap, fmt);
	text = xvasprintf(fmt, ap);
	va_end(ap);
	counts[verdict]++;
	say("%-8s %s: %s", words[verdict], topic, text);
	if (fix)
		say("         %s", fix);
	if (!json_object_object_get_ex(ui_result(), "findings", &list)) {
		list = json_object_new_array();
		json_object_object_add(ui_result(), "findings", list);
	}
	put_str(entry, "verdict", words[verdict]);
	put_str(entry, "topic", topic);
	put_str(entry, "text", text);
	put_str(entry, "fix", fix);
	json_object_array_add(list, entry);
	free(text);
}

/* The first line that a program prints, to be freed; NULL if it fails or prints nothing. */
static char *first_line(char *const argv[])
{
	char *output = NULL;
	bool ok = !run_program(argv, &output) && *output && *output != '\n';

	if (!ok) {
		free(output);
		return NULL;
	}
	output[strcspn(output, "\n")] = 0;
	return output;
}

static char *module_field(const char *release, const char *field)
{
	char *argv[] = { "modinfo", "-k", (char *)release, "-F", (char *)field, "dm-coffer", NULL };

	return first_line(argv);
}

/* ---- processor and cipher ------------------------------------------------------------------ */

static bool has_word(const char *text, const char *word)
{
	size_t len = strlen(word);

	for (const char *p = text; (p = strstr(p, word)); p += len)
		if ((p == text || strchr(" \t\n:", p[-1])) && strchr(" \t\n", p[len]))
			return true;
	return false;
}

static bool slow_driver(const char *driver)
{
	return strstr(driver, "generic") || strstr(driver, "-lib");
}

static bool check_processor(const struct utsname *os)
{
	static const char *const words[] = { "aes", "vaes", "avx2", "avx512vl", "vpclmulqdq" };
	char *text = read_text("/proc/cpuinfo");
	char *flags = text ? strstr(text, "flags\t") : NULL, *found;
	struct strings list = { 0 };
	bool aes;

	if (text && !flags)
		flags = strstr(text, "Features\t");
	if (flags)
		flags[strcspn(flags, "\n")] = 0;
	for (unsigned int i = 0; flags && i < ARRAY_SIZE(words); i++)
		if (has_word(flags, words[i]))
			strings_add(&list, xstrdup(words[i]));
	found = strings_join(&list, " ");
	aes = strings_has(&list, "aes");
	if (aes)
		finding(GOOD, "processor", NULL, "%s with instructions for AES (%s)", os->machine, found);
	else
		finding(WARNING, "processor", "each byte costs about ten times as much; a faster one is the only cure",
			"%s without instructions for AES", os->machine);
	put_bool(ui_result(), "aes_instructions", aes);
	free(found);
	strings_free(&list);
	free(text);
	return aes;
}

/* What carries xts(aes) in the kernel with the highest priority; it changes with need. */
static void check_cipher(bool aes)
{
	char *argv[] = { "modprobe", "-n", "-q", "crypto-aes", NULL };
	char *text = read_text("/proc/crypto"), *save, *block, *best = NULL;
	int highest = -1;

	/* blocks are parted by an empty line: mark them for strtok */
	for (char *p = text; p && (p = strstr(p, "\n\n")); p++)
		p[1] = '\1';
	for (block = text ? strtok_r(text, "\1", &save) : NULL; block;
	     block = strtok_r(NULL, "\1", &save)) {
		char driver[128] = "", *at;
		int priority = -1;

		if (!strstr(block, ": xts(aes)\n") && !strstr(block, ": __xts(aes)\n"))
			continue;
		at = strstr(block, "driver ");
		if (at)
			sscanf(at, "driver : %127s", driver);
		at = strstr(block, "priority ");
		if (at)
			sscanf(at, "priority : %d", &priority);
		if (priority > highest && *driver) {
			highest = priority;
			free(best);
			best = xstrdup(driver);
		}
	}
	if (!best || (slow_driver(best) && aes && !run_program(argv, NULL)))
		finding(GOOD, "cipher", NULL, "nobody needs AES-XTS now; its driver is loaded when somebody does");
	else if (slow_driver(best))
		finding(WARNING, "cipher", aes ? "this kernel has no driver for the processor's instructions" : NULL,
			"AES-XTS is done by %s, which is slow", best);
	else
		finding(GOOD, "cipher", NULL, "AES-XTS is done by %s", best);
	put_str(ui_result(), "cipher_driver", best);
	free(best);
	free(text);
}

/* ---- the module -------------------------------------------------------------------------------- */

static bool secure_boot(void)
{
	static const char path[] = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c";
	unsigned char data[5] = { 0 };
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool on = fd >= 0 && read(fd, data, sizeof(data)) == sizeof(data) && data[4] == 1;

	if (fd >= 0)
		close(fd);
	return on;
}

/* Whether the kernel refuses modules without a signature that it trusts */
static bool signature_needed(void)
{
	char *enforce = read_text("/sys/module/module/parameters/sig_enforce");
	char *lockdown = read_text("/sys/kernel/security/lockdown");
	bool needed = (enforce && *enforce == 'Y') || (lockdown && !strstr(lockdown, "[none]"));

	free(enforce);
	free(lockdown);
	return needed || secure_boot();
}

static void check_signature(const char *release)
{
	char *signer = module_field(release, "signer"), *keys;
	bool needed = signature_needed();

	put_bool(ui_result(), "signature_needed", needed);
	put_str(ui_result(), "signer", signer);
	if (!needed) {
		finding(GOOD, "signature", NULL, "the module is %s%s, and this kernel does not ask for it",
			signer ? "signed by " : "not signed", signer ? signer : "");
	} else if (!signer) {
		finding(WARNING, "signature", "sign it with a key that is enrolled (mokutil --import); dm-crypt is used till then",
			"the module is not signed, and this kernel (Secure Boot) refuses it");
	} else {
		keys = read_text("/proc/keys");
		if (keys && strstr(keys, signer))
			finding(GOOD, "signature", NULL, "the module is signed by %s, whom the kernel trusts",
				signer);
		else
			finding(WARNING, "signature", "mokutil --import enrols a key; dm-crypt is used till then",
				"the module is signed by %s, and the kernel does not know that key", signer);
		free(keys);
	}
	free(signer);
}

static void check_module(const struct utsname *os, const struct drivers *d)
{
	char *file = module_field(os->release, "filename");
	char *source = module_field(os->release, "srcversion");
	char *loaded = read_text("/sys/module/dm_coffer/srcversion");

	put_bool(ui_result(), "module_loaded", d->coffer_loaded);
	put_str(ui_result(), "module_file", file);
	if (d->coffer_loaded)
		finding(GOOD, "module", NULL, "dm-coffer is loaded, target version %u.%u.%u",
			d->coffer_version[0], d->coffer_version[1], d->coffer_version[2]);
	if (!file)
		finding(WARNING, "module", "make install builds and installs it; dm-crypt is used till then",
			"dm-coffer is not installed for the kernel that runs, %s", os->release);
	else if (!d->coffer_loaded)
		finding(GOOD, "module", NULL, "dm-coffer is installed, and loaded when it is needed");
	if (loaded && source && strcmp(loaded, source))
		finding(WARNING, "module", "it is used after the next boot",
			"the module that is loaded is not the one that is installed");
	if (file)
		check_signature(os->release);
	free(file);
	free(source);
	free(loaded);
}

static void check_versions(const struct utsname *os)
{
	char *argv[] = { "cryptsetup", "--version", NULL };
	char *cryptsetup = first_line(argv);

	finding(GOOD, "versions", NULL, "kernel %s, %s", os->release,
		cryptsetup ? cryptsetup : "no cryptsetup beside libcryptsetup");
	put_str(ui_result(), "kernel", os->release);
	put_str(ui_result(), "cryptsetup", cryptsetup);
	free(cryptsetup);
}

/* ---- the next boot ------------------------------------------------------------------------------- */

/* Kernels that could be booted: what /boot has a vmlinuz of */
static void installed_kernels(struct strings *list)
{
	DIR *dir = opendir("/boot");
	struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (starts_with(entry->d_name, "vmlinuz-"))
			strings_add(list, xstrdup(entry->d_name + strlen("vmlinuz-")));
	if (dir)
		closedir(dir);
}

/* What is in an initramfs, a name a line; NULL if nobody can tell. */
static char *initramfs_list(const char *image)
{
	char *lists[][3] = {
		{ "lsinitramfs", (char *)image, NULL },
		{ "lsinitrd", (char *)image, NULL },
	};
	char *output = NULL;

	for (unsigned int i = 0; i < ARRAY_SIZE(lists); i++) {
		if (!run_program(lists[i], &output))
			return output;
		free(output);
	}
	return NULL;
}

static void check_initramfs(const char *release, bool configured)
{
	char *image = xasprintf("/boot/initrd.img-%s", release), *list;
	struct stat boot, conf;

	if (stat(image, &boot)) {
		free(image);
		return;
	}
	list = initramfs_list(image);
	if (!list)
		finding(WARNING, "initramfs", "install initramfs-tools-core or dracut-core",
			"what is in %s cannot be told", image);
	else if (!configured)
		finding(GOOD, "initramfs", NULL, "%s %s dm-coffer", image,
			strstr(list, "dm-coffer.ko") ? "has" : "has no");
	else if (!strstr(list, "dm-coffer.ko"))
		finding(WARNING, "initramfs", "update-initramfs -u -k all; dm-crypt is used till then",
			"takeover is on, but %s has no dm-coffer", image);
	else if (!strstr(list, "modprobe.d/coffer.conf") ||
		 (!stat(TAKEOVER_CONF, &conf) && conf.st_mtime > boot.st_mtime))
		finding(WARNING, "initramfs", "update-initramfs -u -k all",
			"%s is older than " TAKEOVER_CONF, image);
	else
		finding(GOOD, "initramfs", NULL, "%s has dm-coffer and takes over", image);
	free(list);
	free(image);
}

static void check_kernels(const struct utsname *os, bool configured)
{
	struct strings kernels = { 0 };

	installed_kernels(&kernels);
	for (unsigned int i = 0; i < kernels.nr; i++) {
		char *file = module_field(kernels.s[i], "filename");

		if (!file && strcmp(kernels.s[i], os->release))
			finding(WARNING, "next boot", "build it for that kernel; dm-crypt is used till then",
				"kernel %s is installed, and has no dm-coffer", kernels.s[i]);
		check_initramfs(kernels.s[i], configured);
		free(file);
	}
	strings_free(&kernels);
}

static void check_takeover(const struct drivers *d, bool configured)
{
	struct takeover_check check;

	put_bool(ui_result(), "takeover", configured);
	finding(GOOD, "takeover", NULL, "%s; %s answers to \"crypt\"", configured ? "on" : "off",
		!d->crypt_target ? "no module yet" : d->takeover ? "dm-coffer" : "dm-crypt");
	if (takeover_check(&check)) {
		error_clear();
		return;
	}
	for (unsigned int i = 0; i < check.unfit.nr; i++)
		finding(configured ? FAILURE : GOOD, "takeover", configured ? "coffer takeover off" : NULL,
			"dm-coffer cannot open %s", check.unfit.s[i]);
	takeover_check_free(&check);
}

static void check_crypttab(void)
{
	struct crypttab table;

	crypttab_read(&table);
	for (unsigned int i = 0; i < table.nr; i++) {
		const struct crypttab_entry *entry = &table.entries[i];
		const char *header = crypttab_option(entry, "header");
		bool optional = crypttab_option(entry, "noauto") || crypttab_option(entry, "nofail");
		struct volume volume;
		struct mapping map;

		if (entry->key && *entry->key == '/' && access(entry->key, R_OK) && !crypttab_option(entry, "keyscript"))
			finding(optional ? WARNING : FAILURE, "crypttab", NULL,
				"the key file of %s is not there: %s", entry->name, entry->key);
		if (header && *header == '/' && access(header, R_OK))
			finding(optional ? WARNING : FAILURE, "crypttab", NULL,
				"the header of %s is not there: %s", entry->name, header);
		if (mapping_find(entry->name, &map)) {
			mapping_free(&map);
			continue;
		}
		if (volume_find(entry->source, NULL, &volume)) {
			finding(optional ? WARNING : FAILURE, "crypttab", NULL, "the device of %s is not there: %s",
				entry->name, entry->source);
			error_clear();
		} else {
			volume_free(&volume);
		}
	}
	if (table.nr)
		finding(GOOD, "crypttab", NULL, "%u %s", table.nr, table.nr == 1 ? "entry" : "entries");
	crypttab_free(&table);
}

/* The first word of our status line is the cipher's driver. */
static bool slow_info(const char *info)
{
	char *word = xasprintf("%.*s", (int)strcspn(info, " "), info);
	bool slow = slow_driver(word);

	free(word);
	return slow;
}

static void check_volumes(bool aes)
{
	struct volume *all;
	unsigned int nr;

	if (volumes_open(&all, &nr)) {
		error_clear();
		finding(FAILURE, "device-mapper", "modprobe dm-mod", "this kernel has none");
		return;
	}
	for (unsigned int i = 0; i < nr; i++) {
		const struct mapping *map = &all[i].map;

		if (mapping_key_wiped(map))
			finding(GOOD, "volume", NULL, "%s is locked", map->name);
		else if (mapping_on_coffer(map) && aes && slow_info(map->info))
			finding(WARNING, "volume", "modprobe -a crypto-aes, then close and open it",
				"%s was opened when there was no fast driver of the cipher", map->name);
		else
			finding(GOOD, "volume", NULL, "%s is on %s%s", map->name,
				mapping_on_coffer(map) ? "dm-coffer" : "dm-crypt",
				mapping_on_coffer(map) ? "" : ": coffer adopt moves it");
		volume_free(&all[i]);
	}
	free(all);
}

int cmd_doctor(const struct args *args)
{
	bool configured = takeover_configured();
	struct utsname os;
	struct drivers d;
	bool aes;

	(void)args;
	uname(&os);
	module_load("dm-mod", NULL, NULL);
	drivers_get(&d);
	check_versions(&os);
	aes = check_processor(&os);
	check_cipher(aes);
	check_module(&os, &d);
	check_takeover(&d, configured);
	check_volumes(aes);
	check_crypttab();
	check_kernels(&os, configured);
	put_num(ui_result(), "warnings", counts[WARNING]);
	put_num(ui_result(), "failures", counts[FAILURE]);
	say("\n%u %s, %u %s.", counts[FAILURE], counts[FAILURE] == 1 ? "failure" : "failures",
	    counts[WARNING], counts[WARNING] == 1 ? "warning" : "warnings");
	if (counts[FAILURE])
		return fail(E_FAILED, NULL, "%u %s would keep a volume from opening",
			    counts[FAILURE], counts[FAILURE] == 1 ? "thing" : "things");
	return 0;
}
