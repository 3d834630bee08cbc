// SPDX-License-Identifier: GPL-2.0-only
/*
 * Times single bios from inside the kernel, where no system call blurs them.
 * A command is written to <debugfs>/bio_loop in one piece, its results are read
 * from the same file.
 *
 *   ROUNDS COUNT
 *   read|write DEVICE BYTES
 *	Bios of BYTES, one at a time, from submission to the wake-up of the
 *	submitter, at pseudo-random offsets that are multiples of BYTES.
 *   encrypt|decrypt UNIT BYTES
 *	The bare xts(aes) over the same pages, one request per data unit of
 *	UNIT bytes; encrypting from page to page as for a bounced write,
 *	decrypting in place.
 *
 * The jobs take turns, COUNT times each in each of ROUNDS rounds, so that a slow
 * moment of the host hits them all. Each gives a line "MEDIAN P10 P90 MIN" in
 * nanoseconds, over ROUNDS * COUNT.
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
#define MAX_JOBS	16
/* Of a job's turn, before the clock counts: caches and branch predictors fill. */
#define WARM_UP		8
#define KEY_BYTES	64
#define NS_SHIFT	20

static DEFINE_MUTEX(lock);
static char result[80 * MAX_JOBS];
static struct dentry *file;
static struct page *pages[2][MAX_PAGES];	/* source, destination */
static u64 ns_per_tick;	/* with NS_SHIFT bits of fraction */

struct job {
	unsigned int bytes;
	u64 *t;		/* ticks, one for each time */
	bool write;	/* or encrypt */

	struct file *bdev_file;	/* NULL: the cipher alone */
	struct bio *bio;
	u64 blocks, seed;

	unsigned int unit;
	struct crypto_skcipher *tfm;
	struct skcipher_request *req;
};

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

