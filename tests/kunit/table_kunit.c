// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The table line: what is taken and what refused, that what is printed parses to the
 * same, that garbage is refused in order, and that no key is ever in the text. The
 * key's own words are tested here too, as they are part of the line.
 *
 * Each word lies in an allocation of its exact size, so that KASAN sees a read past it.
 */
#include <kunit/test.h>
#include <linux/key-type.h>
#include <linux/module.h>
#include <linux/prandom.h>

/* The keyring of the test: one key, or none. */
static struct key *kunit_keyring;
static const char *kunit_asked_type;
static char kunit_asked_description[64];

static struct key *kunit_request_key(struct key_type *type, const char *description)
{
	kunit_asked_type = type->name;
	/* the caller's own, which it may free */
	strscpy(kunit_asked_description, description);
	if (!kunit_keyring)
		return ERR_PTR(-ENOKEY);
	refcount_inc(&kunit_keyring->usage);
	return kunit_keyring;
}

#define request_key(type, description, info)	kunit_request_key(type, description)

#include "../../driver/table.c"
#include "../../driver/key.c"

#define MAX_WORDS	24
#define MAX_TEXT	8192

static unsigned int seed;
module_param(seed, uint, 0444);
MODULE_PARM_DESC(seed, "for the random tables; 0: another one each time");

static const char key64[] =
	"8d1a5e3bc0f24769a1d08e7f5b3c6240f99b1c2d3e4f5061728394a5b6c7d8e9"
	"0123456789abcdeffedcba98765432100f1e2d3c4b5a69788796a5b4c3d2e1f0";
static const char key32[] =
	"603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4";

struct line {
	unsigned int argc;
	char *argv[MAX_WORDS + 1];
};

static void line_free(struct line *line)
{
	while (line->argc)
		kfree(line->argv[--line->argc]);
}

static void line_add(struct kunit *test, struct line *line, const char *word)
{
	KUNIT_ASSERT_LT(test, line->argc, MAX_WORDS);
	line->argv[line->argc] = kstrdup(word, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, line->argv[line->argc]);
	line->argc++;
}

/* Splits at single blanks; "K" stands for a good key. */
static void line_split(struct kunit *test, struct line *line, const char *text)
{
	char *copy = kstrdup(text, GFP_KERNEL), *rest = copy, *word;

	KUNIT_ASSERT_NOT_NULL(test, copy);
	line->argc = 0;
	while ((word = strsep(&rest, " ")))
		if (*text)
			line_add(test, line, strcmp(word, "K") ? word : key64);
	kfree(copy);
}

static int parse_text(struct kunit *test, struct coffer_params *params, const char *text,
		      sector_t len, char **error)
{
	struct line line;
	int ret;

	*error = NULL;
	line_split(test, &line, text);
	ret = coffer_table_parse(params, line.argc, line.argv, len, error);
	params->key = NULL;
	params->device = NULL;
	line_free(&line);
	return ret;
}

static bool same_params(const struct coffer_params *a, const struct coffer_params *b)
{
	return a->iv_offset == b->iv_offset && a->start == b->start &&
	       a->data_unit == b->data_unit && a->inline_bytes == b->inline_bytes &&
	       a->fanout == b->fanout && a->flags == b->flags;
}

/* ---- accept and refuse ------------------------------------------------------------ */

#define ALL_FLAGS (BIT(COFFER_ALLOW_DISCARDS) | BIT(COFFER_IV_LARGE_SECTORS) | \
		   BIT(COFFER_SAME_CPU_CRYPT) | BIT(COFFER_HIGH_PRIORITY) | \
		   BIT(COFFER_SUBMIT_FROM_CRYPT_CPUS) | BIT(COFFER_NO_READ_WORKQUEUE) | \
		   BIT(COFFER_NO_WRITE_WORKQUEUE) | BIT(COFFER_HANDOVER))

