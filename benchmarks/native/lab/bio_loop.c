// SPDX-License-Identifier: GPL-2.0-only
/*
 * Times single bios from inside the kernel, where no system call blurs them.
 * One command a line is written to <debugfs>/bio_loop, its result is read from
 * the same file: "MEDIAN P10 P90 MIN" in nanoseconds.
 *
 *   read|write DEVICE BYTES COUNT
 *	COUNT bios of BYTES, one at a time, from submission to the wake-up of
 *	the submitter, at pseudo-random offsets that are multiples of BYTES.
 *   encrypt|decrypt UNIT BYTES COUNT
 *	The bare xts(aes) over the same pages, one request per data unit of
 *	UNIT bytes; encrypting from page to page as for a bounced write,
 *	decrypting in place.
 *
 * One command at a time, under a mutex that also guards the result.
 */
#include <crypto/skcipher.h>
#include <linux/bio.h>
#include <linux/blkdev.h>
#include <linux/debugfs.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/random.h>
#include <linux/scatterlist.h>
#include <linux/sort.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

#define MAX_BYTES	SZ_1M
#define MAX_PAGES	(MAX_BYTES / PAGE_SIZE)
#define MAX_COUNT	1000000
/* Bios before the clock counts: caches, pools and branch predictors fill. */
#define WARM_UP		64
#define KEY_BYTES	64
#define NS_SHIFT	20

static DEFINE_MUTEX(lock);
static char result[80];
static struct dentry *file;
static struct page *pages[2][MAX_PAGES];	/* source, destination */
static u64 ns_per_tick;	/* with NS_SHIFT bits of fraction */

static u64 ticks(void)
{
	u32 lo, hi;

	asm volatile("lfence; rdtsc; lfence" : "=a" (lo), "=d" (hi) : : "memory");
	return (u64)hi << 32 | lo;
}

static void calibrate(void)
{
	u64 t0 = ticks(), n0 = ktime_get_ns(), n;

	do {
		n = ktime_get_ns() - n0;
	} while (n < 100 * NSEC_PER_MSEC);
	ns_per_tick = div64_u64(n << NS_SHIFT, ticks() - t0);
}

static u64 ns(u64 t)
{
	return t * ns_per_tick >> NS_SHIFT;
}

static int compare(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return x < y ? -1 : x > y;
}

static void summarise(u64 *t, unsigned int count)
{
	sort(t, count, sizeof(*t), compare, NULL);
	snprintf(result, sizeof(result), "%llu %llu %llu %llu\n",
		 ns(t[count / 2]), ns(t[count / 10]), ns(t[count - 1 - count / 10]),
		 ns(t[0]));
}

/* As blkdev's direct I/O does it; a completion would cost two locks. */
static void wake(struct bio *bio)
{
	struct task_struct *waiter = bio->bi_private;

	WRITE_ONCE(bio->bi_private, NULL);
	blk_wake_io_task(waiter);
}

static void submit_and_wait(struct bio *bio)
{
	bio->bi_private = current;
	bio->bi_end_io = wake;
	submit_bio(bio);
	for (;;) {
		set_current_state(TASK_UNINTERRUPTIBLE);
		if (!READ_ONCE(bio->bi_private))
			break;
		io_schedule();
	}
	__set_current_state(TASK_RUNNING);
}

static int run_bios(enum req_op op, const char *path, unsigned int bytes,
		    unsigned int count, u64 *t)
{
	struct file *bdev_file;
	struct block_device *bdev;
	struct bio *bio;
	u64 blocks, seed = 1, start;
	unsigned int i, p;
	int err = 0;

	bdev_file = bdev_file_open_by_path(path, BLK_OPEN_READ | BLK_OPEN_WRITE,
					   NULL, NULL);
	if (IS_ERR(bdev_file))
		return PTR_ERR(bdev_file);
	bdev = file_bdev(bdev_file);
	blocks = div_u64(bdev_nr_bytes(bdev), bytes);
	bio = bio_kmalloc(MAX_PAGES, GFP_KERNEL);
	if (!blocks || !bio) {
		err = blocks ? -ENOMEM : -ENOSPC;
		goto out;
	}

	for (i = 0; i < count + WARM_UP && !err; i++) {
		bio_init(bio, bdev, bio_inline_vecs(bio), MAX_PAGES,
			 op | REQ_SYNC | REQ_IDLE);
		for (p = 0; p < DIV_ROUND_UP(bytes, PAGE_SIZE); p++)
			__bio_add_page(bio, pages[0][p],
				       min(bytes, (unsigned int)PAGE_SIZE), 0);
		seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
		bio->bi_iter.bi_sector = (seed >> 33) % blocks * (bytes >> SECTOR_SHIFT);

		start = ticks();
		submit_and_wait(bio);
		if (i >= WARM_UP)
			t[i - WARM_UP] = ticks() - start;

		err = blk_status_to_errno(bio->bi_status);
		bio_uninit(bio);
		cond_resched();
	}
out:
	kfree(bio);
	bdev_fput(bdev_file);
	return err;
}

