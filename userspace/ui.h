/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef COFFER_UI_H
#define COFFER_UI_H

#include <stdbool.h>
#include <stdint.h>
#include <json-c/json.h>

#define JSON_VERSION 1

void ui_init(const char *verb, bool json, bool quiet);
bool ui_json(void);
void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
struct json_object *ui_result(void);
void ui_finish(int code);

int ui_confirm(bool yes, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int ui_question(bool *answer, bool otherwise, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
int ui_line(char **answer, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

void put_str(struct json_object *object, const char *key, const char *value);
void put_num(struct json_object *object, const char *key, int64_t value);
void put_bool(struct json_object *object, const char *key, bool value);

struct progress {
	const char *what;	/* "Encrypting" */
	uint64_t total;		/* bytes */
	uint64_t base;		/* bytes that were done before this run */
	double began, shown;	/* seconds, monotonic */
	bool open_line;
	bool steps;		/* they are no bytes: no rate is shown */
};

void progress_begin(struct progress *progress, const char *what, uint64_t done, uint64_t total);
void progress_steps(struct progress *progress, const char *what, uint64_t total);
void progress_update(struct progress *progress, uint64_t done);
void progress_end(struct progress *progress);

#endif