static const struct {
	const char *text;
	sector_t len;
	struct coffer_params want;
} taken[] = {
	{ "aes-xts-plain64 K 0 /dev/x 0", 2048, { .data_unit = 512 } },
	{ "aes-xts-plain64 K 0 /dev/x 0", 1, { .data_unit = 512 } },
	{ "aes-xts-plain64 K 1 8:1 7", 1, { .iv_offset = 1, .start = 7, .data_unit = 512 } },
	{ "aes-xts-plain64 - 0 - 0", 8, { .data_unit = 512 } },
	{ "aes-xts-plain64 K 18446744073709551615 d 18446744073709551615", 8,
	  { .iv_offset = U64_MAX, .start = U64_MAX, .data_unit = 512 } },
	{ "aes-xts-plain64 K 007 d 010", 8, { .iv_offset = 7, .start = 10, .data_unit = 512 } },
	{ "aes-xts-plain64 K 0 d 0 0", 8, { .data_unit = 512 } },
	{ "aes-xts-plain64 K 0 d 0 1 allow_discards", 8,
	  { .data_unit = 512, .flags = BIT(COFFER_ALLOW_DISCARDS) } },
	{ "aes-xts-plain64 K 2 d 1 1 sector_size:1024", 2,
	  { .iv_offset = 2, .start = 1, .data_unit = 1024 } },
	{ "aes-xts-plain64 K 8 d 1 2 sector_size:4096 iv_large_sectors", 16,
	  { .iv_offset = 8, .start = 1, .data_unit = 4096, .flags = BIT(COFFER_IV_LARGE_SECTORS) } },
	{ "aes-xts-plain64 K 18446744073709551608 d 0 1 sector_size:4096", 8,
	  { .iv_offset = U64_MAX - 7, .data_unit = 4096 } },
	{ "aes-xts-plain64 K 0 d 0 1 iv_large_sectors", 1,
	  { .data_unit = 512, .flags = BIT(COFFER_IV_LARGE_SECTORS) } },
	/* as in dm-crypt */
	{ "aes-xts-plain64 K 0 d 0 1 ALLOW_discards", 8,
	  { .data_unit = 512, .flags = BIT(COFFER_ALLOW_DISCARDS) } },
	{ "aes-xts-plain64 K 0 d 0 2 inline:1 fanout:1", 8,
	  { .data_unit = 512, .inline_bytes = 1, .fanout = 1 } },
	{ "aes-xts-plain64 K 0 d 0 2 inline:4294967295 fanout:1024", 8,
	  { .data_unit = 512, .inline_bytes = U32_MAX, .fanout = 1024 } },
	{ "aes-xts-plain64 K 0 d 0 11 handover no_write_workqueue no_read_workqueue iv_large_sectors "
	  "fanout:3 submit_from_crypt_cpus high_priority same_cpu_crypt inline:16384 "
	  "sector_size:2048 allow_discards", 4,
	  { .data_unit = 2048, .inline_bytes = 16384, .fanout = 3, .flags = ALL_FLAGS } },
};

static void table_accepts(struct kunit *test)
{
	struct coffer_params params;
	unsigned int i;
	char *error;

	for (i = 0; i < ARRAY_SIZE(taken); i++) {
		memset(&params, 0xa5, sizeof(params));
		KUNIT_EXPECT_EQ_MSG(test, parse_text(test, &params, taken[i].text, taken[i].len,
						     &error), 0, "%s: %s", taken[i].text, error);
		KUNIT_EXPECT_TRUE_MSG(test, same_params(&params, &taken[i].want), "%s",
				      taken[i].text);
	}
}

