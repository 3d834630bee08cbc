// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The oracle on the command line: what aes-xts-plain64 must put on the disk.
 *
 *   xts-oracle encrypt|decrypt KEY IV_OFFSET UNIT LARGE   stdin to stdout,
 *       from sector 0 of the mapping on; KEY in hex, UNIT is the bytes of a
 *       data unit, LARGE is 1 for iv_large_sectors
 *   xts-oracle check FILE    verify known answers, one a line: LABEL KEY IV PLAIN CIPHER
 *   xts-oracle evp SEED N    compare N random cases with OpenSSL (exit 77: built without;
 *       the one that has it is xts-evp, so that the guest starts one without libraries)
 *
 * The number of a data unit wraps at 2^64, before the shift of iv_large_sectors.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef HAVE_OPENSSL
#include <openssl/evp.h>
#endif

#include "aes_xts.h"

static void die(const char *what)
{
	fprintf(stderr, "xts-oracle: %s\n", what);
	exit(2);
}

static size_t unhex(const char *s, uint8_t *out, size_t max)
{
	size_t n = strlen(s), i;

	if (n % 2 || n / 2 > max)
		die("bad length of a hex string");
	for (i = 0; i < n / 2; i++) {
		unsigned int v;

		if (sscanf(s + 2 * i, "%2x", &v) != 1)
			die("bad hex digit");
		out[i] = (uint8_t)v;
	}
	return n / 2;
}

static uint64_t number(const char *s)
{
	char *end;
	uint64_t v;

	errno = 0;
	v = strtoull(s, &end, 0);
	if (errno || end == s || *end)
		die("bad number");
	return v;
}

static int stream(char **arg, int decrypt)
{
	uint8_t key[64], iv[16], buf[4096];
	struct xts_key k;
	uint64_t sector = number(arg[1]);
	size_t unit = number(arg[2]), n;
	int large = atoi(arg[3]);
	unsigned int shift = 0;

	if (xts_setkey(&k, key, unhex(arg[0], key, sizeof(key))))
		die("the key is not 32 or 64 bytes");
	if (unit < 512 || unit > sizeof(buf) || (unit & (unit - 1)))
		die("bad data unit");
	if (large)
		while (512u << shift < unit)
			shift++;
	while ((n = fread(buf, 1, unit, stdin)) > 0) {
		if (n != unit)
			die("the input ends inside a data unit");
		plain64(sector >> shift, iv);
		(decrypt ? xts_decrypt : xts_encrypt)(&k, iv, buf, buf, unit);
		if (fwrite(buf, 1, unit, stdout) != unit)
			die("cannot write");
		sector += unit / 512;
	}
	return fflush(stdout) ? 2 : 0;
}

/* FIPS-197: appendix B, C.1 and C.3 */
static int check_blocks(void)
{
	static const char *const v[][3] = {
		{ "2b7e151628aed2a6abf7158809cf4f3c",
		  "3243f6a8885a308d313198a2e0370734",
		  "3925841d02dc09fbdc118597196a0b32" },
		{ "000102030405060708090a0b0c0d0e0f",
		  "00112233445566778899aabbccddeeff",
		  "69c4e0d86a7b0430d8cdb78070b4c55a" },
		{ "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f",
		  "00112233445566778899aabbccddeeff",
		  "8ea2b7ca516745bfeafc49904b496089" },
	};
	uint8_t key[32], in[16], want[16], out[16], back[16];
	struct aes_key k;
	size_t i;
	int bad = 0;

	for (i = 0; i < sizeof(v) / sizeof(v[0]); i++) {
		aes_setkey(&k, key, unhex(v[i][0], key, sizeof(key)));
		unhex(v[i][1], in, sizeof(in));
		unhex(v[i][2], want, sizeof(want));
		aes_encrypt(&k, in, out);
		aes_decrypt(&k, out, back);
		if (memcmp(out, want, 16) || memcmp(in, back, 16)) {
			fprintf(stderr, "xts-oracle: FIPS-197 vector %zu fails\n", i);
			bad++;
		}
	}
	return bad;
}

