// SPDX-License-Identifier: GPL-2.0-only
/*
 * AES-XTS over the memory of a bio, one data unit at a time, through the kernel
 * crypto API.
 *
 * Invariants:
 *  - The cipher is synchronous. Where a request would complete later there would
 *    have to be state per data unit; instead whoever calls makes sure that the
 *    context is one in which the cipher may run (coffer_cipher_usable()).
 *  - A data unit is 512 to 4096 bytes and a power of two, so a bounce page holds a
 *    whole number of them. On the caller's side a data unit may lie across pages.
 *  - Nothing here sleeps, or allocates: the cipher would for a data unit in pieces that
 *    are no multiple of 16 bytes, which the queue's dma_alignment does not let through.
 */
#include <asm/simd.h>
#include <crypto/internal/simd.h>
#include <crypto/skcipher.h>
#include <linux/bvec.h>
#include <linux/hardirq.h>
#include <linux/highmem.h>
#include <linux/kmod.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/mutex.h>
#include <linux/scatterlist.h>
#include <linux/sizes.h>
#include <linux/string.h>

#include "cipher.h"
#include "compat.h"
#include "iv.h"

#define DM_MSG_PREFIX "coffer"

/* A 4096-byte data unit in sectors of memory, the first one not at a page's start. */
#define MAX_UNIT_PIECES	(4096 / SECTOR_SIZE + 1)

/*
 * Up to 6.12 and some after it the fast implementations on x86 are internal ones behind an
 * asynchronous wrapper, and who asks for a synchronous xts(aes) is given generic
 * code. The internal one is synchronous and asks of its caller only that the FPU be
 * usable, which we check anyway. Later kernels have no internal one.
 */
static const struct {
	const char *name;
	u32 type, mask;
} algorithms[] = {
	{ "__xts(aes)", CRYPTO_ALG_INTERNAL, CRYPTO_ALG_INTERNAL | CRYPTO_NOLOAD },
	{ "xts(aes)", 0, 0 },
};

/*
 * What brings the accelerated drivers, if nobody has loaded them yet. It runs a program,
 * whose exit status says little since one for other CPUs may have failed: once is enough.
 */
static void load_drivers(void)
{
	static DEFINE_MUTEX(lock);
	static bool tried;

	mutex_lock(&lock);
	if (!tried)
		request_module("crypto-aes");
	tried = true;
	mutex_unlock(&lock);
}

/**
 * coffer_cipher_init() - allocate the cipher, without a key
 * @cipher: zeroed
 * @data_unit: bytes
 * @iv_large_sectors: the tweak counts data units rather than sectors
 *
 * Context: may sleep, may load modules.
 * Return: 0 or a negative errno; coffer_cipher_exit() is right after either.
 */
int coffer_cipher_init(struct coffer_cipher *cipher, unsigned int data_unit,
		       bool iv_large_sectors)
{
	struct crypto_sync_skcipher *tfm = NULL;
	unsigned int i;

	cipher->data_unit = data_unit;
	cipher->iv_shift = iv_large_sectors ? ilog2(data_unit / SECTOR_SIZE) : 0;

	load_drivers();
	for (i = 0; i < ARRAY_SIZE(algorithms); i++) {
		tfm = crypto_alloc_sync_skcipher(algorithms[i].name, algorithms[i].type,
						 algorithms[i].mask);
		if (!IS_ERR(tfm))
			break;
	}
	if (IS_ERR(tfm))
		return PTR_ERR(tfm);

	/* equal halves make XTS a weaker mode; the cipher refuses them by itself too */
	crypto_sync_skcipher_set_flags(tfm, CRYPTO_TFM_REQ_FORBID_WEAK_KEYS);
	cipher->tfm = tfm;
	return 0;
}

/**
 * coffer_cipher_exit() - free the cipher and wipe its key schedule
 * @cipher: initialised or zeroed
 *
 * Context: may sleep.
 */
void coffer_cipher_exit(struct coffer_cipher *cipher)
{
	if (cipher->tfm)
		crypto_free_sync_skcipher(cipher->tfm);
	cipher->tfm = NULL;
}

