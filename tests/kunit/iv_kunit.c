// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The tweak of every data unit, alone and in the walk over a bio's memory, against
 * arithmetic of the test's own, byte by byte, and the kernel's xts(aes) called for one
 * linear data unit at a time.
 */
#include <kunit/run-in-irq-context.h>
#include <kunit/test.h>
#include <linux/module.h>
#include <linux/prandom.h>

#include "../../driver/cipher.c"

#define BYTES		SZ_32K
#define MARGIN		PAGE_SIZE
#define CANARY		0xa5
#define MAX_VECS	(BYTES / 256 + 8)

static const u8 test_key[64] = {
	0x27, 0x18, 0x28, 0x18, 0x28, 0x45, 0x90, 0x45, 0x23, 0x53, 0x60, 0x28, 0x74, 0x71, 0x35, 0x26,
	0x62, 0x49, 0x77, 0x57, 0x24, 0x70, 0x93, 0x69, 0x99, 0x59, 0x57, 0x49, 0x66, 0x96, 0x76, 0x27,
	0x31, 0x41, 0x59, 0x26, 0x53, 0x58, 0x97, 0x93, 0x23, 0x84, 0x62, 0x64, 0x33, 0x83, 0x27, 0x95,
	0x02, 0x88, 0x41, 0x97, 0x16, 0x93, 0x99, 0x37, 0x51, 0x05, 0x82, 0x09, 0x74, 0x94, 0x45, 0x92,
};

/* ---- one tweak ---------------------------------------------------------------- */

static void own_tweak(u8 *bytes, u64 number)
{
	unsigned int i;

	for (i = 0; i < 16; i++) {
		bytes[i] = number & 255;
		number >>= 8;
	}
}

static const u64 numbers[] = {
	0, 1, 2, 7, 8, 255, 256, 65535, 65536, U32_MAX, 1ULL << 32, (1ULL << 32) + 8, 1ULL << 40,
	0x0123456789abcdefULL, S64_MAX, 1ULL << 63, U64_MAX - 7, U64_MAX,
};

static void tweak_plain64(struct kunit *test)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(numbers); i++) {
		struct coffer_tweak tweak;
		u8 want[16];

		BUILD_BUG_ON(sizeof(tweak) != 16);
		memset(&tweak, CANARY, sizeof(tweak));
		own_tweak(want, numbers[i]);
		coffer_tweak_set(&tweak, numbers[i], 0);
		KUNIT_EXPECT_MEMEQ_MSG(test, &tweak, want, 16, "sector %llu", numbers[i]);
	}
}

static void tweak_large_sectors(struct kunit *test)
{
	unsigned int i, shift;

	for (i = 0; i < ARRAY_SIZE(numbers); i++) {
		for (shift = 0; shift <= 3; shift++) {
			struct coffer_tweak tweak;
			u8 want[16];

			memset(&tweak, CANARY, sizeof(tweak));
			own_tweak(want, numbers[i] / (1U << shift));
			coffer_tweak_set(&tweak, numbers[i], shift);
			KUNIT_EXPECT_MEMEQ_MSG(test, &tweak, want, 16, "sector %llu shift %u",
					       numbers[i], shift);
		}
	}
}

/* ---- the walk over a bio's memory ----------------------------------------------- */

/*
 * Memory for a bio: the data lies somewhere in @memory, @vecs say where. What is not
 * data is filled with CANARY.
 */
struct layout {
	u8 *memory;		/* physically contiguous, ROOM bytes */
	struct bio_vec vecs[MAX_VECS];
	unsigned int nr;
};

#define ROOM		(4 * BYTES + 2 * MARGIN)

struct fixture {
	struct crypto_sync_skcipher *reference;
	struct layout in;
	u8 *plain, *want, *got;	/* linear */
	struct bio_vec bounce[BYTES / PAGE_SIZE];
	struct rnd_state rnd;
};

/* How to lay out the data; each gives piece after piece. */
struct shape {
	const char *name;
	unsigned int first;	/* offset of the first piece */
	unsigned int piece[4];	/* lengths, repeated; 0 ends the list */
	unsigned int gap;	/* between pieces */
};

