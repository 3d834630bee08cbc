/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef COFFER_CIPHER_H
#define COFFER_CIPHER_H

#include <linux/blk_types.h>
#include <linux/types.h>

struct crypto_sync_skcipher;

struct coffer_cipher {
	struct crypto_sync_skcipher *tfm;	/* all that the key is in: tables share it */
	unsigned int data_unit;		/* bytes */
	unsigned int iv_shift;		/* see coffer_tweak_set() */
};

int coffer_cipher_init(struct coffer_cipher *cipher, unsigned int data_unit,
		       bool iv_large_sectors);
void coffer_cipher_exit(struct coffer_cipher *cipher);
int coffer_cipher_set_key(struct coffer_cipher *cipher, const u8 *key, unsigned int bytes);
const char *coffer_cipher_driver(const struct coffer_cipher *cipher);

unsigned int coffer_cipher_measure(const struct coffer_cipher *cipher, unsigned int ns);

bool coffer_cipher_usable(void);
int coffer_decrypt(const struct coffer_cipher *cipher, struct bio_vec *vecs,
		   const struct bvec_iter *iter);
int coffer_encrypt(const struct coffer_cipher *cipher, const struct bio_vec *vecs,
		   const struct bvec_iter *iter, const struct bio_vec *bounce);

#endif