/**
 * coffer_cipher_set_key() - replace the key schedule
 * @cipher: initialised; no conversion may be running
 * @key: both XTS halves; stays the caller's to wipe
 * @bytes: 32 or 64
 *
 * Context: may sleep.
 * Return: 0 or a negative errno.
 */
int coffer_cipher_set_key(struct coffer_cipher *cipher, const u8 *key, unsigned int bytes)
{
	return crypto_sync_skcipher_setkey(cipher->tfm, key, bytes);
}

/**
 * coffer_cipher_driver() - name of the implementation
 * @cipher: initialised
 *
 * Return: the name that /proc/crypto has for it.
 */
const char *coffer_cipher_driver(const struct coffer_cipher *cipher)
{
	return crypto_tfm_alg_driver_name(crypto_skcipher_tfm(&cipher->tfm->base));
}

/* Of so many tries the fastest counts: what else there was had an interrupt in it. */
#define MEASURE_TRIES	16

/**
 * coffer_cipher_measure() - how much one CPU converts in a given time
 * @cipher: with a key
 * @ns: the time, nanoseconds
 *
 * Decrypts a page of zeros a few times.
 *
 * Context: may sleep.
 * Return: bytes; 0 if there is no memory, or the cipher fails.
 */
unsigned int coffer_cipher_measure(const struct coffer_cipher *cipher, unsigned int ns)
{
	struct bvec_iter iter = { .bi_size = PAGE_SIZE };
	struct bio_vec vec = { .bv_len = PAGE_SIZE };
	u64 best = U64_MAX, start;
	unsigned int i;
	int ret = 0;

	vec.bv_page = alloc_page(GFP_KERNEL | __GFP_ZERO);
	if (!vec.bv_page)
		return 0;
	for (i = 0; i < MEASURE_TRIES && !ret; i++) {
		start = ktime_get_ns();
		ret = coffer_decrypt(cipher, &vec, &iter);
		best = min(best, ktime_get_ns() - start);
	}
	/* not of use to anybody, but made with the key */
	clear_highpage(vec.bv_page);
	__free_page(vec.bv_page);
	return ret ? 0 : min_t(u64, div64_u64((u64)ns * PAGE_SIZE, max(best, 1ULL)), SZ_1M);
}

/**
 * coffer_cipher_usable() - may a conversion run in this context?
 *
 * Context: any.
 * Return: false in hard interrupts, where the crypto API may not be called, with
 * interrupts off, where it would keep them off for long, and where the interrupted
 * code is using the FPU; else true.
 */
bool coffer_cipher_usable(void)
{
	return !in_hardirq() && !irqs_disabled() && crypto_simd_usable();
}

/*
 * A request on the stack. Kernels that clear every local variable would clear its 470
 * bytes for each bio; all that the cipher reads is set before it is called.
 */
struct stack_request {
	struct skcipher_request req;
	u8 context[MAX_SYNC_SKCIPHER_REQSIZE];
} CRYPTO_MINALIGN_ATTR;

static void init_request(struct skcipher_request *req, const struct coffer_cipher *cipher)
{
	skcipher_request_set_sync_tfm(req, cipher->tfm);
	skcipher_request_set_callback(req, 0, NULL, NULL);
}

static __always_inline int convert_unit(const struct coffer_cipher *cipher, bool encrypt,
					struct skcipher_request *req, struct scatterlist *src,
					struct scatterlist *dst, u64 iv_sector)
{
	struct coffer_tweak tweak;

	coffer_tweak_set(&tweak, iv_sector, cipher->iv_shift);
	skcipher_request_set_crypt(req, src, dst, cipher->data_unit, &tweak);
	return encrypt ? crypto_skcipher_encrypt(req) : crypto_skcipher_decrypt(req);
}

