// SPDX-License-Identifier: GPL-2.0-only
/*
 * The only file that sees key bytes: from a hex word or the kernel keyring into the
 * cipher.
 *
 * Invariants:
 *  - Key bytes live in one buffer on the stack of coffer_key_set(), which wipes it on
 *    its one way out; afterwards they exist only as the cipher's key schedule.
 *  - A hex word is blanked in the caller's memory as soon as it has been looked at,
 *    whatever came of it: that memory is the ioctl's buffer.
 *  - A key that is refused leaves the old one in place.
 */
#include <crypto/algapi.h>
#include <keys/encrypted-type.h>
#include <keys/trusted-type.h>
#include <keys/user-type.h>
#include <linux/ctype.h>
#include <linux/key.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "cipher.h"
#include "compat.h"
#include "key.h"

#define MAX_KEY_BYTES	64
#define KEY_SIZE_REFUSAL "Only keys of 32 or 64 bytes are supported, see dm-crypt for others"

/* Stands for a hex digit of a key that is set. Not one itself: it cannot load again. */
#define BLANK		'x'

static bool valid_key_bytes(unsigned int bytes)
{
	return bytes == 32 || bytes == 64;
}

/* Payloads as the keyring holds them; called with the key's semaphore held. */

static const void *user_payload(const struct key *key, unsigned int *bytes)
{
	const struct user_key_payload *payload = user_key_payload_locked(key);

	if (!payload)
		return NULL;
	*bytes = payload->datalen;
	return payload->data;
}

#if IS_ENABLED(CONFIG_ENCRYPTED_KEYS)
static const void *encrypted_payload(const struct key *key, unsigned int *bytes)
{
	const struct encrypted_key_payload *payload = key->payload.data[0];

	if (!payload)
		return NULL;
	*bytes = payload->decrypted_datalen;
	return payload->decrypted_data;
}
#endif

#if IS_ENABLED(CONFIG_TRUSTED_KEYS)
static const void *trusted_payload(const struct key *key, unsigned int *bytes)
{
	const struct trusted_key_payload *payload = key->payload.data[0];

	if (!payload)
		return NULL;
	*bytes = payload->key_len;
	return payload->key;
}
#endif

/*
 * Encrypted and trusted keys live in modules of their own, which most machines never
 * load: ask for the symbol at run time rather than depend on it, and keep the module
 * while looking at a payload.
 */
static struct key_type *get_logon_type(void)
{
	return &key_type_logon;
}

static struct key_type *get_user_type(void)
{
	return &key_type_user;
}

static void put_nothing(void)
{
}

#if IS_ENABLED(CONFIG_ENCRYPTED_KEYS)
static struct key_type *get_encrypted_type(void)
{
	return symbol_request(key_type_encrypted);
}

static void put_encrypted_type(void)
{
	symbol_put(key_type_encrypted);
}
#endif

#if IS_ENABLED(CONFIG_TRUSTED_KEYS)
static struct key_type *get_trusted_type(void)
{
	return symbol_request(key_type_trusted);
}

static void put_trusted_type(void)
{
	symbol_put(key_type_trusted);
}
#endif

static const struct coffer_key_type {
	const char *name;
	struct key_type *(*get)(void);
	void (*put)(void);
	const void *(*payload)(const struct key *key, unsigned int *bytes);
} key_types[] = {
	{ "logon", get_logon_type, put_nothing, user_payload },
	{ "user", get_user_type, put_nothing, user_payload },
#if IS_ENABLED(CONFIG_ENCRYPTED_KEYS)
	{ "encrypted", get_encrypted_type, put_encrypted_type, encrypted_payload },
#endif
#if IS_ENABLED(CONFIG_TRUSTED_KEYS)
	{ "trusted", get_trusted_type, put_trusted_type, trusted_payload },
#endif
};

/* Copies the payload, if it has @size bytes. */
static int read_key(const struct coffer_key_type *type, const char *description,
		    u8 *buffer, unsigned int size, char **error)
{
	struct key_type *key_type = type->get();
	unsigned int held = 0;
	const void *payload;
	struct key *key;
	int ret = 0;

	key = key_type ? request_key(key_type, description, NULL) : ERR_PTR(-ENOKEY);
	if (IS_ERR(key)) {
		*error = "No such key in the keyring";
		ret = PTR_ERR(key);
		goto put_type;
	}
	down_read(&key->sem);
	payload = type->payload(key, &held);
	if (!payload) {
		*error = "Key in the keyring is revoked";
		ret = -EKEYREVOKED;
	} else if (held != size) {
		*error = "Key in the keyring has another size than the table says";
		ret = -EINVAL;
	} else {
		memcpy(buffer, payload, size);
	}
	up_read(&key->sem);
	key_put(key);
put_type:
	if (key_type)
		type->put();
	return ret;
}

