// SPDX-License-Identifier: GPL-2.0-only
/*
 * The table line, from words to struct coffer_params and its options back to text.
 *
 *   aes-xts-plain64 <key> <iv_offset> <device> <start> [<#opt> <opt>...]
 *
 * Pure: opens no device, looks up no key, allocates nothing; the key passes through
 * unread. One table of options drives both directions, so what is printed parses.
 */
#include <linux/align.h>
#include <linux/bits.h>
#include <linux/ctype.h>
#include <linux/kernel.h>
#include <linux/log2.h>
#include <linux/string.h>

#include "table.h"

#define CIPHER		"aes-xts-plain64"
#define MIN_ARGS	5
#define MIN_DATA_UNIT	SECTOR_SIZE
#define MAX_DATA_UNIT	4096

/* An option is a bare word that sets a flag, or "name:value" that sets a field. */
static const struct coffer_option {
	const char *name;
	u8 flag;
	u8 field;		/* offset in struct coffer_params; 0: a flag */
	u32 min, max, unset;	/* range of the value, and what is not printed */
	const char *refusal;
} options[] = {
	{ "allow_discards", COFFER_ALLOW_DISCARDS },
	{ "same_cpu_crypt", COFFER_SAME_CPU_CRYPT },
	{ "high_priority", COFFER_HIGH_PRIORITY },
	{ "submit_from_crypt_cpus", COFFER_SUBMIT_FROM_CRYPT_CPUS },
	{ "no_read_workqueue", COFFER_NO_READ_WORKQUEUE },
	{ "no_write_workqueue", COFFER_NO_WRITE_WORKQUEUE },
	{ "sector_size:", 0, offsetof(struct coffer_params, data_unit),
	  MIN_DATA_UNIT, MAX_DATA_UNIT, SECTOR_SIZE,
	  "sector_size must be a power of two from 512 to 4096" },
	{ "iv_large_sectors", COFFER_IV_LARGE_SECTORS },
	/* for experiments: the driver decides better by itself */
	{ "handover", COFFER_HANDOVER },
	{ "inline:", 0, offsetof(struct coffer_params, inline_bytes),
	  1, U32_MAX, 0, "inline must be a number of bytes" },
	{ "fanout:", 0, offsetof(struct coffer_params, fanout),
	  1, 1024, 0, "fanout must be a number of CPUs from 1 to 1024" },
};

static unsigned int *option_field(const struct coffer_option *opt,
				  const struct coffer_params *params)
{
	return (unsigned int *)((char *)params + opt->field);
}

static int parse_value(const struct coffer_option *opt, const char *value,
		       struct coffer_params *params, char **error)
{
	u32 number;

	if (!isdigit(*value) || kstrtou32(value, 10, &number) || number < opt->min ||
	    number > opt->max ||
	    (opt->field == offsetof(struct coffer_params, data_unit) &&
	     !is_power_of_2(number))) {
		*error = (char *)opt->refusal;
		return -EINVAL;
	}
	*option_field(opt, params) = number;
	return 0;
}

static int parse_option(const char *word, struct coffer_params *params,
			unsigned long *seen, char **error)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(options); i++) {
		const struct coffer_option *opt = &options[i];

		if (opt->field ? !strstarts(word, opt->name) : strcasecmp(word, opt->name))
			continue;
		if (*seen & BIT(i)) {
			*error = "Option given twice";
			return -EINVAL;
		}
		*seen |= BIT(i);
		if (opt->field)
			return parse_value(opt, word + strlen(opt->name), params, error);
		params->flags |= BIT(opt->flag);
		return 0;
	}
	*error = strstarts(word, "integrity") ?
		 "Option integrity is not supported, see dm-crypt" : "Unknown option";
	return -EINVAL;
}