static int check(const char *path)
{
	char label[64], ks[129], is[33], ps[1025], cs[1025], line[4096];
	uint8_t key[64], iv[16], pt[512], ct[512], out[512];
	int bad = check_blocks(), cases = 0;
	struct xts_key k;
	FILE *f = fopen(path, "r");

	if (!f)
		die("cannot open the file of vectors");
	while (fgets(line, sizeof(line), f)) {
		size_t len;

		if (line[0] == '#' || line[0] == '\n')
			continue;
		if (sscanf(line, "%63s %128s %32s %1024s %1024s", label, ks, is,
			   ps, cs) != 5)
			die("a line of the vectors is not LABEL KEY IV PLAIN CIPHER");
		if (xts_setkey(&k, key, unhex(ks, key, sizeof(key))) ||
		    unhex(is, iv, sizeof(iv)) != sizeof(iv))
			die("bad key or IV in the vectors");
		len = unhex(ps, pt, sizeof(pt));
		if (unhex(cs, ct, sizeof(ct)) != len || len % 16 || !len)
			die("bad lengths in the vectors");
		xts_encrypt(&k, iv, pt, out, len);
		if (memcmp(out, ct, len)) {
			fprintf(stderr, "xts-oracle: %s: wrong ciphertext\n", label);
			bad++;
		}
		xts_decrypt(&k, iv, ct, out, len);
		if (memcmp(out, pt, len)) {
			fprintf(stderr, "xts-oracle: %s: wrong plaintext\n", label);
			bad++;
		}
		cases++;
	}
	fclose(f);
	if (!cases)
		die("no vectors in the file");
	printf("%d vectors, %d wrong\n", cases + 3, bad);
	return bad != 0;
}

#ifdef HAVE_OPENSSL
static uint64_t rnd_state;

static uint64_t rnd(void)
{
	rnd_state ^= rnd_state << 13;
	rnd_state ^= rnd_state >> 7;
	rnd_state ^= rnd_state << 17;
	return rnd_state;
}

static int evp(const char *seed, const char *count)
{
	uint64_t n = number(count), i;
	uint8_t key[64], iv[16], pt[4096], ours[4096], theirs[4096];
	EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
	int bad = 0;

	rnd_state = number(seed) | 1;
	for (i = 0; i < n; i++) {
		size_t klen = rnd() & 1 ? 64 : 32;
		size_t len = 16 << rnd() % 9, j;
		int enc = rnd() & 1, got = 0;
		struct xts_key k;

		for (j = 0; j < klen; j++)
			key[j] = (uint8_t)(rnd() >> 32);
		for (j = 0; j < len; j++)
			pt[j] = (uint8_t)(rnd() >> 32);
		if (rnd() & 1)
			plain64(rnd(), iv);
		else
			for (j = 0; j < 16; j++)
				iv[j] = (uint8_t)(rnd() >> 32);
		xts_setkey(&k, key, klen);
		(enc ? xts_encrypt : xts_decrypt)(&k, iv, pt, ours, len);
		if (!EVP_CipherInit_ex(ctx, klen == 64 ? EVP_aes_256_xts() :
				       EVP_aes_128_xts(), NULL, key, iv, enc) ||
		    !EVP_CipherUpdate(ctx, theirs, &got, pt, (int)len) ||
		    (size_t)got != len)
			die("OpenSSL fails");
		if (memcmp(ours, theirs, len))
			bad++;
	}
	EVP_CIPHER_CTX_free(ctx);
	printf("%" PRIu64 " cases against OpenSSL, %d differ\n", n, bad);
	return bad != 0;
}
#else
static int evp(const char *seed, const char *count)
{
	(void)seed;
	(void)count;
	fprintf(stderr, "xts-oracle: built without OpenSSL\n");
	return 77;
}
#endif

int main(int argc, char **argv)
{
	if (argc == 6 && !strcmp(argv[1], "encrypt"))
		return stream(argv + 2, 0);
	if (argc == 6 && !strcmp(argv[1], "decrypt"))
		return stream(argv + 2, 1);
	if (argc == 3 && !strcmp(argv[1], "check"))
		return check(argv[2]);
	if (argc == 4 && !strcmp(argv[1], "evp"))
		return evp(argv[2], argv[3]);
	die("usage: xts-oracle encrypt|decrypt KEY IV_OFFSET UNIT LARGE | check FILE | evp SEED N");
	return 2;
}
