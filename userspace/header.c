// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * LUKS headers: reading one, and getting the volume key out of it.
 *
 * "Wrong secret" is said only when each keyslot that could be tried has been tried and
 * refused it: too little memory, a damaged header or a missing token plugin have errors
 * of their own. libcryptsetup prints nothing; its last complaint becomes the reason.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "device.h"
#include "error.h"
#include "header.h"
#include "recovery_key.h"

static char *last_log;

static void log_line(int level, const char *text, void *arg)
{
	size_t len;

	(void)arg;
	if (level != CRYPT_LOG_ERROR)
		return;
	free(last_log);
	last_log = xstrdup(text);
	len = strlen(last_log);
	while (len && (isspace((unsigned char)last_log[len - 1]) || last_log[len - 1] == '.'))
		last_log[--len] = 0;
}

/* Keep libcryptsetup's words instead of printing them. */
void header_quiet(struct crypt_device *cd)
{
	crypt_set_log_callback(cd, log_line, NULL);
}

/* libcryptsetup's last complaint, or NULL. */
const char *header_log(void)
{
	return last_log;
}

/**
 * header_failed() - fail() for a libcryptsetup call
 * @err: what it returned
 * @fmt: what failed, without the reason
 */
int header_failed(int err, const char *fmt, ...)
{
	char *what, *reason;
	va_list ap;
	int code;

	va_start(ap, fmt);
	what = xvasprintf(fmt, ap);
	va_end(ap);
	reason = xstrdup(last_log ? last_log : strerror(-err));
	switch (-err) {
	case EPERM:
		code = E_SECRET;
		break;
	case EBUSY:
		code = E_BUSY;
		break;
	case ENOMEM:
		code = E_MEMORY;
		break;
	case ENODEV:
	case ENOTBLK:
		code = E_NO_VOLUME;
		break;
	case EEXIST:
		code = E_EXISTS;
		break;
	case EIO:
		code = E_IO;
		break;
	case ENOSPC:
		code = E_TOO_SMALL;
		break;
	case ENOKEY:
		code = E_KEYRING;
		break;
	case EINTR:
		code = E_INTERRUPTED;
		break;
	default:
		code = E_FAILED;
	}
	code = fail(code, NULL, "%s: %s", what, reason);
	free(what);
	free(reason);
	return code;
}

/* Whether one of the places where LUKS2 keeps a header copy starts like one. */
static bool traces_of_luks(const char *path)
{
	static const off_t places[] = {
		0, 0x4000, 0x8000, 0x10000, 0x20000, 0x40000, 0x80000, 0x100000, 0x200000, 0x400000
	};
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool found = false;
	char magic[6];

	for (unsigned int i = 0; fd >= 0 && i < ARRAY_SIZE(places) && !found; i++) {
		if (pread(fd, magic, sizeof(magic), places[i]) != sizeof(magic))
			break;
		found = !memcmp(magic, "LUKS\xba\xbe", 6) || !memcmp(magic, "SKUL\xba\xbe", 6);
	}
	if (fd >= 0)
		close(fd);
	return found;
}

static int not_luks(const char *where)
{
	struct strings found = { 0 };
	char *text;
	int ret;

	if (traces_of_luks(where)) {
		text = xasprintf("coffer repair %s", where);
		ret = fail(E_HEADER, text, "cannot read the header of %s: it is damaged", where);
		free(text);
		return ret;
	}
	if (device_signatures(where, &found)) {
		strings_free(&found);
		return error_code();
	}
	text = found.nr ? strings_join(&found, ", ") : xstrdup("no known format");
	ret = fail(E_UNSUPPORTED, NULL, "%s is not an encrypted volume: it has %s", where, text);
	free(text);
	strings_free(&found);
	return ret;
}

/**
 * header_load() - read the LUKS header of a device
 * @device: where the data is
 * @path: where the header is, NULL if on the device itself
 * @result: to be given to header_free()
 *
 * Return: 0; E_HEADER, E_UNSUPPORTED for something that is not LUKS, or what failed.
 */
int header_load(const char *device, const char *path, struct header **result)
{
	struct header *header = xcalloc(1, sizeof(*header));
	int ret;

	header_quiet(NULL);
	header->device = xstrdup(device);
	header->path = path ? xstrdup(path) : NULL;
	if (access(path ? path : device, R_OK)) {
		ret = errno == EACCES ?
		      fail(E_NOT_ROOT, NULL, "cannot read %s: %s", path ? path : device, strerror(errno)) :
		      fail(E_NO_VOLUME, NULL, "cannot read %s: %s", path ? path : device, strerror(errno));
		goto failed;
	}
	ret = path ? crypt_init_data_device(&header->cd, path, device) :
		     crypt_init(&header->cd, device);
	if (ret) {
		ret = header_failed(ret, "cannot use %s", device);
		goto failed;
	}
	header_quiet(header->cd);
	ret = crypt_load(header->cd, CRYPT_LUKS, NULL);
	if (ret) {
		ret = not_luks(path ? path : device);
		goto failed;
	}
	header->uuid = crypt_get_uuid(header->cd);
	header->luks2 = !strcmp(crypt_get_type(header->cd), CRYPT_LUKS2);
	*result = header;
	return 0;
failed:
	header_free(header);
	return ret;
}

