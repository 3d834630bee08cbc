// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Secrets in memory, and how they get there.
 *
 * Every byte of a passphrase, key file or volume key that this program owns lies in a
 * mapping of its own that is locked, not dumped and not inherited, and is overwritten
 * before it goes away. Nothing here uses stdio for a secret: its buffers would keep it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>
#include "error.h"
#include "secret.h"
#include "util.h"

/**
 * secret_init_process() - no core dumps, no ptrace by others of the same user
 */
void secret_init_process(void)
{
	const struct rlimit none = { 0, 0 };

	setrlimit(RLIMIT_CORE, &none);
	prctl(PR_SET_DUMPABLE, 0);
}

static size_t mapping_size(size_t size)
{
	size_t page = sysconf(_SC_PAGESIZE);

	return (size + page - 1) / page * page;
}

/**
 * secret_new() - locked memory for a secret
 * @size: bytes
 *
 * Where memory cannot be locked (a small RLIMIT_MEMLOCK and no root) it is used all the
 * same, still out of core dumps. Ends the process when there is no memory.
 */
struct secret *secret_new(size_t size)
{
	struct secret *secret = xcalloc(1, sizeof(*secret));
	size_t map = mapping_size(size ? size : 1);

	secret->data = mmap(NULL, map, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);
	if (secret->data == MAP_FAILED) {
		fputs("coffer: out of memory\n", stderr);
		_exit(E_FAILED);
	}
	mlock(secret->data, map);
	madvise(secret->data, map, MADV_DONTDUMP);
	madvise(secret->data, map, MADV_WIPEONFORK);
	secret->size = size;
	return secret;
}

struct secret *secret_copy(const char *data, size_t len)
{
	struct secret *secret = secret_new(len);

	memcpy(secret->data, data, len);
	secret->len = len;
	return secret;
}

/* Wipe and free; NULL is fine. */
void secret_free(struct secret *secret)
{
	if (!secret)
		return;
	explicit_bzero(secret->data, mapping_size(secret->size ? secret->size : 1));
	munmap(secret->data, mapping_size(secret->size ? secret->size : 1));
	free(secret);
}

/* In a time that does not tell where they differ. */
bool secret_equal(const struct secret *a, const struct secret *b)
{
	unsigned char differ = 0;

	if (a->len != b->len)
		return false;
	for (size_t i = 0; i < a->len; i++)
		differ |= a->data[i] ^ b->data[i];
	return !differ;
}

/**
 * secret_random() - a secret of random bytes
 * @result: the secret
 * @bytes: its size
 *
 * Return: 0, or E_FAILED.
 */
int secret_random(struct secret **result, size_t bytes)
{
	struct secret *secret = secret_new(bytes);

	while (secret->len < bytes) {
		ssize_t got = getrandom(secret->data + secret->len, bytes - secret->len, 0);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0) {
			secret_free(secret);
			return fail(E_FAILED, NULL, "cannot get random bytes: %s",
				    strerror(errno));
		}
		secret->len += got;
	}
	*result = secret;
	return 0;
}

/**
 * secret_read_line() - a passphrase from a file descriptor, up to a newline or the end
 * @fd: the descriptor; nothing behind the newline is read
 * @result: the passphrase
 *
 * Return: 0; E_KEY_FILE if it cannot be read or is empty or longer than PASSPHRASE_MAX.
 */
int secret_read_line(int fd, struct secret **result)
{
	struct secret *secret = secret_new(PASSPHRASE_MAX);
	bool line = false;
	ssize_t got;
	char c;

	for (;;) {
		got = read(fd, &c, 1);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0) {
			secret_free(secret);
			return fail(E_KEY_FILE, NULL, "cannot read the secret from descriptor %d: %s",
				    fd, strerror(errno));
		}
		line = got && c == '\n';
		if (!got || line)
			break;
		if (secret->len == secret->size) {
			explicit_bzero(&c, 1);
			secret_free(secret);
			return fail(E_KEY_FILE, "use --key-file for a long secret",
				    "cannot read the secret: longer than %d bytes",
				    PASSPHRASE_MAX);
		}
		secret->data[secret->len++] = c;
	}
	explicit_bzero(&c, 1);
	if (!secret->len) {
		secret_free(secret);
		return fail(line ? E_KEY_FILE : E_REFUSED, NULL, "no secret was given: %s",
			    line ? "the line is empty" : "end of input");
	}
	*result = secret;
	return 0;
}

/**
 * secret_read_file() - a secret of which every byte counts, the newline at its end too
 * @path: the file; "-" is standard input
 * @result: the secret
 *
 * Return: 0, or E_KEY_FILE.
 */
int secret_read_file(const char *path, struct secret **result)
{
	bool input = !strcmp(path, "-");
	struct secret *secret;
	struct stat st;
	size_t size;
	int fd, ret = 0;

	fd = input ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return fail(E_KEY_FILE, NULL, "cannot open key file %s: %s", path, strerror(errno));
	if (fstat(fd, &st)) {
		ret = fail(E_KEY_FILE, NULL, "cannot read key file %s: %s", path, strerror(errno));
		goto out;
	}
	if (S_ISDIR(st.st_mode)) {
		ret = fail(E_KEY_FILE, NULL, "cannot read key file %s: it is a directory", path);
		goto out;
	}
	if (S_ISREG(st.st_mode) && (st.st_mode & 077) && !input)
		note("key file %s can be read by others: chmod 600 %s", path, path);
	size = S_ISREG(st.st_mode) ? (size_t)st.st_size + 1 : SECRET_MAX + 1;
	if (size > SECRET_MAX + 1)
		size = SECRET_MAX + 1;
	secret = secret_new(size);
	while (secret->len < secret->size) {
		ssize_t got = read(fd, secret->data + secret->len, secret->size - secret->len);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			ret = fail(E_KEY_FILE, NULL, "cannot read key file %s: %s", path,
				   strerror(errno));
		if (got <= 0)
			break;
		secret->len += got;
	}
	if (!ret && !secret->len)
		ret = fail(E_KEY_FILE, NULL, "cannot use key file %s: it is empty", path);
	if (!ret && secret->len > SECRET_MAX)
		ret = fail(E_KEY_FILE, NULL, "cannot use key file %s: larger than %s", path,
			   human_size(SECRET_MAX));
	if (ret)
		secret_free(secret);
	else
		*result = secret;
out:
	if (!input)
		close(fd);
	return ret;
}