static const struct shape shapes[] = {
	{ "whole pages", 0, { PAGE_SIZE }, 0 },
	{ "whole pages apart", 0, { PAGE_SIZE }, PAGE_SIZE },
	{ "one piece", 0, { BYTES }, 0 },
	{ "one piece, 512 into the page", 512, { BYTES }, 0 },
	{ "one piece, 4 into the page", 4, { BYTES }, 0 },
	{ "one piece, 4092 into the page", PAGE_SIZE - 4, { BYTES }, 0 },
	{ "512 and 3584", 0, { 512, 3584 }, 0 },
	{ "512 and 3584 apart", 1024, { 512, 3584 }, 1024 },
	{ "sectors", 0, { 512 }, 0 },
	{ "sectors apart", 512, { 512 }, 512 },
	{ "two pages and a half", 2048, { 10240, 6144 }, 512 },
	{ "1024, 512, 2560", 0, { 1024, 512, 2560 }, 512 },
};

static void lay_out(struct layout *layout, const struct shape *shape)
{
	unsigned int at = MARGIN + shape->first, done = 0, i = 0;

	layout->nr = 0;
	while (done < BYTES) {
		unsigned int len = min_t(unsigned int, shape->piece[i], BYTES - done);

		bvec_set_page(&layout->vecs[layout->nr++],
			      virt_to_page(layout->memory + at), len, offset_in_page(at));
		at += len + shape->gap;
		done += len;
		i = i + 1 < ARRAY_SIZE(shape->piece) && shape->piece[i + 1] ? i + 1 : 0;
	}
}

static u8 *vec_address(const struct bio_vec *vec)
{
	return (u8 *)page_address(vec->bv_page) + vec->bv_offset;
}

static void scatter(struct layout *layout, const u8 *data)
{
	unsigned int i;

	memset(layout->memory, CANARY, ROOM);
	for (i = 0; i < layout->nr; i++) {
		memcpy(vec_address(&layout->vecs[i]), data, layout->vecs[i].bv_len);
		data += layout->vecs[i].bv_len;
	}
}

/* Collects the data and leaves CANARY in its place; then all must be CANARY. */
static bool gather(struct layout *layout, u8 *data)
{
	unsigned int i;

	for (i = 0; i < layout->nr; i++) {
		memcpy(data, vec_address(&layout->vecs[i]), layout->vecs[i].bv_len);
		memset(vec_address(&layout->vecs[i]), CANARY, layout->vecs[i].bv_len);
		data += layout->vecs[i].bv_len;
	}
	return !memchr_inv(layout->memory, CANARY, ROOM);
}

/* The ciphertext of the whole, one linear data unit after the other. */
static void reference(struct kunit *test, struct fixture *f, u64 sector, unsigned int unit,
		      bool large)
{
	SYNC_SKCIPHER_REQUEST_ON_STACK(req, f->reference);
	struct scatterlist sg;
	unsigned int at;
	u8 tweak[16];

	memcpy(f->want, f->plain, BYTES);
	skcipher_request_set_sync_tfm(req, f->reference);
	skcipher_request_set_callback(req, 0, NULL, NULL);
	for (at = 0; at < BYTES; at += unit) {
		/* modulo 2^64, as u64 is */
		u64 number = sector + at / 512;

		own_tweak(tweak, large ? number / (unit / 512) : number);
		sg_init_one(&sg, f->want + at, unit);
		skcipher_request_set_crypt(req, &sg, &sg, unit, tweak);
		KUNIT_ASSERT_EQ(test, crypto_skcipher_encrypt(req), 0);
	}
}

static struct bvec_iter part_of(const struct layout *layout, u64 sector, unsigned int from,
			     unsigned int bytes)
{
	struct bvec_iter iter = { .bi_size = BYTES };

	bvec_iter_advance(layout->vecs, &iter, from);
	iter.bi_sector = sector + from / 512;
	iter.bi_size = bytes;
	return iter;
}

