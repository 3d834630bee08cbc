// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The text of a recovery key: six groups of six letters.
 *
 * 32 letters carry 128 random bits, four a checksum that finds a typing error without a
 * key derivation. The letters are those that lie on the same keys on most keyboard
 * layouts. What the keyslot gets is the text with its dashes, so cryptsetup takes it too.
 */
#include <ctype.h>
#include <stdint.h>
#include <string.h>
#include "recovery_key.h"
#include "util.h"

#define LETTERS "cbdefghijklnrtuv"
#define RANDOM_BYTES 16
#define DATA 32			/* letters */
#define CHECK 4
#define GROUP 6
#define TEXT (DATA + CHECK + (DATA + CHECK) / GROUP - 1)

/* CRC-16/CCITT over the letters: finds each single and each swapped letter. */
static uint16_t checksum(const char *letters)
{
	uint16_t crc = 0xffff;

	for (int i = 0; i < DATA; i++) {
		crc ^= (uint16_t)(unsigned char)letters[i] << 8;
		for (int bit = 0; bit < 8; bit++)
			crc = crc & 0x8000 ? crc << 1 ^ 0x1021 : crc << 1;
	}
	return crc;
}

static void add_check(char *letters)
{
	uint16_t crc = checksum(letters);

	for (int i = 0; i < CHECK; i++)
		letters[DATA + i] = LETTERS[crc >> (12 - 4 * i) & 15];
}

static struct secret *grouped(const char *letters)
{
	struct secret *text = secret_new(TEXT + 1);

	for (int i = 0; i < DATA + CHECK; i++) {
		if (i && i % GROUP == 0)
			text->data[text->len++] = '-';
		text->data[text->len++] = letters[i];
	}
	return text;
}

/**
 * recovery_key_new() - make a recovery key
 * @key: its text, without a 0 at the end in its length
 *
 * Return: 0, or E_FAILED.
 */
int recovery_key_new(struct secret **key)
{
	struct secret *random, *letters;
	int ret = secret_random(&random, RANDOM_BYTES);

	if (ret)
		return ret;
	letters = secret_new(DATA + CHECK);
	for (int i = 0; i < DATA; i++)
		letters->data[i] = LETTERS[(unsigned char)random->data[i / 2] >> (i % 2 ? 0 : 4) & 15];
	add_check(letters->data);
	*key = grouped(letters->data);
	secret_free(random);
	secret_free(letters);
	return 0;
}

/**
 * recovery_key_parse() - what the user typed, as the keyslot knows it
 * @typed: in any case, with or without dashes and blanks
 *
 * Return: the text; NULL if it is no recovery key or its checksum is wrong.
 */
struct secret *recovery_key_parse(const struct secret *typed)
{
	struct secret *letters = secret_new(DATA + CHECK), *text = NULL;
	char check[CHECK];

	for (size_t i = 0; i < typed->len; i++) {
		char c = tolower((unsigned char)typed->data[i]);

		if (c == '-' || c == ' ')
			continue;
		if (!strchr(LETTERS, c) || !c || letters->len == letters->size)
			goto out;
		letters->data[letters->len++] = c;
	}
	if (letters->len != letters->size)
		goto out;
	memcpy(check, letters->data + DATA, CHECK);
	add_check(letters->data);
	if (!memcmp(check, letters->data + DATA, CHECK))
		text = grouped(letters->data);
out:
	secret_free(letters);
	return text;
}
