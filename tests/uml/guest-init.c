// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * First process of the User-Mode Linux guest. In C and static, because a
 * process start costs 50 ms on the debug kernel, and a shell would
 * start thirty.
 *
 * The root is the host's, read-only: it goes beneath a tmpfs overlay, and the
 * job runs in a chroot there. Then leaks are looked for, and the verdict is
 * written. The directory that this program lies in (CTL, made by tests/uml/run)
 * holds the file `job`, strings with a NUL each: OUTDIR, directory of modules,
 * kernel release, working directory, NAME=VALUE..., an empty one, ARG...
 *
 * Invariants: only CTL and OUTDIR are writable on the host; a guest that ends
 * without a verdict has failed.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#define NEW "/mnt/new"
#define LEAKS "/sys/kernel/debug/kmemleak"
#define MAX_STRINGS 4096

static void to_log(const char *format, ...)
{
	char line[512];
	va_list args;
	int fd = open("/dev/kmsg", O_WRONLY);
	int n = snprintf(line, sizeof(line), "<4>uml-init: ");

	va_start(args, format);
	vsnprintf(line + n, sizeof(line) - n, format, args);
	va_end(args);
	if (fd >= 0 && write(fd, line, strlen(line)) < 0)
		puts(line);
	close(fd);
}

/* No verdict: tests/uml/run shows the end of the log. */
static void die(const char *what)
{
	to_log("%s: %s", what, strerror(errno));
	reboot(RB_POWER_OFF);
	_exit(1);
}

static void mnt(const char *type, const char *source, const char *at,
		unsigned long flags, const char *options)
{
	if (mount(source, at, type, flags, options))
		die(at);
}

static void make_dir(const char *path)
{
	char part[4096];

	for (size_t i = 1; i <= strlen(path); i++) {
		if (path[i] && path[i] != '/')
			continue;
		snprintf(part, sizeof(part), "%.*s", (int)i, path);
		if (mkdir(part, 0755) && errno != EEXIST)
			die(part);
	}
}

/* The whole of a file with a NUL behind it; NULL if it can not be opened. */
static char *slurp(const char *path, size_t *len)
{
	FILE *f = fopen(path, "r");
	char *text = NULL;
	ssize_t n;
	size_t room = 0, got = 0;

	if (!f)
		return NULL;
	do {
		room += 65536;
		text = realloc(text, room + 1);
		if (!text)
			die("memory");
		n = fread(text + got, 1, room - got, f);
		got += n;
	} while (n > 0);
	fclose(f);
	text[got] = 0;
	if (len)
		*len = got;
	return text;
}

static int spit(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	int ok = fd >= 0 && write(fd, text, strlen(text)) >= 0;

	if (fd >= 0) {
		fsync(fd);
		close(fd);
	}
	return ok;
}

static void make_root(const char *ctl, char **job)
{
	char path[4096];

	mnt("tmpfs", "rw", "/mnt", 0, "mode=755,size=75%");
	make_dir("/mnt/upper");
	make_dir("/mnt/work");
	make_dir(NEW);
	mnt("overlay", "root", NEW, 0, "lowerdir=/,upperdir=/mnt/upper,workdir=/mnt/work");
	mnt("proc", "proc", NEW "/proc", 0, NULL);
	mnt("sysfs", "sys", NEW "/sys", 0, NULL);
	mnt("debugfs", "debug", NEW "/sys/kernel/debug", 0, NULL);
	mnt("configfs", "config", NEW "/sys/kernel/config", 0, NULL);
	mnt("devtmpfs", "dev", NEW "/dev", 0, NULL);
	make_dir(NEW "/dev/pts");
	mnt("devpts", "pts", NEW "/dev/pts", 0, "mode=620,ptmxmode=666");
	make_dir(NEW "/dev/shm");
	mnt("tmpfs", "shm", NEW "/dev/shm", 0, "mode=1777");
	mnt("tmpfs", "run", NEW "/run", 0, "mode=755");
	make_dir(NEW "/run/out");
	mnt("hostfs", "out", NEW "/run/out", 0, job[0]);
	make_dir(NEW "/run/ctl");
	mnt("hostfs", "ctl", NEW "/run/ctl", 0, ctl);
	make_dir(NEW "/run/lock");
	snprintf(path, sizeof(path), NEW "/lib/modules/%s", job[2]);
	make_dir(path);
	mnt(NULL, job[1], path, MS_BIND, NULL);
	if (symlink("/proc/self/fd", NEW "/dev/fd") ||
	    symlink("/proc/self/fd/0", NEW "/dev/stdin") ||
	    symlink("/proc/self/fd/1", NEW "/dev/stdout") ||
	    symlink("/proc/self/fd/2", NEW "/dev/stderr"))
		die("/dev");
	if (chdir(NEW) || chroot("."))
		die("chroot");
	if (sethostname("uml", 3))
		die("hostname");
}