/* Whether a person can be asked. */
bool secret_interactive(void)
{
	return isatty(STDIN_FILENO);
}

static volatile sig_atomic_t caught;

static void catch(int sig)
{
	caught = sig;
}

/**
 * secret_ask() - ask for a passphrase
 * @result: the passphrase
 * @fmt: the prompt, without colon
 *
 * On a terminal without echo, with the terminal put right again whatever happens. When
 * standard input is not a terminal one line is read from it.
 *
 * Return: 0; E_REFUSED at the end of input; E_INTERRUPTED.
 */
int secret_ask(struct secret **result, const char *fmt, ...)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP };
	struct sigaction old[ARRAY_SIZE(signals)];
	struct sigaction action = { .sa_handler = catch };
	struct termios saved, quiet;
	sigset_t held, others;
	int tty, ret;
	va_list ap;
	char *prompt;

	if (!secret_interactive())
		return secret_read_line(STDIN_FILENO, result);
	tty = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
	if (tty < 0)
		tty = dup(STDIN_FILENO);
	if (tty < 0 || tcgetattr(tty, &saved)) {
		if (tty >= 0)
			close(tty);
		return fail(E_FAILED, NULL, "cannot ask for the secret: %s", strerror(errno));
	}
	va_start(ap, fmt);
	prompt = xvasprintf(fmt, ap);
	va_end(ap);
	caught = 0;
	/* they come in ppoll() only: one that came just before a read() would be slept over */
	sigemptyset(&held);
	for (unsigned int i = 0; i < ARRAY_SIZE(signals); i++)
		sigaddset(&held, signals[i]);
	sigprocmask(SIG_BLOCK, &held, &others);
	for (unsigned int i = 0; i < ARRAY_SIZE(signals); i++)
		sigaction(signals[i], &action, &old[i]);
	quiet = saved;
	quiet.c_lflag &= ~(ECHO | ECHONL);
	quiet.c_lflag |= ICANON | ISIG;
	quiet.c_iflag |= ICRNL;
	dprintf(tty, "%s: ", prompt);
	tcsetattr(tty, TCSAFLUSH, &quiet);
	{
		struct secret *secret = secret_new(PASSPHRASE_MAX + 1);
		ssize_t got = -1;

		if (ppoll(&(struct pollfd){ .fd = tty, .events = POLLIN }, 1, NULL, &others) > 0)
			got = read(tty, secret->data, secret->size);
		if (got > 0 && secret->data[got - 1] == '\n')
			got--;
		if (caught) {
			ret = fail(E_INTERRUPTED, NULL, "no secret was given: interrupted");
		} else if (got <= 0) {
			ret = fail(E_REFUSED, NULL, "no secret was given");
		} else if (got > PASSPHRASE_MAX) {
			tcflush(tty, TCIFLUSH);
			ret = fail(E_KEY_FILE, "use --key-file for a long secret",
				   "cannot read the secret: longer than %d bytes", PASSPHRASE_MAX);
		} else {
			secret->len = got;
			ret = 0;
		}
		if (ret)
			secret_free(secret);
		else
			*result = secret;
	}
	tcsetattr(tty, TCSAFLUSH, &saved);
	dprintf(tty, "\n");
	for (unsigned int i = 0; i < ARRAY_SIZE(signals); i++)
		sigaction(signals[i], &old[i], NULL);
	sigprocmask(SIG_SETMASK, &others, NULL);
	close(tty);
	free(prompt);
	return ret;
}

/**
 * secret_ask_new() - ask for a new passphrase, twice on a terminal
 * @result: the passphrase
 * @what: what it is for, as in "New passphrase for home"
 *
 * Return: as secret_ask(); E_REFUSED also after three pairs that differ.
 */
int secret_ask_new(struct secret **result, const char *what)
{
	struct secret *first, *second;
	bool same;
	int ret;

	if (!secret_interactive())
		return secret_ask(result, "%s", what);
	for (int i = 0; i < 3; i++) {
		ret = secret_ask(&first, "%s", what);
		if (ret)
			return ret;
		ret = secret_ask(&second, "%s, again", what);
		if (ret) {
			secret_free(first);
			return ret;
		}
		same = secret_equal(first, second);
		secret_free(second);
		if (same) {
			*result = first;
			return 0;
		}
		secret_free(first);
		dprintf(STDERR_FILENO, "They differ, try again.\n");
	}
	return fail(E_REFUSED, NULL, "no secret was set: the two entries differed three times");
}

/**
 * secret_get() - a secret from where the user said
 * @source: key file, descriptor, or neither
 * @result: the secret
 * @prompt: what to ask if neither
 *
 * Return: 0, or the code of what failed.
 */
int secret_get(const struct secret_source *source, struct secret **result, const char *prompt)
{
	if (source->key_file)
		return secret_read_file(source->key_file, result);
	if (source->fd >= 0)
		return secret_read_line(source->fd, result);
	return secret_ask(result, "%s", prompt);
}
