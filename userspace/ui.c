// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What the user sees: text or JSON on stdout, questions, progress.
 *
 * With --json stdout holds nothing but JSON: one object at the end, and before it one
 * line for each step of a long work. Questions and notes go to stderr or the terminal.
 */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>
#include "error.h"
#include "ui.h"
#include "util.h"

static struct {
	bool json, quiet;
	const char *verb;
	struct json_object *result;
} ui;

/**
 * ui_init() - before the first output
 * @verb: the command that runs, for the JSON object
 * @json: JSON instead of text on stdout
 * @quiet: no text but errors and questions
 */
void ui_init(const char *verb, bool json, bool quiet)
{
	ui.json = json;
	ui.quiet = quiet;
	ui.verb = verb;
	ui.result = json_object_new_object();
	put_num(ui.result, "version", JSON_VERSION);
	put_str(ui.result, "verb", verb);
}

bool ui_json(void)
{
	return ui.json;
}

/* A line of text for people; nothing with --json. */
void say(const char *fmt, ...)
{
	va_list ap;
	char *text;

	if (ui.json || ui.quiet)
		return;
	va_start(ap, fmt);
	text = xvasprintf(fmt, ap);
	va_end(ap);
	make_printable(text);
	puts(text);
	free(text);
}

/* The object that --json prints at the end; verbs put their results into it. */
struct json_object *ui_result(void)
{
	return ui.result;
}

/**
 * ui_finish() - print the JSON object with notes and error
 * @code: exit code of the command
 */
void ui_finish(int code)
{
	struct json_object *notes, *error;

	if (!ui.json)
		return;
	put_bool(ui.result, "ok", !code);
	if (note_count()) {
		notes = json_object_new_array();
		for (unsigned int i = 0; i < note_count(); i++)
			json_object_array_add(notes, json_object_new_string(note_text(i)));
		json_object_object_add(ui.result, "notes", notes);
	}
	if (code) {
		error = json_object_new_object();
		put_num(error, "code", code);
		put_str(error, "name", error_name(code));
		put_str(error, "message", error_message());
		put_str(error, "next", error_next());
		json_object_object_add(ui.result, "error", error);
	}
	puts(json_object_to_json_string_ext(ui.result, JSON_C_TO_STRING_PRETTY |
					    JSON_C_TO_STRING_SPACED |
					    JSON_C_TO_STRING_NOSLASHESCAPE));
}

/* NULL becomes null. */
void put_str(struct json_object *object, const char *key, const char *value)
{
	json_object_object_add(object, key, value ? json_object_new_string(value) : NULL);
}

void put_num(struct json_object *object, const char *key, int64_t value)
{
	json_object_object_add(object, key, json_object_new_int64(value));
}

void put_bool(struct json_object *object, const char *key, bool value)
{
	json_object_object_add(object, key, json_object_new_boolean(value));
}

/**
 * ui_line() - ask for a line that is no secret
 * @answer: the line without its end, to be freed
 * @fmt: the question
 *
 * Return: 0, or E_REFUSED at the end of input.
 */
int ui_line(char **answer, const char *fmt, ...)
{
	char *line = NULL;
	size_t size = 0;
	ssize_t len;
	va_list ap;

	fflush(stdout);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	/* Byte by byte: what follows may be a secret, which no buffer of stdio should get. */
	setvbuf(stdin, NULL, _IONBF, 0);
	len = getline(&line, &size, stdin);
	if (len < 0) {
		free(line);
		return fail(E_REFUSED, NULL, "no answer was given: end of input");
	}
	if (len && line[len - 1] == '\n')
		line[len - 1] = 0;
	*answer = line;
	return 0;
}

/**
 * ui_confirm() - have the user agree to something that cannot be undone
 * @yes: agreed on the command line
 * @fmt: what will happen, to which disk
 *
 * "yes" agrees, in any case; another answer is asked once more. Without a terminal only
 * --yes agrees.
 *
 * Return: 0, or E_REFUSED.
 */
int ui_confirm(bool yes, const char *fmt, ...)
{
	va_list ap;
	char *text, *answer;
	bool agreed;
	int ret;

	if (yes)
		return 0;
	va_start(ap, fmt);
	text = xvasprintf(fmt, ap);
	va_end(ap);
	make_printable(text);
	if (!isatty(STDIN_FILENO)) {
		free(text);
		return fail(E_REFUSED, "with --yes it goes ahead without asking",
			    "not done: it has to be confirmed on a terminal");
	}
	fprintf(stderr, "%s\n", text);
	free(text);
	for (int i = 0; i < 2; i++) {
		ret = ui_line(&answer, i ? "Please type yes or no: " :
			      "Type yes to go ahead: ");
		if (ret)
			return ret;
		agreed = !strcasecmp(answer, "yes");
		if (agreed || !strcasecmp(answer, "no") || !*answer) {
			free(answer);
			return agreed ? 0 : fail(E_REFUSED, NULL, "not done: you said no");
		}
		free(answer);
	}
	return fail(E_REFUSED, NULL, "not done: the answer was neither yes nor no");
}