void header_free(struct header *header)
{
	if (!header)
		return;
	if (header->cd)
		crypt_free(header->cd);
	free(header->device);
	free(header->path);
	free(header);
}

/**
 * header_check() - whether we can carry the volume
 * @header: the header
 *
 * Return: 0, or E_UNSUPPORTED with the cipher's name.
 */
int header_check(const struct header *header)
{
	const char *cipher = crypt_get_cipher(header->cd);
	const char *mode = crypt_get_cipher_mode(header->cd);
	int bytes = crypt_get_volume_key_size(header->cd);
	struct crypt_params_integrity integrity = { 0 };
	char *next = xasprintf("cryptsetup open %s NAME", header->device);
	int ret = 0;

	if (!crypt_get_integrity_info(header->cd, &integrity) && integrity.tag_size)
		ret = fail(E_UNSUPPORTED, next, "coffer cannot open %s: it has integrity protection (%s), which is cryptsetup's",
			   header->device, integrity.integrity ? integrity.integrity : "?");
	else if (!cipher || strcmp(cipher, "aes") || !mode || strcmp(mode, "xts-plain64") ||
		 (bytes != 32 && bytes != 64))
		ret = fail(E_UNSUPPORTED, next, "coffer cannot open %s: its cipher is %s-%s with %d-bit keys, which is cryptsetup's",
			   header->device, cipher ? cipher : "?", mode ? mode : "?", bytes * 8);
	free(next);
	return ret;
}

/* ---- unlocking ------------------------------------------------------------------------- */

static uint64_t cgroup_limit(void)
{
	char *text = read_text("/proc/self/cgroup"), *path, *line, *save;
	uint64_t limit = UINT64_MAX, max, used;

	for (line = text ? strtok_r(text, "\n", &save) : NULL; line;
	     line = strtok_r(NULL, "\n", &save)) {
		if (!starts_with(line, "0::"))
			continue;
		path = xstrdup(line + 3);
		for (;;) {
			if (read_number(&max, "/sys/fs/cgroup%s/memory.max", path) &&
			    read_number(&used, "/sys/fs/cgroup%s/memory.current", path)) {
				max = max > used ? max - used : 0;
				if (max < limit)
					limit = max;
			}
			if (!strrchr(path, '/') || !path[1])
				break;
			*strrchr(path, '/') = 0;
		}
		free(path);
	}
	free(text);
	return limit;
}

/**
 * memory_available() - bytes that a key derivation may use now
 *
 * The smaller of what the machine and what the control group has left.
 */
uint64_t memory_available(void)
{
	char *text = read_text("/proc/meminfo"), *line;
	uint64_t available = UINT64_MAX, limit = cgroup_limit();
	unsigned long long kib;

	line = text ? strstr(text, "MemAvailable:") : NULL;
	if (line && sscanf(line, "MemAvailable: %llu", &kib) == 1)
		available = kib * KIB;
	free(text);
	return available < limit ? available : limit;
}

static int try_slot(struct header *header, int slot, const struct secret *secret,
		    struct secret **volume_key)
{
	struct secret *key = secret_new(crypt_get_volume_key_size(header->cd));
	size_t size = key->size;
	int ret;

	ret = crypt_volume_key_get(header->cd, slot, key->data, &size, secret->data, secret->len);
	if (ret < 0) {
		secret_free(key);
		return ret;
	}
	key->len = size;
	*volume_key = key;
	return 0;
}

/**
 * header_try() - try one secret
 * @header: the header
 * @slot: the only keyslot to try, or CRYPT_ANY_SLOT
 * @secret: the secret
 * @volume_key: the result
 * @opened: the keyslot that it opened
 *
 * Return: 0; E_SECRET; E_MEMORY if a keyslot could not be tried and no other opened.
 */
int header_try(struct header *header, int slot, const struct secret *secret,
	       struct secret **volume_key, int *opened)
{
	uint64_t available = memory_available(), needed = 0;
	struct keyslots list;
	int ret, err;

	ret = keyslots_get(header, &list);
	if (ret)
		return ret;
	ret = E_SECRET;
	/* preferred keyslots first, those to be ignored only by name */
	for (int round = 0; round < 2 && ret == E_SECRET; round++) {
		for (unsigned int i = 0; i < list.nr && ret == E_SECRET; i++) {
			const struct keyslot *k = &list.slots[i];

			if (slot != CRYPT_ANY_SLOT ? k->slot != slot || round :
			    k->ignored || k->preferred != !round)
				continue;
			if (!strcmp(k->kind, "unbound"))
				continue;
			if (k->memory_kib * KIB > available) {
				if (k->memory_kib * KIB > needed)
					needed = k->memory_kib * KIB;
				continue;
			}
			err = try_slot(header, k->slot, secret, volume_key);
			if (!err) {
				*opened = k->slot;
				ret = 0;
			} else if (err == -ENOMEM) {
				needed = k->memory_kib * KIB;
			} else if (err != -EPERM && err != -ENOENT) {
				ret = header_failed(err, "cannot try keyslot %d of %s", k->slot,
						    header->device);
			}
		}
	}
	if (ret == E_SECRET && needed)
		ret = fail(E_MEMORY, "free some memory, or use a recovery key, which needs little",
			   "cannot try the secret on %s: a keyslot needs %s, %s available",
			   header->device, human_size(needed), human_size(available));
	else if (ret == E_SECRET)
		ret = fail(E_SECRET, NULL, "cannot unlock %s: wrong secret", header->device);
	keyslots_free(&list);
	return ret;
}

