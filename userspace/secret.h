/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef COFFER_SECRET_H
#define COFFER_SECRET_H

#include <stdbool.h>
#include <stddef.h>

#define SECRET_MAX (8 * 1024 * 1024)	/* bytes of a key file, as cryptsetup's limit */
#define PASSPHRASE_MAX 512

/* A secret in locked memory that no core dump and no child process gets. */
struct secret {
	char *data;
	size_t len;	/* bytes used */
	size_t size;	/* bytes there are */
};

/* Where the user said that a secret comes from. All empty: ask. */
struct secret_source {
	const char *key_file;	/* every byte counts; "-" is standard input */
	int fd;			/* one line is read; -1 for none */
};

void secret_init_process(void);
struct secret *secret_new(size_t size);
struct secret *secret_copy(const char *data, size_t len);
void secret_free(struct secret *secret);
bool secret_equal(const struct secret *a, const struct secret *b);

int secret_read_line(int fd, struct secret **result);
int secret_read_file(const char *path, struct secret **result);
int secret_ask(struct secret **result, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
int secret_ask_new(struct secret **result, const char *what);
int secret_get(const struct secret_source *source, struct secret **result, const char *prompt);
bool secret_interactive(void);

int secret_random(struct secret **result, size_t bytes);

#endif