static void exec_job(char **job)
{
	char **env = job + 4, **args = env;

	if (chdir(job[3]))
		die(job[3]);
	while (**args)
		args++;
	*args++ = NULL;
	environ = env;
	execvp(args[0], args);
	fprintf(stderr, "uml-init: %s: %s\n", args[0], strerror(errno));
	_exit(errno == ENOENT ? 127 : 126);
}

/* Runs the job with its output on console 1; returns its exit status. */
static int run_job(char **job)
{
	int console = open("/dev/tty1", O_WRONLY | O_NOCTTY);
	int null = open("/dev/null", O_RDWR);
	int ends[2], status = 0, over = 0;
	struct termios raw;
	char buf[4096];
	pid_t pid;

	if (console < 0 || null < 0 || pipe2(ends, O_CLOEXEC))
		die("console");
	tcgetattr(console, &raw);
	cfmakeraw(&raw);
	tcsetattr(console, TCSANOW, &raw);

	pid = fork();
	if (pid < 0)
		die("fork");
	if (!pid) {
		setsid();
		dup2(null, 0);
		dup2(ends[1], 1);
		dup2(ends[1], 2);
		close(console);
		close(null);
		exec_job(job);
	}
	close(ends[1]);

	/* A process that the job left behind may hold the pipe open: an empty
	 * pipe ends it too, once the job is over.
	 */
	for (;;) {
		struct pollfd p = { .fd = ends[0], .events = POLLIN };
		ssize_t n = 0, done;
		int ready = poll(&p, 1, over ? 0 : 50), wstatus;
		pid_t dead;

		if (ready > 0) {
			n = read(ends[0], buf, sizeof(buf));
			for (ssize_t at = 0; at < n; at += done) {
				done = write(console, buf + at, n - at);
				if (done < 0)
					break;
			}
		}
		if (over && n <= 0)
			break;
		if (ready > 0 && n <= 0) {	/* end of file: wait for the job */
			while ((dead = wait(&wstatus)) != pid && (dead > 0 || errno == EINTR))
				;
			status = wstatus;
			break;
		}
		while (!over && (dead = waitpid(-1, &wstatus, WNOHANG)) > 0)
			if (dead == pid) {
				over = 1;
				status = wstatus;
			}
	}
	tcdrain(console);
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* An object counts when two scans, five seconds after its birth, find no
 * pointer to it.
 */
static void look_for_leaks(void)
{
	char *leaks;

	if (access(LEAKS, F_OK))
		return;
	spit(LEAKS, "scan");
	usleep(5500000);
	spit(LEAKS, "scan");
	leaks = slurp(LEAKS, NULL);
	if (leaks && *leaks && !spit("/run/out/kmemleak.txt", leaks))
		die("kmemleak.txt");
}

int main(int argc, char **argv)
{
	char *ctl = dirname(strdup(argv[0])), *text, *stats, *locks, path[4096];
	char *job[MAX_STRINGS];
	size_t len = 0, n = 0;

	(void)argc;
	snprintf(path, sizeof(path), "%s/job", ctl);
	text = slurp(path, &len);
	if (!text)
		die(path);
	for (char *s = text; s < text + len && n < MAX_STRINGS - 1; s += strlen(s) + 1)
		job[n++] = s;
	job[n] = NULL;
	if (n < 6)
		die("job");

	make_root(ctl, job);
	spit("/proc/sys/kernel/printk", "8");
	/* What the boot leaves behind is not the job's. */
	if (!access(LEAKS, F_OK))
		spit(LEAKS, "clear");
	to_log("the job starts");
	stats = slurp("/proc/lockdep_stats", NULL);
	locks = stats ? strstr(stats, "debug_locks:") : NULL;
	if (locks && strtoul(locks + strlen("debug_locks:"), NULL, 10) != 1)
		to_log("WARNING: lockdep has switched itself off");
	snprintf(path, sizeof(path), "exit %d\n", run_job(job));
	look_for_leaks();
	umount2("/run/out", MNT_DETACH);
	sync();
	if (!spit("/run/ctl/verdict", path))
		die("verdict");
	sync();
	reboot(RB_POWER_OFF);
	return 1;
}
