// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * /etc/crypttab: what the boot opens. Read only.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include "crypttab.h"

static void read_line(struct crypttab *table, char *line)
{
	struct crypttab_entry entry = { 0 };
	char *save, *word, *fields[4] = { NULL };
	int n = 0;

	for (word = strtok_r(line, " \t", &save); word && n < 4; word = strtok_r(NULL, " \t", &save))
		fields[n++] = word;
	if (n < 2 || *fields[0] == '#')
		return;
	entry.name = xstrdup(fields[0]);
	entry.source = xstrdup(fields[1]);
	if (n > 2 && strcmp(fields[2], "none") && strcmp(fields[2], "-"))
		entry.key = xstrdup(fields[2]);
	for (word = n > 3 ? strtok_r(fields[3], ",", &save) : NULL; word;
	     word = strtok_r(NULL, ",", &save))
		strings_add(&entry.options, xstrdup(word));
	table->entries = xrealloc(table->entries, (table->nr + 1) * sizeof(entry));
	table->entries[table->nr++] = entry;
}

/* All entries; none if there is no such file. crypttab_free() it. */
void crypttab_read(struct crypttab *table)
{
	char *text = read_text(CRYPTTAB), *save, *line;

	memset(table, 0, sizeof(*table));
	for (line = text ? strtok_r(text, "\n", &save) : NULL; line;
	     line = strtok_r(NULL, "\n", &save))
		read_line(table, line);
	free(text);
}

void crypttab_free(struct crypttab *table)
{
	for (unsigned int i = 0; i < table->nr; i++) {
		free(table->entries[i].name);
		free(table->entries[i].source);
		free(table->entries[i].key);
		strings_free(&table->entries[i].options);
	}
	free(table->entries);
	memset(table, 0, sizeof(*table));
}

/* The value of an option, "" for one without a value, NULL if it is not there. */
const char *crypttab_option(const struct crypttab_entry *entry, const char *name)
{
	size_t len = strlen(name);

	for (unsigned int i = 0; i < entry->options.nr; i++) {
		const char *option = entry->options.s[i];

		if (!strncmp(option, name, len) && (!option[len] || option[len] == '='))
			return option[len] ? option + len + 1 : "";
	}
	return NULL;
}
