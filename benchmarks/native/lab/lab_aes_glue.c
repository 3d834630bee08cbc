// SPDX-License-Identifier: GPL-2.0-only
/*
 * Registers the kernel's x86-64 assembly as xts(aes) in User-Mode Linux, which
 * has no AES driver of its own, so that the cipher runs at the speed of the
 * host. Parameter impl picks what arch/x86/crypto/aesni-intel_glue.c would have
 * picked by CPU: aesni, vaes_avx2 or vaes_avx512; by default the best there is.
 *
 * Same shape as that file's xts_crypt(): one call when source and destination
 * are one piece each. Ciphertext stealing is left out: no disk needs it, so
 * lengths are multiples of 16. kernel_fpu_begin() is empty here: vector
 * registers are saved in signal frames.
 */
#include <crypto/aes.h>
#include <crypto/internal/skcipher.h>
#include <crypto/scatterwalk.h>
#include <crypto/xts.h>
#include <linux/module.h>

static char *impl = "";
module_param(impl, charp, 0444);
MODULE_PARM_DESC(impl, "aesni, vaes_avx2 or vaes_avx512");

struct lab_aes_key {
	struct crypto_aes_ctx tweak __aligned(16);
	struct crypto_aes_ctx data __aligned(16);
};

typedef void (*lab_aes_crypt)(const struct crypto_aes_ctx *key, const u8 *src,
			      u8 *dst, int len, u8 tweak[AES_BLOCK_SIZE]);

asmlinkage void aes_xts_encrypt_iv(const struct crypto_aes_ctx *key,
				   u8 iv[AES_BLOCK_SIZE]);

static struct lab_aes_key *lab_aes_key(struct crypto_skcipher *tfm)
{
	return PTR_ALIGN(crypto_skcipher_ctx(tfm), 16);
}

static int lab_aes_setkey(struct crypto_skcipher *tfm, const u8 *key,
			  unsigned int len)
{
	struct lab_aes_key *k = lab_aes_key(tfm);
	int err = xts_verify_key(tfm, key, len);

	if (!err)
		err = aes_expandkey(&k->data, key, len / 2);
	if (!err)
		err = aes_expandkey(&k->tweak, key + len / 2, len / 2);
	return err;
}

static __always_inline int lab_aes_xts(struct skcipher_request *req,
				       lab_aes_crypt crypt)
{
	const struct lab_aes_key *k = lab_aes_key(crypto_skcipher_reqtfm(req));
	struct skcipher_walk walk;
	int err;

	if (req->cryptlen < AES_BLOCK_SIZE || req->cryptlen % AES_BLOCK_SIZE)
		return -EINVAL;

	aes_xts_encrypt_iv(&k->tweak, req->iv);
	if (likely(req->src->length >= req->cryptlen &&
		   req->dst->length >= req->cryptlen)) {
		crypt(&k->data, sg_virt(req->src), sg_virt(req->dst),
		      req->cryptlen, req->iv);
		return 0;
	}

	err = skcipher_walk_virt(&walk, req, false);
	while (walk.nbytes) {
		unsigned int rest = walk.nbytes % AES_BLOCK_SIZE;

		crypt(&k->data, walk.src.virt.addr, walk.dst.virt.addr,
		      walk.nbytes - rest, req->iv);
		err = skcipher_walk_done(&walk, rest);
	}
	return err;
}

#define LAB_AES_IMPL(suffix)						\
asmlinkage void aes_xts_encrypt_##suffix(const struct crypto_aes_ctx *key, \
	const u8 *src, u8 *dst, int len, u8 tweak[AES_BLOCK_SIZE]);	\
asmlinkage void aes_xts_decrypt_##suffix(const struct crypto_aes_ctx *key, \
	const u8 *src, u8 *dst, int len, u8 tweak[AES_BLOCK_SIZE]);	\
