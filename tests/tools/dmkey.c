// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Give keys to device-mapper and keep none. The guest's part of tests/vm/ram-scan:
 *
 *   dmkey map NAME TARGET DEVICE SECTORS SEED hex|logon
 *   dmkey set NAME SEED hex|logon		the message "key set"
 *   dmkey keep SEED				leave the key in the user's keyring
 *   dmkey drop SEED				and take it out again
 *   dmkey flags PFN...			what /proc/kpageflags says of pages
 *
 * dmsetup, a shell and a command line all leave copies of a key in memory that the
 * kernel never hears of. Here a key is made from SEED in one locked page, goes to the
 * kernel from there (DM_SECURE_DATA_FLAG, as cryptsetup does), and the page is wiped
 * before the program ends. With logon the key is in the keyring only for the call.
 *
 * Build with -mgeneral-regs-only: the kernel keeps a process's vector registers in
 * memory that it does not wipe.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/dm-ioctl.h>
#include <linux/keyctl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "scan-key.h"

#define DIGITS	"0123456789abcdef"

/* All that ever holds a key, and a character of its text at a time. */
static struct secret {
	union {
		struct dm_ioctl io;
		char bytes[8192];
	};
	volatile uint8_t key[SCAN_KEY_BYTES];
} *secret;

static char *at;	/* where the next character goes in secret->bytes */
static int control = -1;

static void wipe(void)
{
	volatile uint8_t *p = (volatile uint8_t *)secret;
	size_t i;

	for (i = 0; i < sizeof(*secret); i++)
		p[i] = 0;
}

static void __attribute__((noreturn)) die(const char *what)
{
	int err = errno;

	wipe();
	fprintf(stderr, "dmkey: %s: %s\n", what, strerror(err));
	exit(1);
}

static void put(const char *text)
{
	while (*text)
		*at++ = *text++;
}

static void put_number(uint64_t n)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, n);
	put(text);
}

static void put_hex(void)
{
	unsigned int i;

	for (i = 0; i < SCAN_KEY_BYTES; i++) {
		*at++ = DIGITS[secret->key[i] >> 4];
		*at++ = DIGITS[secret->key[i] & 15];
	}
}

static const char *description(uint64_t seed)
{
	static char text[40];

	snprintf(text, sizeof(text), "coffer:scan%" PRIu64, seed);
	return text;
}

static void to_keyring(uint64_t seed)
{
	scan_key(secret->key, seed);
	if (syscall(SYS_add_key, "logon", description(seed), secret->key, SCAN_KEY_BYTES,
		    KEY_SPEC_USER_KEYRING) < 0)
		die("add_key");
	wipe();
}

static void from_keyring(uint64_t seed)
{
	long id = syscall(SYS_keyctl, KEYCTL_SEARCH, KEY_SPEC_USER_KEYRING, "logon",
			  description(seed), 0);

	if (id < 0 || syscall(SYS_keyctl, KEYCTL_UNLINK, id, KEY_SPEC_USER_KEYRING) < 0)
		die("no key to take out of the keyring");
}

static void put_key(uint64_t seed, bool logon)
{
	if (logon) {
		put(":64:logon:");
		put(description(seed));
	} else {
		scan_key(secret->key, seed);
		put_hex();
	}
}

static void begin(const char *name, size_t extra)
{
	struct dm_ioctl *io = &secret->io;

	wipe();
	io->version[0] = DM_VERSION_MAJOR;
	io->data_size = sizeof(secret->bytes);
	io->data_start = sizeof(*io);
	io->flags = DM_SECURE_DATA_FLAG;
	snprintf(io->name, sizeof(io->name), "%s", name);
	at = secret->bytes + sizeof(*io) + extra;
}

static int call(unsigned long cmd)
{
	int ret = ioctl(control, cmd, &secret->io), err = errno;

	wipe();
	errno = err;
	return ret;
}