static int run_cipher(bool encrypt, unsigned int unit, unsigned int bytes,
		      unsigned int count, u64 *t)
{
	struct crypto_skcipher *tfm;
	struct skcipher_request *req;
	struct scatterlist src, dst;
	u8 key[KEY_BYTES];
	__le64 iv[2];
	u64 start;
	unsigned int i, done;
	int err;

	if (!is_power_of_2(unit) || unit > PAGE_SIZE || unit < SECTOR_SIZE)
		return -EINVAL;
	tfm = crypto_alloc_skcipher("xts(aes)", 0, CRYPTO_ALG_ASYNC);
	if (IS_ERR(tfm))
		return PTR_ERR(tfm);
	get_random_bytes(key, sizeof(key));
	err = crypto_skcipher_setkey(tfm, key, sizeof(key));
	req = skcipher_request_alloc(tfm, GFP_KERNEL);
	if (!err && !req)
		err = -ENOMEM;
	if (err)
		goto out;
	skcipher_request_set_callback(req, 0, NULL, NULL);
	sg_init_table(&src, 1);
	sg_init_table(&dst, 1);

	for (i = 0; i < count + WARM_UP && !err; i++) {
		start = ticks();
		for (done = 0; done < bytes && !err; done += unit) {
			unsigned int p = done / PAGE_SIZE;

			sg_set_page(&src, pages[0][p], unit, offset_in_page(done));
			sg_set_page(&dst, pages[1][p], unit, offset_in_page(done));
			iv[0] = cpu_to_le64(i + done);
			iv[1] = 0;
			skcipher_request_set_crypt(req, &src, encrypt ? &dst : &src,
						   unit, iv);
			err = encrypt ? crypto_skcipher_encrypt(req) :
					crypto_skcipher_decrypt(req);
		}
		if (i >= WARM_UP)
			t[i - WARM_UP] = ticks() - start;
		cond_resched();
	}
out:
	skcipher_request_free(req);
	crypto_free_skcipher(tfm);
	return err;
}

static int command(char *line)
{
	char verb[8], what[128];
	unsigned int bytes, count, unit;
	u64 *t;
	int err;

	if (sscanf(line, "%7s %127s %u %u", verb, what, &bytes, &count) != 4 ||
	    bytes % SECTOR_SIZE || !bytes || bytes > MAX_BYTES ||
	    (bytes > PAGE_SIZE && bytes % PAGE_SIZE) ||
	    !count || count > MAX_COUNT)
		return -EINVAL;
	t = vmalloc_array(count, sizeof(*t));
	if (!t)
		return -ENOMEM;

	if (!strcmp(verb, "read"))
		err = run_bios(REQ_OP_READ, what, bytes, count, t);
	else if (!strcmp(verb, "write"))
		err = run_bios(REQ_OP_WRITE, what, bytes, count, t);
	else if (kstrtouint(what, 10, &unit))
		err = -EINVAL;
	else if (!strcmp(verb, "encrypt"))
		err = run_cipher(true, unit, bytes, count, t);
	else if (!strcmp(verb, "decrypt"))
		err = run_cipher(false, unit, bytes, count, t);
	else
		err = -EINVAL;
	if (!err)
		summarise(t, count);
	vfree(t);
	return err;
}

static ssize_t bio_loop_write(struct file *f, const char __user *buf,
			      size_t len, loff_t *pos)
{
	char *line;
	int err;

	if (len > 200)
		return -EINVAL;
	line = memdup_user_nul(buf, len);
	if (IS_ERR(line))
		return PTR_ERR(line);
	mutex_lock(&lock);
	result[0] = 0;
	err = command(line);
	mutex_unlock(&lock);
	kfree(line);
	return err ?: len;
}

static ssize_t bio_loop_read(struct file *f, char __user *buf, size_t len,
			     loff_t *pos)
{
	ssize_t n;

	mutex_lock(&lock);
	n = simple_read_from_buffer(buf, len, pos, result, strlen(result));
	mutex_unlock(&lock);
	return n;
}

static const struct file_operations bio_loop_fops = {
	.owner	= THIS_MODULE,
	.read	= bio_loop_read,
	.write	= bio_loop_write,
};

static void free_pages_all(void)
{
	int i, p;

	for (i = 0; i < 2; i++)
		for (p = 0; p < MAX_PAGES; p++)
			if (pages[i][p])
				__free_page(pages[i][p]);
}

static int __init bio_loop_init(void)
{
	int i, p;

	for (i = 0; i < 2; i++)
		for (p = 0; p < MAX_PAGES; p++) {
			pages[i][p] = alloc_page(GFP_KERNEL);
			if (!pages[i][p]) {
				free_pages_all();
				return -ENOMEM;
			}
			get_random_bytes(page_address(pages[i][p]), PAGE_SIZE);
		}
	calibrate();
	file = debugfs_create_file("bio_loop", 0600, NULL, NULL, &bio_loop_fops);
	return 0;
}
module_init(bio_loop_init);

static void __exit bio_loop_exit(void)
{
	debugfs_remove(file);
	free_pages_all();
}
module_exit(bio_loop_exit);

MODULE_DESCRIPTION("Times single bios and the bare cipher");
MODULE_LICENSE("GPL");
