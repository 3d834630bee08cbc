// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * AES-XTS from the standards, see aes_xts.h. Section numbers are those of
 * FIPS-197 (AES) and IEEE 1619-2007 (XTS).
 */
#include <string.h>

#include "aes_xts.h"

static uint8_t sbox[256], inv_sbox[256];
static uint8_t mul[16][256];	/* gmul() by the few factors that AES uses */

/* FIPS-197, 4.2: multiplication in GF(2^8) modulo x^8 + x^4 + x^3 + x + 1 */
static uint8_t gmul(uint8_t a, uint8_t b)
{
	uint8_t r = 0;

	for (; b; b >>= 1) {
		if (b & 1)
			r ^= a;
		a = (uint8_t)((a << 1) ^ (a & 0x80 ? 0x1b : 0));
	}
	return r;
}

/* 5.1.1: the inverse in GF(2^8), then the affine transformation */
static void make_sbox(void)
{
	unsigned int x, y, bit;

	if (sbox[0])
		return;
	for (x = 0; x < 256; x++)
		for (y = 0; y < 16; y++)
			mul[y][x] = gmul((uint8_t)x, (uint8_t)y);
	for (x = 0; x < 256; x++) {
		uint8_t inv = 0, s = 0;

		for (y = 1; y < 256; y++)
			if (gmul((uint8_t)x, (uint8_t)y) == 1)
				inv = (uint8_t)y;
		for (bit = 0; bit < 8; bit++) {
			uint8_t b = (uint8_t)(inv >> bit ^
					      inv >> ((bit + 4) % 8) ^
					      inv >> ((bit + 5) % 8) ^
					      inv >> ((bit + 6) % 8) ^
					      inv >> ((bit + 7) % 8) ^
					      0x63 >> bit);

			s |= (uint8_t)((b & 1) << bit);
		}
		sbox[x] = s;
		inv_sbox[s] = (uint8_t)x;
	}
}

/* 5.2: key expansion; word i of the schedule is bytes 4*(i%4).. of rk[i/4] */
int aes_setkey(struct aes_key *k, const uint8_t *key, size_t len)
{
	unsigned int nk = (unsigned int)len / 4, i, j;
	uint8_t rcon = 1;

	if (len != 16 && len != 32)
		return -1;
	make_sbox();
	k->rounds = nk + 6;
	for (i = 0; i < 4 * (k->rounds + 1); i++) {
		uint8_t *w = &k->rk[i / 4][4 * (i % 4)];
		uint8_t t[4];

		if (i < nk) {
			memcpy(w, key + 4 * i, 4);
			continue;
		}
		memcpy(t, &k->rk[(i - 1) / 4][4 * ((i - 1) % 4)], 4);
		if (i % nk == 0) {
			uint8_t first = t[0];

			t[0] = (uint8_t)(sbox[t[1]] ^ rcon);
			t[1] = sbox[t[2]];
			t[2] = sbox[t[3]];
			t[3] = sbox[first];
			rcon = gmul(rcon, 2);
		} else if (nk > 6 && i % nk == 4) {
			for (j = 0; j < 4; j++)
				t[j] = sbox[t[j]];
		}
		for (j = 0; j < 4; j++)
			w[j] = k->rk[(i - nk) / 4][4 * ((i - nk) % 4) + j] ^ t[j];
	}
	return 0;
}

static void add_round_key(uint8_t s[16], const uint8_t rk[16])
{
	unsigned int i;

	for (i = 0; i < 16; i++)
		s[i] ^= rk[i];
}

/* 5.1.3 and 5.3.3: each column times a fixed polynomial */
static void mix_columns(uint8_t s[16], const uint8_t poly[4])
{
	unsigned int c, r, i;

	for (c = 0; c < 4; c++) {
		uint8_t col[4];

		memcpy(col, s + 4 * c, 4);
		for (r = 0; r < 4; r++) {
			s[4 * c + r] = 0;
			for (i = 0; i < 4; i++)
				s[4 * c + r] ^= mul[poly[(4 + i - r) % 4]][col[i]];
		}
	}
}

void aes_encrypt(const struct aes_key *k, const uint8_t in[16], uint8_t out[16])
{
	static const uint8_t poly[4] = { 2, 3, 1, 1 };
	unsigned int round, i;
	uint8_t s[16], t[16];

	memcpy(s, in, 16);
	add_round_key(s, k->rk[0]);
	for (round = 1; round <= k->rounds; round++) {
		for (i = 0; i < 16; i++)	/* SubBytes, ShiftRows */
			t[i] = sbox[s[(i + 4 * (i % 4)) % 16]];
		memcpy(s, t, 16);
		if (round < k->rounds)
			mix_columns(s, poly);
		add_round_key(s, k->rk[round]);
	}
	memcpy(out, s, 16);
}

void aes_decrypt(const struct aes_key *k, const uint8_t in[16], uint8_t out[16])
{
	static const uint8_t poly[4] = { 14, 11, 13, 9 };
	unsigned int round, i;
	uint8_t s[16], t[16];

	memcpy(s, in, 16);
	add_round_key(s, k->rk[k->rounds]);
	for (round = k->rounds; round-- > 0;) {
		for (i = 0; i < 16; i++)	/* InvShiftRows, InvSubBytes */
			t[(i + 4 * (i % 4)) % 16] = inv_sbox[s[i]];
		memcpy(s, t, 16);
		add_round_key(s, k->rk[round]);
		if (round)
			mix_columns(s, poly);
	}
	memcpy(out, s, 16);
}

int xts_setkey(struct xts_key *k, const uint8_t *key, size_t len)
{
	if (len != 32 && len != 64)
		return -1;
	if (aes_setkey(&k->data, key, len / 2))
		return -1;
	return aes_setkey(&k->tweak, key + len / 2, len / 2);
}

/* IEEE 1619, 5.2: the tweak times the primitive element, bytes little-endian */
static void next_tweak(uint8_t t[16])
{
	unsigned int carry = 0, i;

	for (i = 0; i < 16; i++) {
		unsigned int v = (unsigned int)t[i] << 1 | carry;

		t[i] = (uint8_t)v;
		carry = v >> 8;
	}
	if (carry)
		t[0] ^= 0x87;
}

static void xts_crypt(const struct xts_key *k, const uint8_t iv[16],
		      const uint8_t *in, uint8_t *out, size_t len,
		      void (*block)(const struct aes_key *, const uint8_t *,
				    uint8_t *))
{
	uint8_t t[16], x[16];
	unsigned int i;

	aes_encrypt(&k->tweak, iv, t);
	for (; len >= 16; len -= 16, in += 16, out += 16) {
		for (i = 0; i < 16; i++)
			x[i] = in[i] ^ t[i];
		block(&k->data, x, x);
		for (i = 0; i < 16; i++)
			out[i] = x[i] ^ t[i];
		next_tweak(t);
	}
}

void xts_encrypt(const struct xts_key *k, const uint8_t iv[16],
		 const uint8_t *in, uint8_t *out, size_t len)
{
	xts_crypt(k, iv, in, out, len, aes_encrypt);
}

void xts_decrypt(const struct xts_key *k, const uint8_t iv[16],
		 const uint8_t *in, uint8_t *out, size_t len)
{
	xts_crypt(k, iv, in, out, len, aes_decrypt);
}

void plain64(uint64_t n, uint8_t iv[16])
{
	unsigned int i;

	memset(iv, 0, 16);
	for (i = 0; i < 8; i++)
		iv[i] = (uint8_t)(n >> (8 * i));
}