static int summarise(u64 *t, unsigned int count, char *to, size_t room)
{
	sort(t, count, sizeof(*t), compare, NULL);
	return scnprintf(to, room, "%llu %llu %llu %llu\n", ns(t[count / 2]),
			 ns(t[count / 10]), ns(t[count - 1 - count / 10]), ns(t[0]));
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

static int run_bio(struct job *job, u64 *t)
{
	struct block_device *bdev = file_bdev(job->bdev_file);
	struct bio *bio = job->bio;
	unsigned int p;
	u64 start;

	bio_init(bio, bdev, bio_inline_vecs(bio), MAX_PAGES,
		 (job->write ? REQ_OP_WRITE : REQ_OP_READ) | REQ_SYNC | REQ_IDLE);
	for (p = 0; p < DIV_ROUND_UP(job->bytes, PAGE_SIZE); p++)
		__bio_add_page(bio, pages[0][p],
			       min(job->bytes, (unsigned int)PAGE_SIZE), 0);
	job->seed = job->seed * 6364136223846793005ULL + 1442695040888963407ULL;
	bio->bi_iter.bi_sector = (job->seed >> 33) % job->blocks *
				 (job->bytes >> SECTOR_SHIFT);

	start = ticks();
	submit_and_wait(bio);
	*t = ticks() - start;

	bio_uninit(bio);
	return blk_status_to_errno(bio->bi_status);
}

static int run_cipher(struct job *job, u64 *t)
{
	struct skcipher_request *req = job->req;
	struct scatterlist src, dst;
	unsigned int done;
	__le64 iv[2];
	u64 start;
	int err = 0;

	sg_init_table(&src, 1);
	sg_init_table(&dst, 1);
	start = ticks();
	for (done = 0; done < job->bytes && !err; done += job->unit) {
		unsigned int p = done / PAGE_SIZE;

		sg_set_page(&src, pages[0][p], job->unit, offset_in_page(done));
		sg_set_page(&dst, pages[1][p], job->unit, offset_in_page(done));
		iv[0] = cpu_to_le64(job->seed++);
		iv[1] = 0;
		skcipher_request_set_crypt(req, &src, job->write ? &dst : &src,
					   job->unit, iv);
		err = job->write ? crypto_skcipher_encrypt(req) :
				   crypto_skcipher_decrypt(req);
	}
	*t = ticks() - start;
	return err;
}

static int run_jobs(struct job *jobs, unsigned int nr, unsigned int rounds,
		    unsigned int count)
{
	unsigned int round, i;
	struct job *job;
	int err;
	u64 t;

	for (round = 0; round < rounds; round++)
		for (job = jobs; job < jobs + nr; job++)
			for (i = 0; i < WARM_UP + count; i++) {
				err = job->bdev_file ? run_bio(job, &t) :
						       run_cipher(job, &t);
				if (err)
					return err;
				if (i >= WARM_UP)
					job->t[round * count + i - WARM_UP] = t;
				cond_resched();
			}
	return 0;
}

static int set_up_bios(struct job *job, const char *path)
{
	struct file *bdev_file;

	bdev_file = bdev_file_open_by_path(path, BLK_OPEN_READ | BLK_OPEN_WRITE,
					   NULL, NULL);
	if (IS_ERR(bdev_file))
		return PTR_ERR(bdev_file);
	job->bdev_file = bdev_file;
	job->blocks = div_u64(bdev_nr_bytes(file_bdev(bdev_file)), job->bytes);
	if (!job->blocks)
		return -ENOSPC;
	job->bio = bio_kmalloc(MAX_PAGES, GFP_KERNEL);
	return job->bio ? 0 : -ENOMEM;
}

static int set_up_cipher(struct job *job, const char *unit)
{
	struct crypto_skcipher *tfm;
	u8 key[KEY_BYTES];

	if (kstrtouint(unit, 10, &job->unit) || !is_power_of_2(job->unit) ||
	    job->unit > PAGE_SIZE || job->unit < SECTOR_SIZE)
		return -EINVAL;
	tfm = crypto_alloc_skcipher("xts(aes)", 0, CRYPTO_ALG_ASYNC);
	if (IS_ERR(tfm))
		return PTR_ERR(tfm);
	job->tfm = tfm;
	job->req = skcipher_request_alloc(tfm, GFP_KERNEL);
	if (!job->req)
		return -ENOMEM;
	skcipher_request_set_callback(job->req, 0, NULL, NULL);
	get_random_bytes(key, sizeof(key));
	return crypto_skcipher_setkey(tfm, key, sizeof(key));
}

static int set_up(struct job *job, const char *line, u64 seed, unsigned int times)
{
	char verb[8], what[128];

	if (sscanf(line, "%7s %127s %u", verb, what, &job->bytes) != 3 ||
	    !job->bytes || job->bytes % SECTOR_SIZE || job->bytes > MAX_BYTES ||
	    (job->bytes > PAGE_SIZE && job->bytes % PAGE_SIZE))
		return -EINVAL;
	/* its own offsets: the first to read a block would warm the caches for others */
	job->seed = seed;
	job->t = vmalloc_array(times, sizeof(*job->t));
	if (!job->t)
		return -ENOMEM;
	job->write = !strcmp(verb, "write") || !strcmp(verb, "encrypt");
	if (!strcmp(verb, "read") || !strcmp(verb, "write"))
		return set_up_bios(job, what);
	if (!strcmp(verb, "decrypt") || !strcmp(verb, "encrypt"))
		return set_up_cipher(job, what);
	return -EINVAL;
}

static void tear_down(struct job *job)
{
	if (job->bdev_file)
		bdev_fput(job->bdev_file);
	kfree(job->bio);
	skcipher_request_free(job->req);
	if (job->tfm)
		crypto_free_skcipher(job->tfm);
	vfree(job->t);
}

static int command(char *text)
{
	char *line = strsep(&text, "\n");
	unsigned int rounds, count, nr = 0, i;
	struct job *jobs;
	size_t len = 0;
	int err = 0;

	if (sscanf(line, "%u %u", &rounds, &count) != 2 || !rounds || !count ||
	    rounds > MAX_COUNT / count)
		return -EINVAL;
	jobs = kzalloc_objs(*jobs, MAX_JOBS);
	if (!jobs)
		return -ENOMEM;
	for (; !err && (line = strsep(&text, "\n")) && *line; nr++) {
		if (nr == MAX_JOBS) {
			err = -E2BIG;
			break;
		}
		err = set_up(&jobs[nr], line, nr, rounds * count);
	}
	if (!err)
		err = run_jobs(jobs, nr, rounds, count);
	for (i = 0; i < nr; i++) {
		if (!err)
			len += summarise(jobs[i].t, rounds * count, result + len,
					 sizeof(result) - len);
		tear_down(&jobs[i]);
	}
	kfree(jobs);
	return err;
}

static ssize_t bio_loop_write(struct file *f, const char __user *buf,
			      size_t len, loff_t *pos)
{
	char *text;
	int err;

	if (len > PAGE_SIZE)
		return -EINVAL;
	text = memdup_user_nul(buf, len);
	if (IS_ERR(text))
		return PTR_ERR(text);
	mutex_lock(&lock);
	result[0] = 0;
	err = command(text);
	mutex_unlock(&lock);
	kfree(text);
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