/* Encrypts in parts of at most @step bytes, and decrypts likewise. */
static void round_trip(struct kunit *test, struct fixture *f, struct coffer_cipher *cipher,
		       const struct shape *shape, u64 sector, unsigned int step)
{
	unsigned int at, bytes, i;
	struct bvec_iter part;

	lay_out(&f->in, shape);
	scatter(&f->in, f->plain);
	for (i = 0; i < ARRAY_SIZE(f->bounce); i++)
		memset(page_address(f->bounce[i].bv_page), CANARY, PAGE_SIZE);
	for (at = 0; at < BYTES; at += bytes) {
		bytes = min(step, BYTES - at);
		part = part_of(&f->in, sector, at, bytes);
		KUNIT_ASSERT_EQ_MSG(test, coffer_encrypt(cipher, f->in.vecs, &part,
							 f->bounce + at / PAGE_SIZE), 0,
				    "encrypt: %s, unit %u, sector %llu", shape->name,
				    cipher->data_unit, sector);
	}
	for (i = 0; i < ARRAY_SIZE(f->bounce); i++)
		memcpy(f->got + i * PAGE_SIZE, page_address(f->bounce[i].bv_page), PAGE_SIZE);
	KUNIT_EXPECT_TRUE_MSG(test, !memcmp(f->got, f->want, BYTES),
			      "encrypted: %s, unit %u, shift %u, sector %llu, step %u", shape->name,
			      cipher->data_unit, cipher->iv_shift, sector, step);
	KUNIT_EXPECT_TRUE_MSG(test, gather(&f->in, f->got),
			      "encrypt wrote beside the data: %s", shape->name);
	KUNIT_EXPECT_TRUE_MSG(test, !memcmp(f->got, f->plain, BYTES),
			      "encrypt changed its source: %s", shape->name);

	scatter(&f->in, f->want);
	for (at = 0; at < BYTES; at += bytes) {
		bytes = min(step, BYTES - at);
		part = part_of(&f->in, sector, at, bytes);
		KUNIT_ASSERT_EQ_MSG(test, coffer_decrypt(cipher, f->in.vecs, &part), 0,
				    "decrypt: %s, unit %u, sector %llu", shape->name,
				    cipher->data_unit, sector);
	}
	KUNIT_EXPECT_TRUE_MSG(test, gather(&f->in, f->got),
			      "decrypt wrote beside the data: %s", shape->name);
	KUNIT_EXPECT_TRUE_MSG(test, !memcmp(f->got, f->plain, BYTES),
			      "decrypted: %s, unit %u, shift %u, sector %llu, step %u", shape->name,
			      cipher->data_unit, cipher->iv_shift, sector, step);
}

static void with_cipher(struct kunit *test, unsigned int unit, bool large,
			void (*fn)(struct kunit *test, struct coffer_cipher *cipher))
{
	struct coffer_cipher cipher = {};

	KUNIT_ASSERT_EQ(test, coffer_cipher_init(&cipher, unit, large), 0);
	KUNIT_EXPECT_EQ(test, coffer_cipher_set_key(&cipher, test_key, sizeof(test_key)), 0);
	fn(test, &cipher);
	coffer_cipher_exit(&cipher);
}

static void all_shapes(struct kunit *test, struct coffer_cipher *cipher)
{
	struct fixture *f = test->priv;
	unsigned int i;

	reference(test, f, 0x100000008ULL, cipher->data_unit, cipher->iv_shift);
	for (i = 0; i < ARRAY_SIZE(shapes); i++)
		round_trip(test, f, cipher, &shapes[i], 0x100000008ULL, BYTES);
}

/* Every layout of memory at every data unit. */
static void walk_layouts(struct kunit *test)
{
	unsigned int unit;

	for (unit = 512; unit <= 4096; unit *= 2) {
		with_cipher(test, unit, false, all_shapes);
		with_cipher(test, unit, true, all_shapes);
	}
}

/* First sectors such that what could be lost or carried is, in the middle of the bio. */
static void all_sectors(struct kunit *test, struct coffer_cipher *cipher)
{
	static const u64 starts[] = { 0, 8, 0xfff8, 0xfffffff8, 0x100000000, 0xfffffffff8,
				      0x7ffffffffffffff8, 0x8000000000000000, 0xfffffffffffffff8 };
	struct fixture *f = test->priv;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(starts); i++) {
		reference(test, f, starts[i], cipher->data_unit, cipher->iv_shift);
		round_trip(test, f, cipher, &shapes[i % ARRAY_SIZE(shapes)], starts[i], BYTES);
		/* the chunks of a fan-out begin on pages */
		round_trip(test, f, cipher, &shapes[(i + 5) % ARRAY_SIZE(shapes)], starts[i],
			   2 * PAGE_SIZE);
	}
}

static void walk_sectors(struct kunit *test)
{
	unsigned int unit;

	for (unit = 512; unit <= 4096; unit *= 2) {
		with_cipher(test, unit, false, all_sectors);
		with_cipher(test, unit, true, all_sectors);
	}
}