static const struct {
	const char *text;
	sector_t len;
	const char *reason;
} refused[] = {
	{ "", 8, "arguments" },
	{ "aes-xts-plain64", 8, "arguments" },
	{ "aes-xts-plain64 K", 8, "arguments" },
	{ "aes-xts-plain64 K 0", 8, "arguments" },
	{ "aes-xts-plain64 K 0 d", 8, "arguments" },
	{ "aes-cbc-essiv:sha256 K 0 d 0", 8, "cipher" },
	{ "aes-xts-plain64x K 0 d 0", 8, "cipher" },
	{ "aes-xts-plain K 0 d 0", 8, "cipher" },
	{ "aes-xts-plain64be K 0 d 0", 8, "cipher" },
	{ "AES-XTS-PLAIN64 K 0 d 0", 8, "cipher" },
	{ "capi:xts(aes)-plain64 K 0 d 0", 8, "cipher" },
	{ " K 0 d 0", 8, "cipher" },
	{ "aes-xts-plain64 K x d 0", 8, "iv_offset" },
	{ "aes-xts-plain64 K  d 0", 8, "iv_offset" },
	{ "aes-xts-plain64 K -1 d 0", 8, "iv_offset" },
	{ "aes-xts-plain64 K +1 d 0", 8, "iv_offset" },
	{ "aes-xts-plain64 K 0x8 d 0", 8, "iv_offset" },
	{ "aes-xts-plain64 K 1x d 0", 8, "iv_offset" },
	{ "aes-xts-plain64 K 18446744073709551616 d 0", 8, "iv_offset" },
	{ "aes-xts-plain64 K 99999999999999999999999999999999 d 0", 8, "iv_offset" },
	{ "aes-xts-plain64 K 0 d x", 8, "start" },
	{ "aes-xts-plain64 K 0 d -0", 8, "start" },
	{ "aes-xts-plain64 K 0 d +0", 8, "start" },
	{ "aes-xts-plain64 K 0 d 0.0", 8, "start" },
	{ "aes-xts-plain64 K 0 d 18446744073709551616", 8, "start" },
	{ "aes-xts-plain64 K 0 d ", 8, "start" },
	{ "aes-xts-plain64 K 1 d 0 1 sector_size:1024", 8, "iv_offset" },
	{ "aes-xts-plain64 K 4 d 0 1 sector_size:4096", 8, "iv_offset" },
	{ "aes-xts-plain64 K 1 d 0 2 sector_size:4096 iv_large_sectors", 8, "iv_offset" },
	{ "aes-xts-plain64 K 18446744073709551615 d 0 1 sector_size:1024", 8, "iv_offset" },
	{ "aes-xts-plain64 K 0 d 0 1 sector_size:1024", 1, "length" },
	{ "aes-xts-plain64 K 0 d 0 1 sector_size:4096", 12, "length" },
	{ "aes-xts-plain64 K 0 d 0 1 sector_size:4096", 1ULL << 40 | 1, "length" },
	{ "aes-xts-plain64 K 0 d 0 allow_discards", 8, "count" },
	{ "aes-xts-plain64 K 0 d 0 -1", 8, "count" },
	{ "aes-xts-plain64 K 0 d 0 +1 allow_discards", 8, "count" },
	{ "aes-xts-plain64 K 0 d 0 0x1 allow_discards", 8, "count" },
	{ "aes-xts-plain64 K 0 d 0 4294967297 allow_discards", 8, "count" },
	{ "aes-xts-plain64 K 0 d 0 ", 8, "count" },
	{ "aes-xts-plain64 K 0 d 0 1", 8, "Fewer" },
	{ "aes-xts-plain64 K 0 d 0 2 allow_discards", 8, "Fewer" },
	{ "aes-xts-plain64 K 0 d 0 4294967295 allow_discards", 8, "Fewer" },
	{ "aes-xts-plain64 K 0 d 0 0 allow_discards", 8, "garbage" },
	{ "aes-xts-plain64 K 0 d 0 1 allow_discards iv_large_sectors", 8, "garbage" },
	{ "aes-xts-plain64 K 0 d 0 1 nonsense", 8, "Unknown" },
	{ "aes-xts-plain64 K 0 d 0 1 ", 8, "Unknown" },
	{ "aes-xts-plain64 K 0 d 0 1 allow_discard", 8, "Unknown" },
	{ "aes-xts-plain64 K 0 d 0 1 allow_discardss", 8, "Unknown" },
	{ "aes-xts-plain64 K 0 d 0 1 allow_discards:1", 8, "Unknown" },
	{ "aes-xts-plain64 K 0 d 0 1 Sector_size:512", 8, "Unknown" },
	{ "aes-xts-plain64 K 0 d 0 1 sector_size", 8, "Unknown" },
	{ "aes-xts-plain64 K 0 d 0 2 sector_size 512", 8, "Unknown" },
	{ "aes-xts-plain64 K 0 d 0 1 integrity:16:none", 8, "integrity" },
	{ "aes-xts-plain64 K 0 d 0 2 allow_discards Allow_Discards", 8, "twice" },
	{ "aes-xts-plain64 K 0 d 0 2 sector_size:512 sector_size:512", 8, "twice" },
	{ "aes-xts-plain64 K 0 d 0 3 inline:1 fanout:1 inline:1", 8, "twice" },
	{ "aes-xts-plain64 K 0 d 0 1 sector_size:", 8, "sector_size" },
	{ "aes-xts-plain64 K 0 d 0 1 sector_size:0", 8, "sector_size" },
	{ "aes-xts-plain64 K 0 d 0 1 sector_size:256", 8, "sector_size" },
	{ "aes-xts-plain64 K 0 d 0 1 sector_size:513", 8, "sector_size" },
	{ "aes-xts-plain64 K 0 d 0 1 sector_size:1536", 8, "sector_size" },
	{ "aes-xts-plain64 K 0 d 0 1 sector_size:8192", 8, "sector_size" },
	{ "aes-xts-plain64 K 0 d 0 1 sector_size:-512", 8, "sector_size" },
	{ "aes-xts-plain64 K 0 d 0 1 sector_size:+512", 8, "sector_size" },
	{ "aes-xts-plain64 K 0 d 0 1 sector_size:0x200", 8, "sector_size" },
	{ "aes-xts-plain64 K 0 d 0 1 sector_size:4096k", 8, "sector_size" },
	{ "aes-xts-plain64 K 0 d 0 1 sector_size:4294967808", 8, "sector_size" },
	{ "aes-xts-plain64 K 0 d 0 1 inline:0", 8, "inline" },
	{ "aes-xts-plain64 K 0 d 0 1 inline:4294967296", 8, "inline" },
	{ "aes-xts-plain64 K 0 d 0 1 inline:x", 8, "inline" },
	{ "aes-xts-plain64 K 0 d 0 1 fanout:0", 8, "fanout" },
	{ "aes-xts-plain64 K 0 d 0 1 fanout:1025", 8, "fanout" },
	{ "aes-xts-plain64 K 0 d 0 1 fanout:", 8, "fanout" },
};

