// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Strings, sizes and small files. No secret passes through here: memory is not wiped.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "util.h"

static void *no_memory(void)
{
	static const char text[] = "coffer: out of memory\n";

	if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
		_exit(1);
	_exit(1);
}

/* The x functions end the process when there is no memory. */
void *xcalloc(size_t n, size_t size)
{
	void *p = calloc(n, size);

	return p ? p : no_memory();
}

void *xrealloc(void *p, size_t size)
{
	p = realloc(p, size);
	return p ? p : no_memory();
}

char *xstrdup(const char *s)
{
	char *copy = strdup(s);

	return copy ? copy : no_memory();
}

char *xvasprintf(const char *fmt, va_list ap)
{
	char *s;

	if (vasprintf(&s, fmt, ap) < 0)
		no_memory();
	return s;
}

char *xasprintf(const char *fmt, ...)
{
	va_list ap;
	char *s;

	va_start(ap, fmt);
	s = xvasprintf(fmt, ap);
	va_end(ap);
	return s;
}

/**
 * read_text() - a small text file, as those in /sys and /proc
 * @fmt: its path
 *
 * Return: its first 64 KiB without white space at the end, to be freed; NULL if it
 * cannot be read.
 */
char *read_text(const char *fmt, ...)
{
	const size_t max = 65536;
	size_t len = 0;
	char *path, *text;
	ssize_t got;
	va_list ap;
	int fd;

	va_start(ap, fmt);
	path = xvasprintf(fmt, ap);
	va_end(ap);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	free(path);
	if (fd < 0)
		return NULL;
	text = xcalloc(1, max + 1);
	while (len < max && (got = read(fd, text + len, max - len)) > 0)
		len += got;
	close(fd);
	while (len && isspace((unsigned char)text[len - 1]))
		text[--len] = 0;
	return text;
}

/* A file that holds one decimal number. */
bool read_number(uint64_t *value, const char *fmt, ...)
{
	char *path, *text, *end;
	bool ok = false;
	va_list ap;

	va_start(ap, fmt);
	path = xvasprintf(fmt, ap);
	va_end(ap);
	text = read_text("%s", path);
	free(path);
	if (text && isdigit((unsigned char)*text)) {
		*value = strtoull(text, &end, 10);
		ok = !*end;
	}
	free(text);
	return ok;
}

/**
 * write_all() - write a whole buffer
 *
 * Return: 0, or a negative errno.
 */
int write_all(int fd, const void *data, size_t len)
{
	const char *p = data;

	while (len) {
		ssize_t done = write(fd, p, len);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return -errno;
		p += done;
		len -= done;
	}
	return 0;
}

/**
 * make_printable() - put ? for control characters, but for newlines
 * @text: changed in place
 *
 * Labels, names and ciphers come from whoever had the disk; a terminal would obey them.
 */
void make_printable(char *text)
{
	for (char *p = text; *p; p++)
		if (((unsigned char)*p < ' ' && *p != '\n') || *p == 127)
			*p = '?';
}

/* "238.5 GiB"; valid until the eighth call after this one. */
const char *human_size(uint64_t bytes)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	static char buffers[8][32];
	static unsigned int next;
	char *buffer = buffers[next++ % ARRAY_SIZE(buffers)];
	double value = bytes;
	unsigned int unit = 0;

	while (value >= 1024 && unit + 1 < ARRAY_SIZE(units)) {
		value /= 1024;
		unit++;
	}
	if (value == (uint64_t)value)
		snprintf(buffer, sizeof(buffers[0]), "%llu %s", (unsigned long long)value,
			 units[unit]);
	else
		snprintf(buffer, sizeof(buffers[0]), "%.1f %s", value, units[unit]);
	return buffer;
}

/**
 * parse_size() - "64M", "1.5G", "4096": powers of 1024, with or without "iB" or "B"
 * @text: what the user wrote
 * @bytes: the result
 *
 * Return: whether it is a size and fits.
 */
bool parse_size(const char *text, uint64_t *bytes)
{
	static const char units[] = "KMGTP";
	double value, factor = 1;
	const char *unit;
	char *end;

	if (!isdigit((unsigned char)*text))
		return false;
	if (strspn(text, "0123456789.") != strcspn(text, "KMGTPkmgtpB"))
		return false;
	value = strtod(text, &end);
	if (*end && *end != 'B') {
		unit = strchr(units, toupper((unsigned char)*end));
		if (!unit)
			return false;
		for (const char *u = units; u <= unit; u++)
			factor *= 1024;
		end++;
		if (end[0] == 'i' && end[1] == 'B')
			end++;
	}
	if (*end == 'B')
		end++;
	if (*end || value * factor >= 9.2e18)
		return false;
	*bytes = value * factor;
	return true;
}

bool starts_with(const char *s, const char *prefix)
{
	return !strncmp(s, prefix, strlen(prefix));
}

/* Takes over @owned. */
void strings_add(struct strings *list, char *owned)
{
	list->s = xrealloc(list->s, (list->nr + 1) * sizeof(*list->s));
	list->s[list->nr++] = owned;
}

bool strings_has(const struct strings *list, const char *s)
{
	for (unsigned int i = 0; i < list->nr; i++)
		if (!strcmp(list->s[i], s))
			return true;
	return false;
}

/* All of them in one string, to be freed. */
char *strings_join(const struct strings *list, const char *between)
{
	char *all = xstrdup("");

	for (unsigned int i = 0; i < list->nr; i++) {
		char *more = xasprintf("%s%s%s", all, i ? between : "", list->s[i]);

		free(all);
		all = more;
	}
	return all;
}

void strings_free(struct strings *list)
{
	for (unsigned int i = 0; i < list->nr; i++)
		free(list->s[i]);
	free(list->s);
	list->s = NULL;
	list->nr = 0;
}