/* What is not whole data units is an error, and nothing beyond the data is touched. */
static void all_odd(struct kunit *test, struct coffer_cipher *cipher)
{
	static const struct shape crumbs = { "pieces of 256", 0, { 256 }, 256 };
	struct fixture *f = test->priv;
	struct bvec_iter iter;

	lay_out(&f->in, &shapes[0]);
	scatter(&f->in, f->plain);
	iter = part_of(&f->in, 0, 0, cipher->data_unit / 2);
	KUNIT_EXPECT_EQ(test, coffer_decrypt(cipher, f->in.vecs, &iter), -EIO);
	KUNIT_EXPECT_EQ(test, coffer_encrypt(cipher, f->in.vecs, &iter, f->bounce), -EIO);
	KUNIT_EXPECT_TRUE(test, gather(&f->in, f->got));
	KUNIT_EXPECT_TRUE(test, !memcmp(f->got, f->plain, BYTES));

	/* finer than direct I/O can be: an error where it is too fine, else right */
	if (cipher->data_unit < 4096)
		return;
	lay_out(&f->in, &crumbs);
	scatter(&f->in, f->plain);
	iter = part_of(&f->in, 0, 0, 4096);
	KUNIT_EXPECT_EQ(test, coffer_decrypt(cipher, f->in.vecs, &iter), -EIO);
	KUNIT_EXPECT_TRUE(test, gather(&f->in, f->got));
	KUNIT_EXPECT_TRUE(test, !memcmp(f->got, f->plain, BYTES));
}

static void walk_refusals(struct kunit *test)
{
	unsigned int unit;

	for (unit = 512; unit <= 4096; unit *= 2)
		with_cipher(test, unit, false, all_odd);
}

/* ---- where it may run ------------------------------------------------------------ */

static bool usable_is_right(void *unused)
{
	unsigned long flags;
	bool right;

	if (in_hardirq())
		return !coffer_cipher_usable();
	local_irq_save(flags);
	right = !coffer_cipher_usable();
	local_irq_restore(flags);
	if (coffer_cipher_usable() && !crypto_simd_usable())
		right = false;
	if (!in_interrupt() && !coffer_cipher_usable())
		right = false;
	return right;
}

static void usable_contexts(struct kunit *test)
{
	kunit_run_irq_test(test, usable_is_right, 200, NULL);
}

static int iv_init(struct kunit *test)
{
	struct fixture *f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, f);
	test->priv = f;
	f->in.memory = (u8 *)__get_free_pages(GFP_KERNEL, get_order(ROOM));
	KUNIT_ASSERT_NOT_NULL(test, f->in.memory);
	f->plain = kunit_kmalloc(test, BYTES, GFP_KERNEL);
	f->want = kunit_kmalloc(test, BYTES, GFP_KERNEL);
	f->got = kunit_kmalloc(test, BYTES, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, f->plain);
	KUNIT_ASSERT_NOT_NULL(test, f->want);
	KUNIT_ASSERT_NOT_NULL(test, f->got);
	for (i = 0; i < ARRAY_SIZE(f->bounce); i++) {
		struct page *page = alloc_page(GFP_KERNEL);

		KUNIT_ASSERT_NOT_NULL(test, page);
		bvec_set_page(&f->bounce[i], page, PAGE_SIZE, 0);
	}
	prandom_seed_state(&f->rnd, 1);
	prandom_bytes_state(&f->rnd, f->plain, BYTES);
	f->reference = crypto_alloc_sync_skcipher("xts(aes)", 0, 0);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, f->reference);
	KUNIT_ASSERT_EQ(test, crypto_sync_skcipher_setkey(f->reference, test_key,
							  sizeof(test_key)), 0);
	return 0;
}

static void iv_exit(struct kunit *test)
{
	struct fixture *f = test->priv;
	unsigned int i;

	if (!f)
		return;
	if (!IS_ERR_OR_NULL(f->reference))
		crypto_free_sync_skcipher(f->reference);
	for (i = 0; i < ARRAY_SIZE(f->bounce); i++)
		if (f->bounce[i].bv_page)
			__free_page(f->bounce[i].bv_page);
	free_pages((unsigned long)f->in.memory, get_order(ROOM));
}

static struct kunit_case iv_cases[] = {
	KUNIT_CASE(tweak_plain64),
	KUNIT_CASE(tweak_large_sectors),
	KUNIT_CASE(walk_layouts),
	KUNIT_CASE(walk_sectors),
	KUNIT_CASE(walk_refusals),
	KUNIT_CASE(usable_contexts),
	{}
};

static struct kunit_suite iv_suite = {
	.name = "coffer-iv",
	.init = iv_init,
	.exit = iv_exit,
	.test_cases = iv_cases,
};
kunit_test_suite(iv_suite);