/* @word is ":<bytes>:<type>:<description>" */
static int read_keyring(const char *word, u8 *buffer, unsigned int *bytes, char **error)
{
	const struct coffer_key_type *type = NULL;
	const char *name, *description;
	unsigned int size = 0, i;

	for (name = word + 1; isdigit(*name) && size <= MAX_KEY_BYTES; name++)
		size = size * 10 + (*name - '0');
	description = *name == ':' ? strchr(name + 1, ':') : NULL;
	if (name == word + 1 || *name++ != ':' || !description) {
		*error = "Malformed key: not :<bytes>:<type>:<description>";
		return -EINVAL;
	}
	if (!valid_key_bytes(size)) {
		*error = KEY_SIZE_REFUSAL;
		return -EINVAL;
	}
	for (i = 0; i < ARRAY_SIZE(key_types); i++)
		if (strlen(key_types[i].name) == description - name &&
		    strstarts(name, key_types[i].name))
			type = &key_types[i];
	if (!type) {
		*error = "Key type must be logon, user, encrypted or trusted";
		return -EINVAL;
	}
	description++;
	/* dm's tables have no quoting, so a blank could not be shown again */
	if (!*description || strpbrk(description, " \t\n\v\f\r")) {
		*error = "Key description is empty or holds blanks";
		return -EINVAL;
	}

	*bytes = size;
	return read_key(type, description, buffer, size, error);
}

static int read_hex(const char *word, u8 *buffer, unsigned int *bytes, char **error)
{
	size_t digits = strlen(word);

	if (digits % 2 || !valid_key_bytes(digits / 2)) {
		*error = KEY_SIZE_REFUSAL;
		return -EINVAL;
	}
	if (hex2bin(buffer, word, digits / 2)) {
		*error = "Key is not hexadecimal";
		return -EINVAL;
	}
	*bytes = digits / 2;
	return 0;
}

/**
 * coffer_key_set() - give the cipher the key that a table or message names
 * @key: what is said about the key; zeroed before the first call
 * @cipher: initialised; no conversion may be running
 * @word: hex digits, or ":<bytes>:<type>:<description>"; hex digits are blanked
 * @error: on failure, the reason in words
 *
 * Once a key has been set, only one of the same size is taken: the size is part of
 * what the table promised.
 *
 * Context: may sleep; reads the keyrings of the calling process.
 * Return: 0 or a negative errno, then the key that was set before still is. (Unless the
 * cipher itself fails, for want of memory: then it refuses to work without a new key.)
 */
int coffer_key_set(struct coffer_key *key, struct coffer_cipher *cipher, char *word,
		   char **error)
{
	bool keyring = *word == ':';
	char *description = NULL;
	u8 buffer[MAX_KEY_BYTES];
	unsigned int bytes;
	int ret;

	if (keyring) {
		ret = read_keyring(word, buffer, &bytes, error);
	} else {
		ret = read_hex(word, buffer, &bytes, error);
		memset(word, BLANK, strlen(word));
	}
	if (ret)
		goto wipe;

	ret = -EINVAL;
	if (key->bytes && key->bytes != bytes) {
		*error = "Key has another size than the one that it would replace";
		goto wipe;
	}
	if (!crypto_memneq(buffer, buffer + bytes / 2, bytes / 2)) {
		*error = "The two halves of the XTS key are equal";
		goto wipe;
	}
	if (keyring) {
		description = kstrdup(word, GFP_KERNEL);
		if (!description) {
			*error = "Out of memory for the key's description";
			ret = -ENOMEM;
			goto wipe;
		}
	}
	ret = coffer_cipher_set_key(cipher, buffer, bytes);
	if (ret) {
		*error = "The cipher refuses the key";
		kfree(description);
		goto wipe;
	}
	kfree(key->description);
	key->description = description;
	key->bytes = bytes;
wipe:
	memzero_explicit(buffer, sizeof(buffer));
	return ret;
}

/**
 * coffer_key_wipe() - overwrite the cipher's key schedule
 * @key: what is said about the key; stays, so that the table can still be printed
 * @cipher: initialised; no conversion may be running
 *
 * The schedule of a random key takes the old one's place: the cipher has no way to
 * forget a key, and a random one can do no harm that all zeros could.
 *
 * Context: may sleep.
 * Return: 0 or a negative errno, then the old key may still be there.
 */
int coffer_key_wipe(const struct coffer_key *key, struct coffer_cipher *cipher)
{
	u8 buffer[MAX_KEY_BYTES];
	int ret;

	get_random_bytes(buffer, sizeof(buffer));
	ret = coffer_cipher_set_key(cipher, buffer, key->bytes);
	memzero_explicit(buffer, sizeof(buffer));
	return ret;
}

/**
 * coffer_key_exit() - free what is said about the key
 * @key: set or zeroed
 */
void coffer_key_exit(struct coffer_key *key)
{
	kfree(key->description);
	key->description = NULL;
}

/**
 * coffer_key_emit() - print the key as a table line may show it
 * @key: set
 * @result: text buffer
 * @maxlen: its size in bytes
 *
 * A keyring key is printed as its description and loads again. A hex key is printed
 * with an x for each digit: the size can be read off, and no tool can take it for a
 * key. (Zeros could be: "cryptsetup resize" loads the key that it reads from a table.)
 *
 * Return: characters written, without the trailing NUL.
 */
unsigned int coffer_key_emit(const struct coffer_key *key, char *result,
			     unsigned int maxlen)
{
	unsigned int sz = 0, i;

	if (key->description) {
		DMEMIT("%s", key->description);
	} else {
		for (i = 0; i < 2 * key->bytes; i++)
			DMEMIT("%c", BLANK);
	}
	return sz;
}