static void table_refuses(struct kunit *test)
{
	struct coffer_params params;
	unsigned int i;
	char *error;

	for (i = 0; i < ARRAY_SIZE(refused); i++) {
		KUNIT_EXPECT_EQ_MSG(test, parse_text(test, &params, refused[i].text,
						     refused[i].len, &error), -EINVAL,
				    "\"%s\" was taken", refused[i].text);
		KUNIT_EXPECT_TRUE_MSG(test, error && strstr(error, refused[i].reason),
				      "\"%s\": %s", refused[i].text, error);
	}
}

/* ---- printing ------------------------------------------------------------------------ */

static const char * const option_words[] = {
	"allow_discards", "same_cpu_crypt", "high_priority", "submit_from_crypt_cpus",
	"no_read_workqueue", "no_write_workqueue", "sector_size:4096", "iv_large_sectors",
	"handover", "inline:65536", "fanout:7",
};

static unsigned int count_words(const char *text)
{
	unsigned int n = 0;

	for (; *text; text++)
		n += *text == ' ';
	return n;
}

/* Every subset of the options, in an order that differs from subset to subset. */
static void table_round_trip(struct kunit *test)
{
	char *text = kunit_kmalloc(test, MAX_TEXT, GFP_KERNEL);
	char *printed = kunit_kmalloc(test, MAX_TEXT, GFP_KERNEL);
	unsigned int mask, i, n = ARRAY_SIZE(option_words);
	char *again = kunit_kmalloc(test, MAX_TEXT, GFP_KERNEL);
	struct coffer_params params, params2;
	char *error;

	KUNIT_ASSERT_NOT_NULL(test, text);
	KUNIT_ASSERT_NOT_NULL(test, printed);
	KUNIT_ASSERT_NOT_NULL(test, again);
	/* an option that this test does not know would go untested */
	KUNIT_ASSERT_EQ(test, n, ARRAY_SIZE(options));
	KUNIT_ASSERT_NE(test, n % 7, 0);

	for (mask = 0; mask < BIT(n); mask++) {
		unsigned int len = scnprintf(text, MAX_TEXT, "aes-xts-plain64 K 16 d 3 %u",
					     hweight32(mask));

		for (i = 0; i < n; i++) {
			/* 7 and the number of options have no common divisor: each once */
			unsigned int word = (i * 7 + mask) % n;

			if (mask & BIT(word))
				len += scnprintf(text + len, MAX_TEXT - len, " %s",
						 option_words[word]);
		}
		KUNIT_ASSERT_EQ_MSG(test, parse_text(test, &params, text, 32, &error), 0, "%s: %s",
				    text, error);
		len = coffer_table_emit_options(&params, printed, MAX_TEXT);
		if (!mask)
			printed[len] = '\0';
		KUNIT_EXPECT_EQ(test, len, strlen(printed));
		KUNIT_EXPECT_EQ_MSG(test, count_words(printed), mask ? hweight32(mask) + 1 : 0,
				    "%s: %s", text, printed);
		scnprintf(text, MAX_TEXT, "aes-xts-plain64 K 16 d 3%s", printed);
		KUNIT_ASSERT_EQ_MSG(test, parse_text(test, &params2, text, 32, &error), 0,
				    "%s: %s", text, error);
		KUNIT_EXPECT_TRUE_MSG(test, same_params(&params, &params2), "%s", text);
		again[coffer_table_emit_options(&params2, again, MAX_TEXT)] = '\0';
		KUNIT_EXPECT_STREQ(test, printed, again);
	}
}

/* A buffer that is too short is filled and never overrun: KASAN watches its end. */
static void table_short_buffer(struct kunit *test)
{
	struct coffer_params params = {
		.data_unit = 4096, .inline_bytes = U32_MAX, .fanout = 1024, .flags = ALL_FLAGS,
	};
	struct coffer_key key = { .bytes = 64 };
	char *whole = kunit_kmalloc(test, MAX_TEXT, GFP_KERNEL);
	unsigned int full, size, n;
	char *text;

	KUNIT_ASSERT_NOT_NULL(test, whole);
	full = coffer_table_emit_options(&params, whole, MAX_TEXT);
	for (size = 0; size <= full + 1; size++) {
		text = kmalloc(size, GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, text);
		n = coffer_table_emit_options(&params, text, size);
		KUNIT_EXPECT_EQ(test, n, size ? min(size - 1, full) : 0);
		KUNIT_EXPECT_TRUE(test, !memcmp(text, whole, n));
		kfree(text);
	}
	full = coffer_key_emit(&key, whole, MAX_TEXT);
	KUNIT_EXPECT_EQ(test, full, 128);
	for (size = 0; size <= full + 1; size++) {
		text = kmalloc(size, GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, text);
		n = coffer_key_emit(&key, text, size);
		KUNIT_EXPECT_EQ(test, n, size ? min(size - 1, full) : 0);
		kfree(text);
	}
}

/* ---- garbage --------------------------------------------------------------------------- */

