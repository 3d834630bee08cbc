/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * AES-XTS written from FIPS-197 and IEEE 1619 for the tests. It shares no code
 * and no table with the kernel or a library, and is slow on purpose: every
 * step is the one in the standard. Lengths are multiples of 16 (a data unit
 * always is; there is no ciphertext stealing here).
 */
#ifndef COFFER_TESTS_AES_XTS_H
#define COFFER_TESTS_AES_XTS_H

#include <stddef.h>
#include <stdint.h>

struct aes_key {
	unsigned int rounds;
	uint8_t rk[15][16];
};

struct xts_key {
	struct aes_key data;	/* Key1 of IEEE 1619 */
	struct aes_key tweak;	/* Key2 */
};

/* len: 16 or 32 bytes. Returns 0, or -1 for another length. */
int aes_setkey(struct aes_key *k, const uint8_t *key, size_t len);
void aes_encrypt(const struct aes_key *k, const uint8_t in[16], uint8_t out[16]);
void aes_decrypt(const struct aes_key *k, const uint8_t in[16], uint8_t out[16]);

/* len: 32 or 64 bytes. Returns 0, or -1 for another length. */
int xts_setkey(struct xts_key *k, const uint8_t *key, size_t len);
/* One data unit; in and out may be the same. */
void xts_encrypt(const struct xts_key *k, const uint8_t iv[16],
		 const uint8_t *in, uint8_t *out, size_t len);
void xts_decrypt(const struct xts_key *k, const uint8_t iv[16],
		 const uint8_t *in, uint8_t *out, size_t len);

/* plain64: the number as 64 bit little-endian, then zeros */
void plain64(uint64_t n, uint8_t iv[16]);

#endif
