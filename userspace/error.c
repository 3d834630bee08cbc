// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What failed, why, and what to do about it.
 *
 * The first error of a command is the one that the user gets to see: what fails after it,
 * while things are put back, is a consequence. A function that fails calls fail() once
 * and returns its code; callers pass the code on. Nothing here ends the process.
 */
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "error.h"
#include "util.h"

static int first_code;
static char *first_message;
static char *first_next;
static char **notes;
static unsigned int nr_notes;

static const char *const names[] = {
	[E_OK] = "ok",
	[E_FAILED] = "failed",
	[E_USAGE] = "usage",
	[E_SECRET] = "wrong-secret",
	[E_NO_VOLUME] = "no-such-volume",
	[E_BUSY] = "busy",
	[E_MEMORY] = "too-little-memory",
	[E_KEYRING] = "keyring",
	[E_KEY_FILE] = "key-file",
	[E_HEADER] = "header",
	[E_TOO_SMALL] = "too-small",
	[E_NOT_ROOT] = "not-root",
	[E_MODULE] = "no-module",
	[E_REFUSED] = "refused",
	[E_UNSUPPORTED] = "unsupported",
	[E_EXISTS] = "exists",
	[E_IO] = "io",
	[E_INTERRUPTED] = "interrupted",
	[E_LOCKED] = "locked",
};

/**
 * fail() - remember why a command cannot go on
 * @code: the cause, which becomes the exit code
 * @next: what the user can do about it, a sentence without a full stop; or NULL
 * @fmt: "what failed: why", without a full stop
 *
 * Return: @code, for the caller to return. Only the first call of a command counts.
 */
int fail(enum coffer_exit code, const char *next, const char *fmt, ...)
{
	va_list ap;

	if (first_code)
		return code;
	first_code = code;
	va_start(ap, fmt);
	first_message = xvasprintf(fmt, ap);
	va_end(ap);
	first_next = next ? xstrdup(next) : NULL;
	make_printable(first_message);
	if (first_next)
		make_printable(first_next);
	return code;
}

/**
 * note() - say something that is worth knowing and no failure, on stderr
 * @fmt: one sentence without a full stop
 *
 * Notes are kept for the JSON output too.
 */
void note(const char *fmt, ...)
{
	va_list ap;
	char *text;

	va_start(ap, fmt);
	text = xvasprintf(fmt, ap);
	va_end(ap);
	make_printable(text);
	fprintf(stderr, "coffer: %s\n", text);
	notes = xrealloc(notes, (nr_notes + 1) * sizeof(*notes));
	notes[nr_notes++] = text;
}

unsigned int note_count(void)
{
	return nr_notes;
}

const char *note_text(unsigned int i)
{
	return notes[i];
}

int error_code(void)
{
	return first_code;
}

const char *error_message(void)
{
	return first_message;
}

/* What to do about the error; NULL where there is nothing to say. */
const char *error_next(void)
{
	return first_next;
}

/* The code's name in JSON output. */
const char *error_name(int code)
{
	return code >= 0 && (size_t)code < ARRAY_SIZE(names) ? names[code] : "failed";
}

/* Forget the error, for a command that goes on with another way or another volume. */
void error_clear(void)
{
	free(first_message);
	free(first_next);
	first_message = NULL;
	first_next = NULL;
	first_code = 0;
}

/**
 * error_report() - print the error on stderr, if there is one
 *
 * Return: its code.
 */
int error_report(void)
{
	if (!first_code)
		return 0;
	fprintf(stderr, "coffer: %s\n", first_message);
	if (first_next)
		fprintf(stderr, "        %s\n", first_next);
	return first_code;
}
