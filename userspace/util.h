/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef COFFER_UTIL_H
#define COFFER_UTIL_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

#define KIB 1024ULL
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)
#define SECTOR 512ULL

void *xcalloc(size_t n, size_t size);
void *xrealloc(void *p, size_t size);
char *xstrdup(const char *s);
char *xvasprintf(const char *fmt, va_list ap);
char *xasprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

char *read_text(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
bool read_number(uint64_t *value, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int write_all(int fd, const void *data, size_t len);

void make_printable(char *text);
const char *human_size(uint64_t bytes);
bool parse_size(const char *text, uint64_t *bytes);
bool starts_with(const char *s, const char *prefix);

/* A list of strings that grows; free with strings_free(). */
struct strings {
	char **s;
	unsigned int nr;
};

void strings_add(struct strings *list, char *owned);
bool strings_has(const struct strings *list, const char *s);
char *strings_join(const struct strings *list, const char *between);
void strings_free(struct strings *list);

#endif