/* TPM2 and the like, without asking anybody. Quiet if there is none. */
static bool try_tokens(struct header *header, struct secret **volume_key)
{
	struct crypt_keyslot_context *context = NULL;
	struct secret *key;
	size_t size;
	int ret;

	if (!header->luks2 || crypt_keyslot_context_init_by_token(header->cd, CRYPT_ANY_TOKEN, NULL,
								   NULL, 0, NULL, &context))
		return false;
	key = secret_new(crypt_get_volume_key_size(header->cd));
	size = key->size;
	ret = crypt_volume_key_get_by_keyslot_context(header->cd, CRYPT_ANY_SLOT, key->data, &size,
						      context);
	crypt_keyslot_context_free(context);
	if (ret < 0) {
		secret_free(key);
		return false;
	}
	key->len = size;
	*volume_key = key;
	return true;
}

static bool has_foreign_token(const struct header *header)
{
	const char *type;
	bool found = false;

	for (int i = 0; header->luks2 && i < crypt_token_max(CRYPT_LUKS2); i++) {
		crypt_token_info info = crypt_token_status(header->cd, i, &type);

		found |= info == CRYPT_TOKEN_EXTERNAL || info == CRYPT_TOKEN_INTERNAL;
	}
	return found;
}

/* A recovery key may be typed in any case and without its dashes; @secret becomes what opened. */
static int try_typed(struct header *header, int slot, struct secret **secret,
		     struct secret **volume_key, int *opened)
{
	struct secret *canonical = recovery_key_parse(*secret);
	int ret;

	if (canonical) {
		ret = header_try(header, slot, canonical, volume_key, opened);
		if (ret != E_SECRET) {
			secret_free(*secret);
			*secret = canonical;
			return ret;
		}
		secret_free(canonical);
		error_clear();
	}
	return header_try(header, slot, *secret, volume_key, opened);
}

/**
 * header_unlock() - get the volume key with a secret of the user's
 * @header: the header
 * @unlock: where the secret comes from; slot is filled in
 * @volume_key: the result
 *
 * On a terminal there are three tries. Tokens that need nobody are tried before.
 *
 * Return: 0, or what failed.
 */
int header_unlock(struct header *header, struct unlock *unlock, struct secret **volume_key)
{
	bool given = unlock->source.key_file || unlock->source.fd >= 0;
	int slot = CRYPT_ANY_SLOT, tries = given || !secret_interactive() ? 1 : 3;
	const struct keyslot *k;
	struct keyslots list;
	struct secret *secret;
	char *prompt;
	int ret = 0;

	unlock->slot = -1;
	ret = keyslots_get(header, &list);
	if (ret)
		return ret;
	if (unlock->name) {
		k = keyslot_by_name(&list, unlock->name);
		if (!k)
			ret = fail(E_NO_VOLUME, "coffer key list shows the names",
				   "%s has no secret called %s", unlock->what, unlock->name);
		else
			slot = k->slot;
	} else if (!list.nr) {
		ret = fail(E_HEADER, NULL, "cannot unlock %s: its header has no keyslot (it was erased)",
			   unlock->what);
	}
	keyslots_free(&list);
	if (ret)
		return ret;
	if (!given && !unlock->no_token && !unlock->name && has_foreign_token(header) &&
	    try_tokens(header, volume_key))
		return 0;
	prompt = xasprintf("Passphrase for %s", unlock->what);
	while (tries--) {
		ret = secret_get(&unlock->source, &secret, prompt);
		if (ret)
			break;
		ret = given && unlock->source.key_file ?
		      header_try(header, slot, secret, volume_key, &unlock->slot) :
		      try_typed(header, slot, &secret, volume_key, &unlock->slot);
		if (ret == E_SECRET && unlock->source.key_file && secret->data[secret->len - 1] == '\n') {
			error_clear();
			ret = fail(E_SECRET, "if the newline at its end is not meant, pass it by --passphrase-fd",
				   "cannot unlock %s: wrong secret in key file %s", unlock->what,
				   unlock->source.key_file);
		}
		if (!ret && unlock->keep)
			*unlock->keep = secret;
		else
			secret_free(secret);
		if (ret != E_SECRET || !tries)
			break;
		error_clear();
		fprintf(stderr, "That does not open %s. %d more %s.\n", unlock->what, tries,
			tries == 1 ? "try" : "tries");
	}
	free(prompt);
	return ret;
}
