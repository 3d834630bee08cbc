// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The command line: which verb, and its options.
 *
 * One table says what each option does to struct args; the verb's own entry says which of
 * them it takes. An option that a verb does not take is an error, never ignored.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "error.h"
#include "options.h"
#include "util.h"

struct option_rule {
	const char *name;
	char letter;
	const char *value;	/* NULL for a flag */
	int (*set)(struct args *args, const char *value);
	const char *help;
};

#define FLAG(field)						\
	static int set_##field(struct args *args, const char *value)	\
	{							\
		(void)value;					\
		args->field = true;				\
		return 0;					\
	}

FLAG(json)
FLAG(yes)
FLAG(quiet)
FLAG(all)
FLAG(force)
FLAG(read_only)
FLAG(deferred)
FLAG(no_recovery)
FLAG(no_token)
FLAG(no_freeze)

#define TEXT(field)						\
	static int set_##field(struct args *args, const char *value)	\
	{							\
		args->field = value;				\
		return 0;					\
	}

TEXT(name)
TEXT(header)
TEXT(label)
TEXT(from)

static bool number(const char *text, unsigned long max, unsigned int *value)
{
	unsigned long n;
	char *end;

	if (!isdigit((unsigned char)*text))
		return false;
	n = strtoul(text, &end, 10);
	if (*end || n > max)
		return false;
	*value = n;
	return true;
}

static int set_fd(struct secret_source *source, const char *option, const char *value)
{
	unsigned int fd;

	if (!number(value, 65535, &fd))
		return fail(E_USAGE, NULL, "%s takes the number of a file descriptor, not \"%s\"",
			    option, value);
	source->fd = fd;
	return 0;
}

static int set_key_file(struct args *args, const char *value)
{
	args->secret.key_file = value;
	return 0;
}

static int set_passphrase_fd(struct args *args, const char *value)
{
	return set_fd(&args->secret, "--passphrase-fd", value);
}

static int set_new_key_file(struct args *args, const char *value)
{
	args->new_secret.key_file = value;
	return 0;
}

static int set_new_passphrase_fd(struct args *args, const char *value)
{
	return set_fd(&args->new_secret, "--new-passphrase-fd", value);
}

static int set_trim(struct args *args, const char *value)
{
	if (strcmp(value, "on") && strcmp(value, "off"))
		return fail(E_USAGE, NULL, "--trim takes on or off, not \"%s\"", value);
	args->have_trim = true;
	args->trim = !strcmp(value, "on");
	return 0;
}

static int set_size(struct args *args, const char *value)
{
	if (!parse_size(value, &args->size) || !args->size)
		return fail(E_USAGE, NULL, "--size takes a size like 500M or 20G, not \"%s\"", value);
	return 0;
}

static int set_max_rate(struct args *args, const char *value)
{
	if (!parse_size(value, &args->max_rate) || !args->max_rate)
		return fail(E_USAGE, NULL, "--max-rate takes bytes a second like 50M, not \"%s\"", value);
	return 0;
}

static int set_data_unit(struct args *args, const char *value)
{
	if (!number(value, 4096, &args->data_unit) || args->data_unit < 512 ||
	    args->data_unit & (args->data_unit - 1))
		return fail(E_USAGE, NULL, "--data-unit takes 512, 1024, 2048 or 4096, not \"%s\"",
			    value);
	return 0;
}

static int set_unlock_time(struct args *args, const char *value)
{
	if (!number(value, 600000, &args->unlock_time) || !args->unlock_time)
		return fail(E_USAGE, NULL, "--unlock-time takes milliseconds from 1 to 600000, not \"%s\"",
			    value);
	return 0;
}

static int set_driver(struct args *args, const char *value)
{
	if (!strcmp(value, "coffer"))
		args->driver = DRIVER_COFFER;
	else if (!strcmp(value, "dm-crypt"))
		args->driver = DRIVER_DM_CRYPT;
	else if (!strcmp(value, "auto"))
		args->driver = DRIVER_AUTO;
	else
		return fail(E_USAGE, NULL, "--driver takes coffer, dm-crypt or auto, not \"%s\"",
			    value);
	return 0;
}