static const char * const dictionary[] = {
	"aes-xts-plain64", "aes", "K", ":64:logon:coffer:x", "0", "1", "8", "16", "/dev/x", "8:1", "2", "3",
	"18446744073709551615", "18446744073709551616", "4294967295", "4294967296", "-1", "+1",
	"0x10", "", " ", ":", "sector_size:", "sector_size:512", "sector_size:4096", "sector_size:1",
	"inline:", "inline:0", "inline:4096", "fanout:2", "fanout:9999999999", "allow_discards",
	"iv_large_sectors", "same_cpu_crypt", "high_priority", "no_read_workqueue",
	"no_write_workqueue", "submit_from_crypt_cpus", "integrity:16:aead",
};

static u32 below(struct rnd_state *rnd, u32 n)
{
	return prandom_u32_state(rnd) % n;
}

static char *random_word(struct rnd_state *rnd)
{
	const char *from = dictionary[below(rnd, ARRAY_SIZE(dictionary))];
	size_t len, i;
	char *word;

	switch (below(rnd, 16)) {
	case 0:		/* bytes */
		len = below(rnd, below(rnd, 50) ? 40 : 5000);
		word = kmalloc(len + 1, GFP_KERNEL);
		for (i = 0; word && i < len; i++)
			word[i] = 1 + below(rnd, 255);
		if (word)
			word[len] = '\0';
		return word;
	case 1:		/* a number */
		return kasprintf(GFP_KERNEL, "%llu", (u64)prandom_u32_state(rnd) <<
				 below(rnd, 33) >> below(rnd, 32));
	case 2:		/* two of them in one */
		return kasprintf(GFP_KERNEL, "%s%s", from,
				 dictionary[below(rnd, ARRAY_SIZE(dictionary))]);
	}
	word = kstrdup(strcmp(from, "K") ? from : key32, GFP_KERNEL);
	len = word ? strlen(word) : 0;
	if (len && !below(rnd, 6)) {
		char *at = word + below(rnd, len);

		switch (below(rnd, 3)) {
		case 0:
			*at = 1 + below(rnd, 255);
			break;
		case 1:
			*at = "0123456789:_-"[below(rnd, 13)];
			break;
		default:
			/* a shorter one, in memory of its size */
			*at = '\0';
			from = word;
			word = kstrdup(from, GFP_KERNEL);
			kfree(from);
		}
	}
	return word;
}

/* Often a good line with little wrong, so that the depths are reached. */
static void random_line(struct rnd_state *rnd, struct line *line)
{
	static const char * const good[] = { "aes-xts-plain64", key64, "8", "/dev/x", "16" };
	unsigned int opts = below(rnd, 4) ? below(rnd, 6) : below(rnd, 16), i;

	for (i = 0; i < ARRAY_SIZE(good); i++)
		line->argv[i] = kstrdup(good[i], GFP_KERNEL);
	line->argc = ARRAY_SIZE(good);
	if (below(rnd, 8))
		line->argv[line->argc++] = kasprintf(GFP_KERNEL, "%u",
						     below(rnd, 8) ? opts : below(rnd, 12));
	for (i = 0; i < opts; i++)
		line->argv[line->argc++] = below(rnd, 6) ?
			kstrdup(option_words[below(rnd, ARRAY_SIZE(option_words))], GFP_KERNEL) :
			random_word(rnd);
	for (i = below(rnd, 3); i--;) {
		unsigned int at = below(rnd, line->argc);

		kfree(line->argv[at]);
		line->argv[at] = random_word(rnd);
	}
	if (!below(rnd, 12)) {
		unsigned int keep = below(rnd, line->argc + 1);

		while (line->argc > keep)
			kfree(line->argv[--line->argc]);
	}
}

static bool sane(const struct coffer_params *p, sector_t len)
{
	unsigned int sectors = p->data_unit / 512;

	return p->key && p->device && p->data_unit >= 512 && p->data_unit <= 4096 &&
	       is_power_of_2(p->data_unit) && !(p->iv_offset % sectors) && !(len % sectors) &&
	       p->fanout <= 1024 && !(p->flags & ~ALL_FLAGS);
}

