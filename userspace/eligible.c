// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What dm-coffer cannot carry: said before it is tried on a machine that has to boot.
 */
#define _GNU_SOURCE
#include <blkid/blkid.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "eligible.h"
#include "error.h"
#include "header.h"

/* Options of a table that the target takes. */
static bool option_known(const char *option)
{
	static const char *const known[] = {
		"allow_discards", "same_cpu_crypt", "high_priority", "submit_from_crypt_cpus",
		"no_read_workqueue", "no_write_workqueue", "iv_large_sectors",
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(known); i++)
		if (!strcmp(option, known[i]))
			return true;
	return starts_with(option, "sector_size:");
}

/**
 * mapping_unfit() - why dm-coffer cannot carry an active mapping
 * @map: a mapping of dm-crypt's
 *
 * Return: the reason, to be freed; NULL if it can.
 */
char *mapping_unfit(const struct mapping *map)
{
	if (map->nr_targets != 1)
		return xstrdup("it has several segments");
	if (strcmp(map->cipher, "aes-xts-plain64"))
		return xasprintf("its cipher is %s", map->cipher);
	if (map->key_bytes != 32 && map->key_bytes != 64)
		return xasprintf("its key has %u bits", map->key_bytes * 8);
	for (unsigned int i = 0; i < map->options.nr; i++)
		if (!option_known(map->options.s[i]))
			return xasprintf("it has the option %s", map->options.s[i]);
	return NULL;
}

static char *plain_unfit(const struct crypttab_entry *entry)
{
	const char *cipher = crypttab_option(entry, "cipher"), *size = crypttab_option(entry, "size");

	if (!cipher || !*cipher)
		return xstrdup("it is a plain volume without cipher=, which some versions of cryptsetup take for aes-cbc");
	if (strcmp(cipher, "aes-xts-plain64"))
		return xasprintf("its cipher is %s", cipher);
	if (size && strcmp(size, "256") && strcmp(size, "512"))
		return xasprintf("its key has %s bits", size);
	return NULL;
}

/* /dev/sda1 for a crypttab's source, or a file; NULL if it is not there. */
static char *find_source(const char *source)
{
	char *path;

	if (strchr(source, '=')) {
		path = blkid_evaluate_tag(source, NULL, NULL);
		/* crypttab writes UUID="..." too */
		if (!path && strchr(source, '"')) {
			char *copy = xcalloc(1, strlen(source) + 1), *out = copy;

			for (; *source; source++)
				if (*source != '"')
					*out++ = *source;
			path = blkid_evaluate_tag(copy, NULL, NULL);
			free(copy);
		}
		return path;
	}
	return access(source, F_OK) ? NULL : xstrdup(source);
}

/**
 * crypttab_unfit() - why dm-coffer cannot carry an entry of /etc/crypttab
 * @entry: the entry
 * @unknown: set where that cannot be told, the reason then says why
 *
 * Return: the reason, to be freed; NULL if it can.
 */
char *crypttab_unfit(const struct crypttab_entry *entry, bool *unknown)
{
	static const char *const others[] = { "tcrypt", "bitlk", "fvault2" };
	const char *detached = crypttab_option(entry, "header");
	struct header *header = NULL;
	char *device, *why = NULL;
	int code;

	*unknown = false;
	for (unsigned int i = 0; i < ARRAY_SIZE(others); i++)
		if (crypttab_option(entry, others[i]))
			return xasprintf("it is a volume of the kind %s", others[i]);
	if (crypttab_option(entry, "plain") || (crypttab_option(entry, "swap") && entry->key &&
						starts_with(entry->key, "/dev/")))
		return plain_unfit(entry);
	device = find_source(entry->source);
	if (!device) {
		*unknown = true;
		return xasprintf("%s is not there", entry->source);
	}
	code = header_load(device, detached && *detached ? detached : NULL, &header);
	if (!code)
		code = header_check(header);
	/* no LUKS header: Debian's default is plain then */
	if (code == E_UNSUPPORTED && !header && crypttab_option(entry, "cipher"))
		why = plain_unfit(entry);
	else if (code)
		why = xstrdup(error_message());
	*unknown = code && code != E_UNSUPPORTED;
	if (code)
		error_clear();
	header_free(header);
	free(device);
	return why;
}