static const struct option_rule rules[] = {
	{ "json", 'j', NULL, set_json, "print one JSON object instead of text" },
	{ "quiet", 'q', NULL, set_quiet, "print nothing but errors" },
	{ "yes", 'y', NULL, set_yes, "go ahead without asking" },
	{ "all", 'a', NULL, set_all, "all volumes" },
	{ "force", 0, NULL, set_force, "do it although it may lock you out" },
	{ "key-file", 'k', "FILE", set_key_file, "the secret is FILE, each byte of it; - is stdin" },
	{ "passphrase-fd", 0, "N", set_passphrase_fd, "the secret is one line from descriptor N" },
	{ "new-key-file", 0, "FILE", set_new_key_file, "the same for the new secret" },
	{ "new-passphrase-fd", 0, "N", set_new_passphrase_fd, "the same for the new secret" },
	{ "no-token", 0, NULL, set_no_token, "do not try TPM2 and other tokens first" },
	{ "name", 'n', "NAME", set_name, "name of the secret" },
	{ "header", 0, "FILE", set_header, "the header is in FILE, not on the device" },
	{ "label", 'l', "LABEL", set_label, "label of the volume" },
	{ "from", 0, "FILE", set_from, "the copy of the header to restore" },
	{ "trim", 0, "on|off", set_trim, "pass TRIM on to the device; kept in the header" },
	{ "size", 's', "SIZE", set_size, "as 500M or 20G" },
	{ "max-rate", 0, "SIZE", set_max_rate, "convert at most so much a second, as 50M" },
	{ "data-unit", 0, "BYTES", set_data_unit, "what is encrypted at a time: 512 to 4096" },
	{ "unlock-time", 0, "MS", set_unlock_time, "how long unlocking may take (2000 ms)" },
	{ "no-recovery", 0, NULL, set_no_recovery, "make no recovery key" },
	{ "read-only", 'r', NULL, set_read_only, "nothing can be written" },
	{ "deferred", 0, NULL, set_deferred, "as soon as nobody uses it" },
	{ "no-freeze", 0, NULL, set_no_freeze, "do not flush and freeze file systems first" },
	{ "driver", 0, "NAME", set_driver, "coffer, dm-crypt or auto" },
};

/* Whether a blank-separated list has a word. */
static bool listed(const char *list, const char *word)
{
	size_t len = strlen(word);

	for (const char *p = list; (p = strstr(p, word)); p += len)
		if ((p == list || p[-1] == ' ') && (p[len] == ' ' || !p[len]))
			return true;
	return false;
}

/* Options that every verb takes. */
static bool takes(const struct verb *verb, const char *option)
{
	return !strcmp(option, "json") || !strcmp(option, "quiet") || listed(verb->options, option);
}

/**
 * options_verb() - which verb a command line has
 * @argc: count of words; those of the verb are taken off
 * @argv: the words; likewise
 *
 * Return: the verb, or NULL after fail().
 */
const struct verb *options_verb(int *argc, char ***argv)
{
	const char *first = *argc > 1 ? (*argv)[1] : "status", *near = NULL;
	struct strings second = { 0 };
	char *text;

	/* without a verb there may still be options: coffer --json */
	if (*first == '-')
		first = "status";
	for (unsigned int i = 0; i < nr_verbs; i++) {
		const char *blank = strchr(verbs[i].name, ' ');
		size_t len = blank ? (size_t)(blank - verbs[i].name) : strlen(verbs[i].name);
		int used = *argc > 1 && (*argv)[1][0] != '-';

		if (strlen(first) != len || strncmp(first, verbs[i].name, len))
			continue;
		if (blank) {
			strings_add(&second, xstrdup(blank + 1));
			if (*argc < 3 || strcmp((*argv)[2], blank + 1))
				continue;
			used = 2;
		}
		strings_free(&second);
		(*argv)[used] = (*argv)[0];
		*argc -= used;
		*argv += used;
		return &verbs[i];
	}
	for (unsigned int i = 0; i < nr_verbs && !near; i++)
		if (!strncmp(first, verbs[i].name, 3))
			near = verbs[i].name;
	if (second.nr) {
		text = strings_join(&second, ", ");
		fail(E_USAGE, NULL, "coffer %s needs one of: %s", first, text);
	} else {
		text = near ? xasprintf("did you mean coffer %s?", near) :
		       xstrdup("coffer --help lists the commands");
		fail(E_USAGE, text, "there is no command \"%s\"", first);
	}
	free(text);
	strings_free(&second);
	return NULL;
}

/**
 * options_parse() - read the options and words of a verb
 * @verb: the verb
 * @argc: count of words
 * @argv: what is left after options_verb()
 * @args: filled in
 *
 * Return: 0; E_USAGE; -1 for --help.
 */