static void table_garbage(struct kunit *test)
{
	/* KASAN and kmemleak take two stack traces for each word: 24 s for 20000 */
	const unsigned int lines = IS_ENABLED(CONFIG_KASAN) ? 5000 : 20000;
	static const sector_t lengths[] = { 0, 1, 2, 8, 4096, 4097, U64_MAX, U64_MAX - 7 };
	char *text = kunit_kmalloc(test, MAX_TEXT, GFP_KERNEL);
	unsigned int took = 0, drawn = seed ?: get_random_u32() ?: 1, i, w;
	struct rnd_state rnd;

	KUNIT_ASSERT_NOT_NULL(test, text);
	kunit_info(test, "seed=%u repeats this\n", drawn);
	prandom_seed_state(&rnd, drawn);
	for (i = 0; i < lines; i++) {
		sector_t len = lengths[below(&rnd, ARRAY_SIZE(lengths))];
		struct coffer_params params, params2;
		char *error = NULL, *error2;
		struct line line;
		int ret, n;

		random_line(&rnd, &line);
		for (w = 0; w < line.argc; w++)
			KUNIT_ASSERT_NOT_NULL(test, line.argv[w]);
		ret = coffer_table_parse(&params, line.argc, line.argv, len, &error);
		if (ret) {
			KUNIT_EXPECT_EQ_MSG(test, ret, -EINVAL, "line %u", i);
			KUNIT_EXPECT_TRUE_MSG(test, error && *error, "line %u", i);
		} else {
			took++;
			KUNIT_EXPECT_TRUE_MSG(test, sane(&params, len), "line %u", i);
			KUNIT_EXPECT_PTR_EQ(test, params.key, line.argv[1]);
			KUNIT_EXPECT_PTR_EQ(test, params.device, (const char *)line.argv[3]);
			n = scnprintf(text, MAX_TEXT, "aes-xts-plain64 K %llu d %llu",
				      params.iv_offset, (u64)params.start);
			n += coffer_table_emit_options(&params, text + n, MAX_TEXT - n);
			text[n] = '\0';
			KUNIT_EXPECT_EQ_MSG(test, parse_text(test, &params2, text, len, &error2), 0,
					    "line %u: %s: %s", i, text, error2);
			KUNIT_EXPECT_TRUE_MSG(test, same_params(&params, &params2), "line %u: %s",
					      i, text);
		}
		line_free(&line);
		if (!(i % 64))
			cond_resched();
	}
	/* a generator that only reaches one verdict tests nothing */
	KUNIT_EXPECT_GT(test, took, lines / 20);
	KUNIT_EXPECT_LT(test, took, lines - lines / 20);
}

/* ---- the key's words --------------------------------------------------------------------- */

/* No eight digits of @hex in a row in @text. */
static bool shows(const char *text, const char *hex)
{
	char window[9];

	for (; strlen(hex) >= 8; hex++) {
		memcpy(window, hex, 8);
		window[8] = '\0';
		if (strstr(text, window))
			return true;
	}
	return false;
}

struct key_fixture {
	struct coffer_cipher cipher;
	struct coffer_key key;
	struct bio_vec vec;
	char *text;
};

/* What the key that is set makes of 512 zeros at sector 7; tells keys apart. */
static u64 fingerprint(struct kunit *test)
{
	struct key_fixture *f = test->priv;
	struct bvec_iter iter = { .bi_size = 512, .bi_sector = 7 };
	u64 *data = page_address(f->vec.bv_page);

	memset(data, 0, 512);
	KUNIT_EXPECT_EQ(test, coffer_decrypt(&f->cipher, &f->vec, &iter), 0);
	return *data;
}

/* The whole line as the target prints it. */
static const char *printed_line(struct kunit *test)
{
	static const struct coffer_params params = { .data_unit = 4096, .flags = ALL_FLAGS };
	struct key_fixture *f = test->priv;
	unsigned int n;

	n = scnprintf(f->text, MAX_TEXT, "aes-xts-plain64 ");
	n += coffer_key_emit(&f->key, f->text + n, MAX_TEXT - n);
	n += scnprintf(f->text + n, MAX_TEXT - n, " 0 8:1 0");
	n += coffer_table_emit_options(&params, f->text + n, MAX_TEXT - n);
	return f->text;
}

/* Sets the key; afterwards @word must be blank in memory if it was digits. */
static int set(struct kunit *test, const char *word, char **error)
{
	struct key_fixture *f = test->priv;
	char *copy = kstrdup(word, GFP_KERNEL);
	int ret;

	KUNIT_ASSERT_NOT_NULL(test, copy);
	*error = NULL;
	ret = coffer_key_set(&f->key, &f->cipher, copy, error);
	if (*word == ':')
		KUNIT_EXPECT_STREQ(test, copy, word);
	else
		KUNIT_EXPECT_TRUE_MSG(test, !memchr_inv(copy, 'x', strlen(word)) &&
				      strlen(copy) == strlen(word), "not blanked: %s", copy);
	KUNIT_EXPECT_TRUE(test, !ret == !*error);
	if (*error)
		KUNIT_EXPECT_FALSE(test, shows(*error, word));
	kfree(copy);
	return ret;
}