static void map(char **argv)
{
	uint64_t sectors = strtoull(argv[3], NULL, 0), seed = strtoull(argv[4], NULL, 0);
	struct dm_target_spec *spec = (void *)(secret->bytes + sizeof(struct dm_ioctl));
	bool logon = !strcmp(argv[5], "logon");
	struct stat st;
	int ret, err;

	if (stat(argv[2], &st) || !S_ISBLK(st.st_mode))
		die(argv[2]);
	begin(argv[0], 0);
	if (call(DM_DEV_CREATE))
		die("create");
	if (logon)
		to_keyring(seed);
	begin(argv[0], sizeof(*spec));
	put("aes-xts-plain64 ");
	put_key(seed, logon);
	put(" 0 ");
	put_number(major(st.st_rdev));
	put(":");
	put_number(minor(st.st_rdev));
	put(" 0 1 sector_size:4096");
	spec->length = sectors;
	spec->next = (uint32_t)(at - (char *)spec + 8) & ~7u;
	snprintf(spec->target_type, sizeof(spec->target_type), "%s", argv[1]);
	secret->io.target_count = 1;
	ret = call(DM_TABLE_LOAD);
	err = errno;
	if (logon)
		from_keyring(seed);
	errno = err;
	if (ret)
		die("load");
	begin(argv[0], 0);
	if (call(DM_DEV_SUSPEND))
		die("resume");
}

static void set(char **argv)
{
	uint64_t seed = strtoull(argv[1], NULL, 0);
	bool logon = !strcmp(argv[2], "logon");
	int ret, err;

	if (logon)
		to_keyring(seed);
	/* sector 0, then the text */
	begin(argv[0], sizeof(struct dm_target_msg));
	put("key set ");
	put_key(seed, logon);
	ret = call(DM_TARGET_MSG);
	err = errno;
	if (logon)
		from_keyring(seed);
	errno = err;
	if (ret)
		die("key set");
}

static void flags(char **argv)
{
	int flags_fd = open("/proc/kpageflags", O_RDONLY | O_CLOEXEC);
	int count_fd = open("/proc/kpagecount", O_RDONLY | O_CLOEXEC);
	uint64_t word, count;
	static const struct {
		int bit;
		const char *name;
	} names[] = {
		{ 2, "referenced" }, { 4, "dirty" }, { 5, "lru" }, { 7, "slab" },
		{ 10, "free" }, { 11, "mapped" }, { 12, "anonymous" }, { 13, "swapcache" },
		{ 15, "compound-head" }, { 16, "compound-tail" }, { 20, "no-page" },
		{ 26, "page-table" }, { 32, "reserved" }, { 35, "private" },
	};
	unsigned int i;

	for (; *argv; argv++) {
		off_t pos = (off_t)(strtoull(*argv, NULL, 0) * 8);

		if (pread(flags_fd, &word, 8, pos) != 8 || pread(count_fd, &count, 8, pos) != 8)
			die("/proc/kpageflags");
		printf("%s mapped %" PRIu64 " times", *argv, count);
		for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
			if (word >> names[i].bit & 1)
				printf(" %s", names[i].name);
		printf("\n");
	}
}

int main(int argc, char **argv)
{
	struct rlimit none = { 0, 0 };
	const char *verb = argc > 1 ? argv[1] : "";

	setrlimit(RLIMIT_CORE, &none);
	prctl(PR_SET_DUMPABLE, 0);
	secret = mmap(NULL, sizeof(*secret), PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_LOCKED | MAP_POPULATE, -1, 0);
	if (secret == MAP_FAILED) {
		perror("dmkey: mmap");
		return 1;
	}
	control = open("/dev/mapper/control", O_RDWR | O_CLOEXEC);
	if (control < 0)
		die("/dev/mapper/control");
	if (!strcmp(verb, "map") && argc == 8)
		map(argv + 2);
	else if (!strcmp(verb, "set") && argc == 5)
		set(argv + 2);
	else if (!strcmp(verb, "keep") && argc == 3)
		to_keyring(strtoull(argv[2], NULL, 0));
	else if (!strcmp(verb, "drop") && argc == 3)
		from_keyring(strtoull(argv[2], NULL, 0));
	else if (!strcmp(verb, "flags"))
		flags(argv + 2);
	else {
		fprintf(stderr, "dmkey: see the top of dmkey.c\n");
		return 2;
	}
	wipe();
	return 0;
}