int options_parse(const struct verb *verb, int argc, char **argv, struct args *args)
{
	struct option longs[ARRAY_SIZE(rules) + 2] = { 0 };
	char shorts[3 * ARRAY_SIZE(rules) + 4] = "+:h";
	unsigned int n = 0;
	size_t at = strlen(shorts);
	int c, ret = 0;

	*args = (struct args){
		.secret.fd = -1, .new_secret.fd = -1, .unlock_time = 2000,
	};
	for (unsigned int i = 0; i < ARRAY_SIZE(rules); i++) {
		longs[n++] = (struct option){
			rules[i].name, rules[i].value ? required_argument : no_argument, NULL,
			256 + i,
		};
		if (rules[i].letter) {
			shorts[at++] = rules[i].letter;
			if (rules[i].value)
				shorts[at++] = ':';
		}
	}
	longs[n] = (struct option){ "help", no_argument, NULL, 'h' };
	shorts[0] = '-';	/* words come as option 1, wherever they stand */
	args->words = xcalloc(argc + 1, sizeof(*args->words));
	opterr = 0;
	optind = 1;
	while (!ret && (c = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
		const struct option_rule *rule = NULL;

		if (c == 'h')
			return -1;
		if (c == 1) {
			args->words[args->nr++] = optarg;
			continue;
		}
		if (c == ':')
			return fail(E_USAGE, NULL, "%s needs a value", argv[optind - 1]);
		for (unsigned int i = 0; i < ARRAY_SIZE(rules); i++)
			if (c == 256 + (int)i || (rules[i].letter && c == rules[i].letter))
				rule = &rules[i];
		if (!rule) {
			/* in a bundle like -yZ the word may not be behind it yet */
			char letter[3] = { '-', optopt, 0 };

			return fail(E_USAGE, "coffer --help lists the commands", "there is no option %s",
				    optopt > ' ' && optopt < 127 ? letter : argv[optind - 1]);
		}
		if (!takes(verb, rule->name))
			return fail(E_USAGE, NULL, "coffer %s takes no --%s", verb->name, rule->name);
		ret = rule->set(args, optarg);
	}
	while (!ret && optind < argc)
		args->words[args->nr++] = argv[optind++];
	if (!ret && args->secret.key_file && args->secret.fd >= 0)
		ret = fail(E_USAGE, NULL, "--key-file and --passphrase-fd exclude each other");
	if (!ret && args->new_secret.key_file && args->new_secret.fd >= 0)
		ret = fail(E_USAGE, NULL, "--new-key-file and --new-passphrase-fd exclude each other");
	if (!ret && (args->nr < verb->min || (verb->max >= 0 && args->nr > verb->max)) &&
	    !(args->all && !args->nr))
		ret = fail(E_USAGE, NULL, "usage: coffer %s%s%s", verb->name, *verb->words ? " " : "",
			   verb->words);
	return ret;
}

/* Help for one verb, or for all. */
int options_help(const struct verb *verb)
{
	if (!verb) {
		puts("coffer: full-disk encryption at the speed of the disk\n");
		for (unsigned int i = 0; i < nr_verbs; i++) {
			char *usage = xasprintf("%s %s", verbs[i].name, verbs[i].words);

			printf("  %-20s %s\n", usage, verbs[i].help);
			free(usage);
		}
		puts("\nA VOLUME is a name, a device, UUID=..., an image file or a mount point.\n"
		     "coffer COMMAND --help lists the options of a command; coffer(8) has it all.");
		return 0;
	}
	printf("Usage: coffer %s %s\n%c%s.\n\n", verb->name, verb->words, toupper(*verb->help),
	       verb->help + 1);
	for (unsigned int i = 0; i < ARRAY_SIZE(rules); i++) {
		char letter[8] = "    ", *text;

		if (!takes(verb, rules[i].name))
			continue;
		if (rules[i].letter)
			snprintf(letter, sizeof(letter), "-%c, ", rules[i].letter);
		text = xasprintf("%s--%s%s%s", letter, rules[i].name, rules[i].value ? " " : "",
				 rules[i].value ? rules[i].value : "");
		printf("  %-28s %s\n", text, rules[i].help);
		free(text);
	}
	return 0;
}

/* For completion and tests: each verb with the options it takes, a line each. */
void options_list(void)
{
	for (unsigned int i = 0; i < nr_verbs; i++) {
		printf("%s:", verbs[i].name);
		for (unsigned int r = 0; r < ARRAY_SIZE(rules); r++)
			if (takes(&verbs[i], rules[r].name))
				printf(" --%s%s", rules[r].name, rules[r].value ? "=" : "");
		puts("");
	}
}