static void key_hex(struct kunit *test)
{
	struct key_fixture *f = test->priv;
	char *upper = kunit_kstrdup(test, key64, GFP_KERNEL), *p;
	const char *line;
	char *error;
	u64 print;

	KUNIT_ASSERT_NOT_NULL(test, upper);
	for (p = upper; *p; p++)
		*p = toupper(*p);
	KUNIT_EXPECT_EQ(test, set(test, key64, &error), 0);
	KUNIT_EXPECT_EQ(test, f->key.bytes, 64);
	print = fingerprint(test);
	line = printed_line(test);
	KUNIT_EXPECT_FALSE_MSG(test, shows(line, key64), "%s", line);
	/* as long as the key, and none that loads */
	KUNIT_EXPECT_EQ(test, strspn(line + strlen("aes-xts-plain64 "), "x"), 128);

	KUNIT_EXPECT_EQ(test, set(test, upper, &error), 0);
	KUNIT_EXPECT_EQ(test, fingerprint(test), print);

	KUNIT_EXPECT_EQ(test, coffer_key_wipe(&f->key, &f->cipher), 0);
	KUNIT_EXPECT_NE(test, fingerprint(test), print);
	KUNIT_EXPECT_EQ(test, f->key.bytes, 64);
	KUNIT_EXPECT_EQ(test, set(test, key64, &error), 0);
	KUNIT_EXPECT_EQ(test, fingerprint(test), print);
}

static void key_short(struct kunit *test)
{
	struct key_fixture *f = test->priv;
	const char *line;
	char *error;

	KUNIT_EXPECT_EQ(test, set(test, key32, &error), 0);
	KUNIT_EXPECT_EQ(test, f->key.bytes, 32);
	line = printed_line(test);
	KUNIT_EXPECT_FALSE_MSG(test, shows(line, key32), "%s", line);
	KUNIT_EXPECT_EQ(test, strspn(line + strlen("aes-xts-plain64 "), "x"), 64);
}

/* Each is refused with a reason, and the key that was set stays. */
static void key_refusals(struct kunit *test)
{
	static const struct {
		const char *word, *reason;
	} bad[] = {
		{ "", "32 or 64" },
		{ "-", "32 or 64" },
		{ "0", "32 or 64" },
		{ "8d1a5e3bc0f24769a1d08e7f5b3c6240", "32 or 64" },
		{ "8d1a5e3bc0f24769a1d08e7f5b3c6240f99b1c2d3e4f5061", "32 or 64" },
		{ "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff", "32 or 64" },
		{ "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff40", "32 or 64" },
		{ "g03deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4", "hexadecimal" },
		{ "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dffg", "hexadecimal" },
		{ "603deb1015ca71be2b73aef0857d7781 f352c073b6108d72d9810a30914dff4", "hexadecimal" },
		{ "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "hexadecimal" },
		{ key32, "another size" },
		{ "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4"
		  "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4", "equal" },
		{ "00000000000000000000000000000000000000000000000000000000000000000"
		  "000000000000000000000000000000000000000000000000000000000000000", "equal" },
		{ ":", "" }, { "::", "" }, { ":::", "" }, { ":64", "" }, { ":64:", "" }, { ":64::", "" },
		{ ":64:logon", "" }, { ":64:logon:", "description" }, { ":x:logon:a:b", "" },
		{ ":-64:logon:a:b", "" }, { ":+64:logon:a:b", "" }, { ":0x40:logon:a:b", "" },
		{ ":64x:logon:a:b", "" }, { ":4294967360:logon:a:b", "" }, { ":48:logon:a:b", "32 or 64" },
		{ ":64:logo:a:b", "type" }, { ":64:logonn:a:b", "type" }, { ":64::a:b", "type" },
		{ ":64:Logon:a:b", "type" }, { ":64:big_key:a:b", "type" },
		{ ":64:logon:a b", "description" }, { ":64:logon:a\tb", "description" },
		{ ":64:logon:a:b", "No such key" }, { ":64:user:a:b", "No such key" },
	};
	u64 print;
	char *error;
	unsigned int i;
	int ret;

	KUNIT_ASSERT_EQ(test, set(test, key64, &error), 0);
	print = fingerprint(test);
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		ret = set(test, bad[i].word, &error);
		KUNIT_EXPECT_LT_MSG(test, ret, 0, "taken: %s", bad[i].word);
		KUNIT_EXPECT_TRUE_MSG(test, error && strstr(error, bad[i].reason), "%s: %s",
				      bad[i].word, error);
		KUNIT_EXPECT_EQ_MSG(test, fingerprint(test), print, "after %s", bad[i].word);
	}
}

/* A key in the test's keyring. The driver must give back what it takes. */
static struct key *new_key(struct kunit *test, void *payload)
{
	struct key *key = kunit_kzalloc(test, sizeof(*key), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, key);
	refcount_set(&key->usage, 1);
	init_rwsem(&key->sem);
#ifdef KEY_DEBUGGING
	key->magic = KEY_DEBUG_MAGIC;
#endif
	key->payload.data[0] = payload;
	return key;
}