static int parse_options(struct coffer_params *params, unsigned int argc, char **argv,
			 char **error)
{
	unsigned long seen = 0;
	unsigned int count, i;
	int ret;

	BUILD_BUG_ON(ARRAY_SIZE(options) > BITS_PER_LONG);

	if (!argc)
		return 0;
	if (!isdigit(**argv) || kstrtouint(*argv, 10, &count)) {
		*error = "Invalid option count";
		return -EINVAL;
	}
	if (count > argc - 1) {
		*error = "Fewer options than the option count says";
		return -EINVAL;
	}
	if (count < argc - 1) {
		*error = "Trailing garbage after the options";
		return -EINVAL;
	}
	for (i = 1; i <= count; i++) {
		ret = parse_option(argv[i], params, &seen, error);
		if (ret)
			return ret;
	}
	return 0;
}

static int parse_u64(const char *word, u64 *number)
{
	/* kstrtoull() takes a leading plus, which the table's grammar has not */
	if (!isdigit(*word))
		return -EINVAL;
	return kstrtoull(word, 10, number);
}

/**
 * coffer_table_parse() - check a table line for form
 * @params: filled in; holds pointers into @argv
 * @argc: number of words
 * @argv: the words after the target's name
 * @len: size of the mapping in sectors
 * @error: on failure, the reason in words
 *
 * Context: any.
 * Return: 0 or -EINVAL.
 */
int coffer_table_parse(struct coffer_params *params, unsigned int argc, char **argv,
		       sector_t len, char **error)
{
	unsigned int unit_sectors;
	int ret;

	if (argc < MIN_ARGS) {
		*error = "Not enough arguments";
		return -EINVAL;
	}
	*params = (struct coffer_params) {
		.key = argv[1],
		.device = argv[3],
		.data_unit = SECTOR_SIZE,
	};
	if (strcmp(argv[0], CIPHER)) {
		*error = "Only the cipher " CIPHER " is supported, see dm-crypt for others";
		return -EINVAL;
	}
	ret = parse_options(params, argc - MIN_ARGS, argv + MIN_ARGS, error);
	if (ret)
		return ret;

	unit_sectors = params->data_unit >> SECTOR_SHIFT;
	/*
	 * Without iv_large_sectors an odd iv_offset would be harmless to us; dm-crypt
	 * refuses it all the same, and a table must mean the same to both.
	 */
	if (parse_u64(argv[2], &params->iv_offset) ||
	    !IS_ALIGNED(params->iv_offset, unit_sectors)) {
		*error = "iv_offset must be a number of sectors and a multiple of sector_size";
		return -EINVAL;
	}
	if (parse_u64(argv[4], &params->start)) {
		*error = "Invalid start sector on the device";
		return -EINVAL;
	}
	if (!IS_ALIGNED(len, unit_sectors)) {
		*error = "Mapping length is not a multiple of sector_size";
		return -EINVAL;
	}
	return 0;
}

/**
 * coffer_table_emit_options() - print the options as the table line has them
 * @params: what coffer_table_parse() filled in
 * @result: text buffer
 * @maxlen: its size in bytes
 *
 * Prints nothing where every option is at its default, else the count and the
 * options, each with a blank before it.
 *
 * Return: characters written, without the trailing NUL.
 */
unsigned int coffer_table_emit_options(const struct coffer_params *params, char *result,
				       unsigned int maxlen)
{
	const struct coffer_option *opt;
	unsigned int sz = 0, count = 0, pass, i;

	/* first pass counts, second prints */
	for (pass = 0; pass < 2; pass++) {
		if (pass && count)
			DMEMIT(" %u", count);
		for (i = 0; i < ARRAY_SIZE(options); i++) {
			opt = &options[i];
			if (opt->field ? *option_field(opt, params) == opt->unset :
					 !(params->flags & BIT(opt->flag)))
				continue;
			if (!pass)
				count++;
			else if (opt->field)
				DMEMIT(" %s%u", opt->name, *option_field(opt, params));
			else
				DMEMIT(" %s", opt->name);
		}
	}
	return sz;
}