/* The data unit at the start of @iter, where it is not in one page; rare. */
static noinline int convert_pieces(const struct coffer_cipher *cipher, bool encrypt,
				   struct skcipher_request *req, const struct bio_vec *vecs,
				   struct bvec_iter iter, struct scatterlist *dst,
				   u64 iv_sector)
{
	struct scatterlist pieces[MAX_UNIT_PIECES];
	unsigned int left = cipher->data_unit;
	unsigned int i;

	if (iter.bi_size < left)
		return -EIO;
	sg_init_table(pieces, MAX_UNIT_PIECES);
	for (i = 0; i < MAX_UNIT_PIECES; i++) {
		struct bio_vec bv = bvec_iter_bvec(vecs, iter);

		bv.bv_len = min(bv.bv_len, left);
		sg_set_page(&pieces[i], bv.bv_page, bv.bv_len, bv.bv_offset);
		left -= bv.bv_len;
		if (!left) {
			sg_mark_end(&pieces[i]);
			return convert_unit(cipher, encrypt, req, pieces, dst ?: pieces,
					    iv_sector);
		}
		bvec_iter_advance(vecs, &iter, bv.bv_len);
	}
	/* chopped finer than direct I/O may be */
	return -EIO;
}

/*
 * One pass over @iter, whose bi_sector is the IV sector of its first byte. @bounce
 * is NULL to convert in place, else whole pages, the first taking the first byte.
 * Always inlined, so that each direction has a loop without tests of it.
 */
static __always_inline int convert(const struct coffer_cipher *cipher, bool encrypt,
				   const struct bio_vec *vecs, struct bvec_iter iter,
				   const struct bio_vec *bounce)
{
	struct stack_request stack __uninitialized;
	struct skcipher_request *req = &stack.req;
	struct scatterlist sg = {}, bounce_sg = {};
	struct scatterlist *dst = bounce ? &bounce_sg : NULL;
	const unsigned int unit = cipher->data_unit;
	u64 iv_sector = iter.bi_sector;
	unsigned int done = 0;
	int ret;

	init_request(req, cipher);
	sg_init_marker(&sg, 1);
	if (bounce)
		sg_init_marker(dst, 1);

	while (iter.bi_size) {
		struct bio_vec bv = bvec_iter_bvec(vecs, iter);
		unsigned int run = bv.bv_len;
		unsigned int left;

		if (bounce) {
			sg_set_page(dst, bounce[done >> PAGE_SHIFT].bv_page, unit,
				    offset_in_page(done));
			run = min_t(unsigned int, run, PAGE_SIZE - offset_in_page(done));
		}
		run &= ~(unit - 1);
		if (unlikely(!run)) {
			run = unit;
			ret = convert_pieces(cipher, encrypt, req, vecs, iter, dst, iv_sector);
			if (ret)
				return ret;
			iv_sector += unit >> SECTOR_SHIFT;
			goto next;
		}
		sg_set_page(&sg, bv.bv_page, unit, bv.bv_offset);
		for (left = run;;) {
			ret = convert_unit(cipher, encrypt, req, &sg, dst ?: &sg, iv_sector);
			if (unlikely(ret))
				return ret;
			iv_sector += unit >> SECTOR_SHIFT;
			left -= unit;
			if (!left)
				break;
			sg.offset += unit;
			if (bounce)
				dst->offset += unit;
		}
next:
		bvec_iter_advance(vecs, &iter, run);
		done += run;
	}
	return 0;
}

/**
 * coffer_decrypt() - decrypt in place
 * @cipher: with a key
 * @vecs: the memory
 * @iter: part of @vecs, a whole number of data units; bi_sector is the IV sector
 *
 * Context: any in which coffer_cipher_usable().
 * Return: 0 or a negative errno; on error some of the memory may be decrypted.
 */
int coffer_decrypt(const struct coffer_cipher *cipher, struct bio_vec *vecs,
		   const struct bvec_iter *iter)
{
	return convert(cipher, false, vecs, *iter, NULL);
}

/**
 * coffer_encrypt() - encrypt into bounce pages, reading each source byte once
 * @cipher: with a key
 * @vecs: the source, never written to
 * @iter: part of @vecs, a whole number of data units; bi_sector is the IV sector
 * @bounce: pages that take @iter.bi_size bytes from the first page's start on
 *
 * Context: any in which coffer_cipher_usable().
 * Return: 0 or a negative errno.
 */
int coffer_encrypt(const struct coffer_cipher *cipher, const struct bio_vec *vecs,
		   const struct bvec_iter *iter, const struct bio_vec *bounce)
{
	return convert(cipher, true, vecs, *iter, bounce);
}