/**
 * ui_question() - a question with a harmless answer either way
 * @answer: the result
 * @otherwise: the answer for an empty line, or when nobody can be asked
 * @fmt: the question, without "[Y/n]"
 *
 * Return: 0, or E_REFUSED at the end of input.
 */
int ui_question(bool *answer, bool otherwise, const char *fmt, ...)
{
	char *text, *line;
	va_list ap;
	int ret;

	*answer = otherwise;
	if (!isatty(STDIN_FILENO))
		return 0;
	va_start(ap, fmt);
	text = xvasprintf(fmt, ap);
	va_end(ap);
	for (;;) {
		ret = ui_line(&line, "%s [%s] ", text, otherwise ? "Y/n" : "y/N");
		if (ret)
			break;
		if (!*line)
			break;
		if (!strcasecmp(line, "y") || !strcasecmp(line, "yes")) {
			*answer = true;
			break;
		}
		if (!strcasecmp(line, "n") || !strcasecmp(line, "no")) {
			*answer = false;
			break;
		}
		free(line);
	}
	if (!ret)
		free(line);
	free(text);
	return ret;
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

/**
 * progress_begin() - start to show how a long work goes
 * @progress: filled in
 * @what: "Encrypting"; must live on
 * @done: bytes that were done by an earlier run
 * @total: bytes in all
 */
void progress_begin(struct progress *progress, const char *what, uint64_t done, uint64_t total)
{
	*progress = (struct progress){
		.what = what, .total = total, .base = done, .began = now(),
	};
	progress_update(progress, done);
}

/* The same for a work that counts steps, not bytes. */
void progress_steps(struct progress *progress, const char *what, uint64_t total)
{
	*progress = (struct progress){
		.what = what, .total = total, .began = now(), .steps = true,
	};
	progress_update(progress, 0);
}

static void progress_json(const struct progress *progress, uint64_t done, double rate, double left)
{
	struct json_object *line = json_object_new_object();

	put_num(line, "version", JSON_VERSION);
	put_str(line, "verb", ui.verb);
	put_str(line, "progress", progress->what);
	put_num(line, "done", done);
	put_num(line, "total", progress->total);
	if (!progress->steps)
		put_num(line, "bytes_per_second", rate);
	json_object_object_add(line, "seconds_left", left < 0 ? NULL :
			       json_object_new_int64(left));
	puts(json_object_to_json_string_ext(line, JSON_C_TO_STRING_PLAIN));
	fflush(stdout);
	json_object_put(line);
}

static void progress_line(struct progress *progress, uint64_t done, double rate, double left)
{
	unsigned int permille = progress->total ? done * 1000.0 / progress->total : 1000;
	struct winsize size = { 0 };
	unsigned int width, filled;
	char eta[32] = "", bar[64], speed[40] = "";

	if (left >= 3600)
		snprintf(eta, sizeof(eta), "%u h %02u min left", (unsigned int)left / 3600,
			 (unsigned int)left / 60 % 60);
	else if (left >= 60)
		snprintf(eta, sizeof(eta), "%u min %02u s left", (unsigned int)left / 60,
			 (unsigned int)left % 60);
	else if (left >= 0)
		snprintf(eta, sizeof(eta), "%u s left", (unsigned int)left);
	if (!progress->steps)
		snprintf(speed, sizeof(speed), "%s/s  ", human_size(rate));
	if (!isatty(STDERR_FILENO)) {
		fprintf(stderr, "%s: %u.%u%%  %s%s\n", progress->what, permille / 10, permille % 10,
			speed, eta);
		return;
	}
	ioctl(STDERR_FILENO, TIOCGWINSZ, &size);
	width = size.ws_col >= 100 ? 30 : size.ws_col >= 80 || !size.ws_col ? 20 : 0;
	filled = permille * width / 1000;
	for (unsigned int i = 0; i < width; i++)
		bar[i] = i < filled ? '#' : '-';
	bar[width] = 0;
	fprintf(stderr, "\r%s %s%s%s%u.%u%%  %s%s\033[K", progress->what,
		width ? "[" : "", bar, width ? "] " : "", permille / 10, permille % 10, speed, eta);
	progress->open_line = true;
}

/**
 * progress_update() - say how far it is
 * @progress: from progress_begin()
 * @done: bytes
 *
 * May be called as often as one likes; prints at most four times a second on a
 * terminal, once a second as JSON, every ten seconds into a file.
 */
void progress_update(struct progress *progress, uint64_t done)
{
	double t = now(), rate, left;
	double pause = ui.json ? 1 : isatty(STDERR_FILENO) ? 0.25 : 10;

	if (done < progress->total && t - progress->shown < pause)
		return;
	progress->shown = t;
	rate = t - progress->began > 0.1 ? (done - progress->base) / (t - progress->began) : 0;
	left = rate > 0 ? (progress->total - done) / rate : -1;
	if (ui.json)
		progress_json(progress, done, rate, left);
	else if (!ui.quiet)
		progress_line(progress, done, rate, left);
}

/* Leave the line with the bar. */
void progress_end(struct progress *progress)
{
	if (progress->open_line)
		fputc('\n', stderr);
	progress->open_line = false;
}