static int lab_aes_encrypt_##suffix(struct skcipher_request *req)	\
{									\
	return lab_aes_xts(req, aes_xts_encrypt_##suffix);		\
}									\
static int lab_aes_decrypt_##suffix(struct skcipher_request *req)	\
{									\
	return lab_aes_xts(req, aes_xts_decrypt_##suffix);		\
}
LAB_AES_IMPL(aesni_avx)
LAB_AES_IMPL(vaes_avx2)
LAB_AES_IMPL(vaes_avx512)

static bool host_has(unsigned int leaf, char reg, unsigned int bit)
{
	unsigned int a = leaf, b, c = 0, d;

	asm volatile("cpuid" : "+a" (a), "=b" (b), "+c" (c), "=d" (d));
	return (reg == 'b' ? b : c) >> bit & 1;
}

/* Each of the three needs what the one before it needs. */
static bool has_aesni(void)
{
	return host_has(1, 'c', 25) && host_has(1, 'c', 28);	/* AES, AVX */
}

static bool has_vaes_avx2(void)
{
	return has_aesni() && host_has(7, 'b', 5) &&		/* AVX2 */
	       host_has(7, 'c', 9) && host_has(7, 'c', 10);	/* VAES, VPCLMULQDQ */
}

static bool has_vaes_avx512(void)
{
	return has_vaes_avx2() && host_has(7, 'b', 8) &&		/* BMI2 */
	       host_has(7, 'b', 30) && host_has(7, 'b', 31);	/* AVX512BW, VL */
}

static const struct lab_aes_impl {
	const char *name;
	const char *driver;
	bool (*usable)(void);
	int (*encrypt)(struct skcipher_request *req);
	int (*decrypt)(struct skcipher_request *req);
} impls[] = {	/* best first; drivers named as the kernel names them */
	{ "vaes_avx512", "xts-aes-vaes-avx512", has_vaes_avx512,
	  lab_aes_encrypt_vaes_avx512, lab_aes_decrypt_vaes_avx512 },
	{ "vaes_avx2", "xts-aes-vaes-avx2", has_vaes_avx2,
	  lab_aes_encrypt_vaes_avx2, lab_aes_decrypt_vaes_avx2 },
	{ "aesni", "xts-aes-aesni-avx", has_aesni,
	  lab_aes_encrypt_aesni_avx, lab_aes_decrypt_aesni_avx },
};

static struct skcipher_alg alg = {
	.base.cra_name		= "xts(aes)",
	.base.cra_priority	= 800,
	.base.cra_blocksize	= AES_BLOCK_SIZE,
	.base.cra_ctxsize	= sizeof(struct lab_aes_key) + 15,
	.base.cra_module	= THIS_MODULE,
	.min_keysize		= 2 * AES_MIN_KEY_SIZE,
	.max_keysize		= 2 * AES_MAX_KEY_SIZE,
	.ivsize			= AES_BLOCK_SIZE,
	.walksize		= 2 * AES_BLOCK_SIZE,
	.setkey			= lab_aes_setkey,
};

static int __init lab_aes_init(void)
{
	const struct lab_aes_impl *i;

	for (i = impls; i < impls + ARRAY_SIZE(impls); i++) {
		if (!i->usable() || (*impl && strcmp(impl, i->name)))
			continue;
		strscpy(alg.base.cra_driver_name, i->driver,
			sizeof(alg.base.cra_driver_name));
		alg.encrypt = i->encrypt;
		alg.decrypt = i->decrypt;
		return crypto_register_skcipher(&alg);
	}
	return -ENODEV;
}
module_init(lab_aes_init);

static void __exit lab_aes_exit(void)
{
	crypto_unregister_skcipher(&alg);
}
module_exit(lab_aes_exit);

MODULE_DESCRIPTION("AES-XTS at the host's speed in User-Mode Linux");
MODULE_LICENSE("GPL");
MODULE_ALIAS_CRYPTO("xts(aes)");