static void key_keyring(struct kunit *test)
{
	static const char word[] = ":64:logon:coffer:a:b c";
	struct user_key_payload *payload = kunit_kzalloc(test, sizeof(*payload) + 64, GFP_KERNEL);
	struct encrypted_key_payload sealed = {};
	char good[] = ":64:logon:coffer:a:b";
	const char *line;
	char *error;
	u64 print;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, payload);
	payload->datalen = 64;
	KUNIT_ASSERT_EQ(test, hex2bin((u8 *)payload->data, key64, 64), 0);
	kunit_keyring = new_key(test, payload);

	KUNIT_EXPECT_LT(test, set(test, word, &error), 0);	/* a blank */
	KUNIT_EXPECT_EQ(test, set(test, good, &error), 0);
	KUNIT_EXPECT_STREQ(test, kunit_asked_type, "logon");
	KUNIT_EXPECT_STREQ(test, kunit_asked_description, "coffer:a:b");
	print = fingerprint(test);
	line = printed_line(test);
	KUNIT_EXPECT_FALSE(test, shows(line, key64));
	KUNIT_EXPECT_NOT_NULL(test, strstr(line, "plain64 :64:logon:coffer:a:b 0 "));
	KUNIT_EXPECT_EQ(test, set(test, ":64:user:coffer:c", &error), 0);
	KUNIT_EXPECT_STREQ(test, kunit_asked_type, "user");
	KUNIT_EXPECT_NOT_NULL(test, strstr(printed_line(test), " :64:user:coffer:c "));
	/* the same key in digits: what is printed changes to blanks */
	KUNIT_EXPECT_EQ(test, set(test, key64, &error), 0);
	KUNIT_EXPECT_EQ(test, fingerprint(test), print);
	KUNIT_EXPECT_NULL(test, strstr(printed_line(test), "coffer:c"));

	/* refused: another size, equal halves, revoked */
	for (i = 0; i <= 96; i++) {
		if (i == 64)
			continue;
		payload->datalen = i;
		KUNIT_EXPECT_EQ(test, set(test, good, &error), -EINVAL);
	}
	payload->datalen = 64;
	memcpy(payload->data + 32, payload->data, 32);
	KUNIT_EXPECT_EQ(test, set(test, good, &error), -EINVAL);
	kunit_keyring->payload.data[0] = NULL;
	KUNIT_EXPECT_EQ(test, set(test, good, &error), -EKEYREVOKED);
	KUNIT_EXPECT_EQ(test, fingerprint(test), print);

	if (IS_ENABLED(CONFIG_ENCRYPTED_KEYS)) {
		KUNIT_ASSERT_EQ(test, hex2bin((u8 *)payload->data, key64, 64), 0);
		sealed.decrypted_data = (u8 *)payload->data;
		sealed.decrypted_datalen = 64;
		kunit_keyring->payload.data[0] = &sealed;
		KUNIT_EXPECT_EQ(test, set(test, ":64:encrypted:d", &error), 0);
		KUNIT_EXPECT_STREQ(test, kunit_asked_type, "encrypted");
		KUNIT_EXPECT_STREQ(test, kunit_asked_description, "d");
		KUNIT_EXPECT_EQ(test, fingerprint(test), print);
		sealed.decrypted_datalen = 63;
		KUNIT_EXPECT_EQ(test, set(test, ":64:encrypted:d", &error), -EINVAL);
	}
	KUNIT_EXPECT_EQ(test, refcount_read(&kunit_keyring->usage), 1);
	KUNIT_EXPECT_FALSE(test, rwsem_is_locked(&kunit_keyring->sem));
}

static int table_init(struct kunit *test)
{
	struct key_fixture *f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);
	struct page *page;

	kunit_keyring = NULL;
	KUNIT_ASSERT_NOT_NULL(test, f);
	test->priv = f;
	f->text = kunit_kzalloc(test, MAX_TEXT, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, f->text);
	page = alloc_page(GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, page);
	bvec_set_page(&f->vec, page, 512, 0);
	KUNIT_ASSERT_EQ(test, coffer_cipher_init(&f->cipher, 512, false), 0);
	return 0;
}

static void table_exit(struct kunit *test)
{
	struct key_fixture *f = test->priv;

	if (!f)
		return;
	coffer_key_exit(&f->key);
	coffer_cipher_exit(&f->cipher);
	if (f->vec.bv_page)
		__free_page(f->vec.bv_page);
}

static struct kunit_case table_cases[] = {
	KUNIT_CASE(table_accepts),
	KUNIT_CASE(table_refuses),
	KUNIT_CASE(table_round_trip),
	KUNIT_CASE(table_short_buffer),
	KUNIT_CASE(table_garbage),
	KUNIT_CASE(key_hex),
	KUNIT_CASE(key_short),
	KUNIT_CASE(key_refusals),
	KUNIT_CASE(key_keyring),
	{}
};

static struct kunit_suite table_suite = {
	.name = "coffer-table",
	.init = table_init,
	.exit = table_exit,
	.test_cases = table_cases,
};
kunit_test_suite(table_suite);

MODULE_DESCRIPTION("KUnit tests of dm-coffer");
MODULE_LICENSE("GPL");
