// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Block devices as the kernel shows them: sizes, models, signatures, and who uses them.
 *
 * Everything comes from /sys, /proc and libblkid, and nothing is written, but that
 * loop_attach() makes a loop device that goes away with its last user.
 */
#define _GNU_SOURCE
#include <blkid/blkid.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/loop.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "device.h"
#include "error.h"

/* sda1 for its number, to be freed; NULL if there is no such device. */
char *devno_kname(dev_t devno)
{
	char *link = xasprintf("/sys/dev/block/%u:%u", major(devno), minor(devno));
	char target[PATH_MAX];
	ssize_t len = readlink(link, target, sizeof(target) - 1);
	char *name;

	free(link);
	if (len <= 0)
		return NULL;
	target[len] = 0;
	name = strrchr(target, '/');
	name = xstrdup(name ? name + 1 : target);
	/* the kernel writes '!' for '/' in names such as cciss!c0d0 */
	for (char *p = name; *p; p++)
		if (*p == '!')
			*p = '/';
	return name;
}

/* /dev/sda1, or /dev/mapper/name for a mapping; to be freed. */
char *devno_path(dev_t devno)
{
	char *kname = devno_kname(devno), *dm, *path;

	if (!kname)
		return NULL;
	dm = read_text("/sys/class/block/%s/dm/name", kname);
	path = dm ? xasprintf("/dev/mapper/%s", dm) : xasprintf("/dev/%s", kname);
	if (dm && access(path, F_OK)) {
		free(path);
		path = xasprintf("/dev/%s", kname);
	}
	free(dm);
	free(kname);
	return path;
}

static char *whole_disk(const char *kname)
{
	char *text = read_text("/sys/class/block/%s/partition", kname);
	char link[PATH_MAX], *path, *slash;
	ssize_t len;

	if (!text)
		return xstrdup(kname);
	free(text);
	path = xasprintf("/sys/class/block/%s", kname);
	len = readlink(path, link, sizeof(link) - 1);
	free(path);
	if (len <= 0)
		return xstrdup(kname);
	link[len] = 0;
	/* .../block/sda/sda1 */
	slash = strrchr(link, '/');
	if (slash)
		*slash = 0;
	slash = strrchr(link, '/');
	return xstrdup(slash ? slash + 1 : kname);
}

static unsigned int queue_limit(const char *disk, const char *name)
{
	uint64_t value;

	return read_number(&value, "/sys/class/block/%s/queue/%s", disk, name) ? value : 0;
}

static int fill(struct device *device)
{
	uint64_t value;
	char *zoned;

	device->kname = devno_kname(device->devno);
	if (!device->kname)
		return fail(E_NO_VOLUME, NULL, "cannot use %s: the kernel does not know it",
			    device->path);
	device->disk = whole_disk(device->kname);
	device->size = read_number(&value, "/sys/class/block/%s/size", device->kname) ?
		       value * SECTOR : 0;
	device->read_only = read_number(&value, "/sys/class/block/%s/ro", device->kname) && value;
	device->removable = read_number(&value, "/sys/class/block/%s/removable", device->disk) &&
			    value;
	device->logical = queue_limit(device->disk, "logical_block_size");
	device->physical = queue_limit(device->disk, "physical_block_size");
	device->rotational = queue_limit(device->disk, "rotational");
	device->discards = read_number(&value, "/sys/class/block/%s/queue/discard_max_bytes",
				       device->disk) && value;
	zoned = read_text("/sys/class/block/%s/queue/zoned", device->disk);
	device->zoned = zoned && strcmp(zoned, "none");
	free(zoned);
	device->model = read_text("/sys/class/block/%s/device/model", device->disk);
	return 0;
}

/**
 * device_get() - what there is to know about a block device
 * @path: its node, or a link to it
 * @device: filled in; device_free() it
 *
 * Return: 0, or E_NO_VOLUME.
 */
int device_get(const char *path, struct device *device)
{
	struct stat st;

	memset(device, 0, sizeof(*device));
	if (stat(path, &st))
		return fail(E_NO_VOLUME, NULL, "cannot use %s: %s", path, strerror(errno));
	if (!S_ISBLK(st.st_mode))
		return fail(E_NO_VOLUME, NULL, "cannot use %s: it is not a block device", path);
	device->path = xstrdup(path);
	device->devno = st.st_rdev;
	return fill(device);
}

/* The same for a device number. */
int device_by_devno(dev_t devno, struct device *device)
{
	memset(device, 0, sizeof(*device));
	device->path = devno_path(devno);
	if (!device->path)
		return fail(E_NO_VOLUME, NULL, "cannot use block device %u:%u: it is not there",
			    major(devno), minor(devno));
	device->devno = devno;
	return fill(device);
}

void device_free(struct device *device)
{
	free(device->path);
	free(device->kname);
	free(device->disk);
	free(device->model);
	memset(device, 0, sizeof(*device));
}

/* "/dev/sda1 (238.5 GiB, Samsung SSD 970)", to be freed: for prompts. */
char *device_describe(const struct device *device)
{
	char *file = NULL, *text;

	if (loop_backing(device->kname, &file))
		text = xasprintf("%s (%s, file %s)", device->path, human_size(device->size), file);
	else
		text = xasprintf("%s (%s%s%s)", device->path, human_size(device->size),
				 device->model ? ", " : "", device->model ? device->model : "");
	free(file);
	return text;
}

/**
 * device_signatures() - what libblkid finds on a device
 * @path: the device, or an image file
 * @found: "ext4 file system (label home)", "crypto_LUKS", "gpt partition table"; added to
 *
 * All signatures are reported, not the first one only.
 *
 * Return: 0, or E_IO.
 */
int device_signatures(const char *path, struct strings *found)
{
	blkid_probe probe = blkid_new_probe_from_filename(path);
	const char *type, *label, *usage;
	int ret;

	if (!probe)
		return fail(E_IO, NULL, "cannot read %s: %s", path, strerror(errno));
	blkid_probe_enable_superblocks(probe, 1);
	blkid_probe_set_superblocks_flags(probe, BLKID_SUBLKS_TYPE | BLKID_SUBLKS_LABEL |
					  BLKID_SUBLKS_USAGE | BLKID_SUBLKS_MAGIC);
	blkid_probe_enable_partitions(probe, 1);
	blkid_probe_set_partitions_flags(probe, BLKID_PARTS_MAGIC);
	while ((ret = blkid_do_probe(probe)) == 0) {
		type = label = usage = NULL;
		if (!blkid_probe_lookup_value(probe, "TYPE", &type, NULL)) {
			blkid_probe_lookup_value(probe, "LABEL", &label, NULL);
			blkid_probe_lookup_value(probe, "USAGE", &usage, NULL);
			strings_add(found, xasprintf("%s%s%s%s%s", type,
				    usage && !strcmp(usage, "filesystem") ? " file system" : "",
				    label && *label ? " \"" : "", label && *label ? label : "",
				    label && *label ? "\"" : ""));
		} else if (!blkid_probe_lookup_value(probe, "PTTYPE", &type, NULL)) {
			strings_add(found, xasprintf("%s partition table", type));
		}
	}
	blkid_free_probe(probe);
	return ret < 0 ? fail(E_IO, NULL, "cannot read %s for signatures", path) : 0;
}

/* Whether a device, or one that it stands on, is a suspended mapping: reading it waits. */
bool device_suspended(const char *kname)
{
	struct strings stack = { 0 };
	bool suspended = false;

	strings_add(&stack, xstrdup(kname));
	device_stack_below(kname, &stack);
	for (unsigned int i = 0; i < stack.nr && !suspended; i++) {
		uint64_t value;

		suspended = read_number(&value, "/sys/class/block/%s/dm/suspended", stack.s[i]) &&
			    value;
	}
	strings_free(&stack);
	return suspended;
}

static bool starts_like_luks(const char *path)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	char magic[6];
	bool luks;

	if (fd < 0)
		return false;
	luks = pread(fd, magic, sizeof(magic), 0) == sizeof(magic) &&
	       !memcmp(magic, "LUKS\xba\xbe", sizeof(magic));
	close(fd);
	return luks;
}

/**
 * devices_with_luks() - the block devices that begin with a LUKS header
 * @paths: added to
 *
 * libblkid would look at each device too, but waits for those that are suspended.
 */
void devices_with_luks(struct strings *paths)
{
	DIR *dir = opendir("/sys/class/block");
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		unsigned int maj, min;
		uint64_t sectors;
		char *text, *path;

		if (entry->d_name[0] == '.' ||
		    !read_number(&sectors, "/sys/class/block/%s/size", entry->d_name) || !sectors ||
		    device_suspended(entry->d_name))
			continue;
		text = read_text("/sys/class/block/%s/dev", entry->d_name);
		path = text && sscanf(text, "%u:%u", &maj, &min) == 2 ? devno_path(makedev(maj, min)) :
		       NULL;
		free(text);
		if (path && starts_like_luks(path))
			strings_add(paths, path);
		else
			free(path);
	}
	if (dir)
		closedir(dir);
}

/* ---- who uses it ------------------------------------------------------------------- */

/* mountinfo writes blanks and the like as \040 */
static void unescape(char *s)
{
	char *out = s;

	for (; *s; s++) {
		if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] && s[3]) {
			*out++ = (s[1] - '0') * 64 + (s[2] - '0') * 8 + (s[3] - '0');
			s += 3;
		} else {
			*out++ = *s;
		}
	}
	*out = 0;
}

typedef bool (*mount_fn)(dev_t devno, const char *source, const char *point, void *arg);

static void for_each_mount(mount_fn fn, void *arg)
{
	FILE *file = fopen("/proc/self/mountinfo", "re");
	char *line = NULL;
	size_t size = 0;

	if (!file)
		return;
	while (getline(&line, &size, file) > 0) {
		char *save, *field = strtok_r(line, " ", &save);
		char *point = NULL, *source = NULL;
		unsigned int maj = 0, min = 0;

		for (int i = 0; field && strcmp(field, "-"); i++) {
			if (i == 2 && sscanf(field, "%u:%u", &maj, &min) != 2)
				break;
			if (i == 4)
				point = field;
			field = strtok_r(NULL, " ", &save);
		}
		if (!field || !point)
			continue;
		if (strtok_r(NULL, " ", &save))
			source = strtok_r(NULL, " ", &save);
		unescape(point);
		if (source)
			unescape(source);
		if (!fn(makedev(maj, min), source ? source : "", point, arg))
			break;
	}
	free(line);
	fclose(file);
}

/* The device behind a mounted file system; btrfs shows a number of its own. */
static dev_t source_devno(dev_t devno, const char *source)
{
	struct stat st;

	if (!major(devno) && *source == '/' && !stat(source, &st) && S_ISBLK(st.st_mode))
		return st.st_rdev;
	return devno;
}

struct mount_query {
	dev_t devno;
	const char *point;
	struct strings *points;
	bool found;
};

static bool match_devno(dev_t devno, const char *source, const char *point, void *arg)
{
	struct mount_query *query = arg;

	if (source_devno(devno, source) == query->devno && !strings_has(query->points, point))
		strings_add(query->points, xstrdup(point));
	return true;
}

/**
 * mounts_of() - where a device is mounted
 * @devno: the device
 * @path: unused name of it, for callers that have one
 * @points: mount points, added to
 */
void mounts_of(dev_t devno, const char *path, struct strings *points)
{
	struct mount_query query = { .devno = devno, .points = points };

	(void)path;
	for_each_mount(match_devno, &query);
}

static bool match_point(dev_t devno, const char *source, const char *point, void *arg)
{
	struct mount_query *query = arg;

	if (!strcmp(point, query->point)) {
		/* the last one mounted there is the one that is seen */
		query->devno = source_devno(devno, source);
		query->found = true;
	}
	return true;
}

/* The device that is mounted at a directory. */
bool mount_devno(const char *dir, dev_t *devno)
{
	char *real = realpath(dir, NULL);
	struct mount_query query = { .point = real };

	if (!real)
		return false;
	for_each_mount(match_point, &query);
	free(real);
	*devno = query.devno;
	return query.found;
}

/* What a device stands on, the whole way down; knames, added to. */
void device_stack_below(const char *kname, struct strings *knames)
{
	char *path = xasprintf("/sys/class/block/%s/slaves", kname);
	DIR *dir = opendir(path);
	struct dirent *entry;

	free(path);
	if (!dir)
		return;
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.' || strings_has(knames, entry->d_name))
			continue;
		strings_add(knames, xstrdup(entry->d_name));
		device_stack_below(entry->d_name, knames);
	}
	closedir(dir);
}

static void find_swaps(dev_t devno, const char *kname, struct users *users)
{
	char *text = read_text("/proc/swaps"), *save, *line;
	struct stat st;

	for (line = text ? strtok_r(text, "\n", &save) : NULL; line;
	     line = strtok_r(NULL, "\n", &save)) {
		char *end = strpbrk(line, " \t");

		if (!end || *line != '/')
			continue;
		*end = 0;
		unescape(line);
		if (!stat(line, &st) && S_ISBLK(st.st_mode) && st.st_rdev == devno)
			strings_add(&users->swaps, xasprintf("swap on %s", kname));
	}
	free(text);
}

static void find_holders(const char *kname, struct users *users)
{
	char *path = xasprintf("/sys/class/block/%s/holders", kname);
	DIR *dir = opendir(path);
	struct dirent *entry;

	free(path);
	if (!dir)
		return;
	while ((entry = readdir(dir))) {
		char *name, *uuid, *number;
		unsigned int maj, min;

		if (entry->d_name[0] == '.')
			continue;
		name = read_text("/sys/class/block/%s/dm/name", entry->d_name);
		uuid = read_text("/sys/class/block/%s/dm/uuid", entry->d_name);
		strings_add(&users->holders, xasprintf("%s %s",
			    uuid && starts_with(uuid, "LVM-") ? "LV" :
			    uuid && starts_with(uuid, "CRYPT-") ? "encrypted volume" :
			    name ? "mapping" : "device", name ? name : entry->d_name));
		free(name);
		free(uuid);
		number = read_text("/sys/class/block/%s/dev", entry->d_name);
		if (number && sscanf(number, "%u:%u", &maj, &min) == 2) {
			/* what is mounted above counts as well */
			mounts_of(makedev(maj, min), NULL, &users->mounts);
			find_swaps(makedev(maj, min), entry->d_name, users);
		}
		free(number);
		find_holders(entry->d_name, users);
	}
	closedir(dir);
}

static bool process_uses(const char *pid, dev_t devno, const struct strings *points)
{
	static const char *const links[] = { "cwd", "root", "exe" };
	struct dirent *entry;
	struct stat st;
	char *path, *target;
	bool uses = false;
	DIR *dir;

	path = xasprintf("/proc/%s/fd", pid);
	dir = opendir(path);
	while (dir && !uses && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		if (fstatat(dirfd(dir), entry->d_name, &st, 0))
			continue;
		uses = S_ISBLK(st.st_mode) ? st.st_rdev == devno : st.st_dev == devno;
		for (unsigned int i = 0; i < points->nr && !uses; i++) {
			struct stat point;

			uses = !S_ISBLK(st.st_mode) && !stat(points->s[i], &point) &&
			       st.st_dev == point.st_dev;
		}
	}
	if (dir)
		closedir(dir);
	free(path);
	for (unsigned int i = 0; i < ARRAY_SIZE(links) && !uses; i++) {
		target = xasprintf("/proc/%s/%s", pid, links[i]);
		if (!stat(target, &st))
			for (unsigned int p = 0; p < points->nr && !uses; p++) {
				struct stat point;

				uses = !stat(points->s[p], &point) && st.st_dev == point.st_dev;
			}
		free(target);
	}
	return uses;
}

static void find_processes(dev_t devno, struct users *users)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	char *name;

	if (!dir)
		return;
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] < '0' || entry->d_name[0] > '9')
			continue;
		if (atoi(entry->d_name) == getpid())
			continue;
		if (!process_uses(entry->d_name, devno, &users->mounts))
			continue;
		name = read_text("/proc/%s/comm", entry->d_name);
		strings_add(&users->processes, xasprintf("process %s (%s)", name ? name : "?",
							 entry->d_name));
		free(name);
	}
	closedir(dir);
}

/**
 * device_users() - who keeps a device busy: mounts, swap, LVs and mappings, processes
 * @device: the device
 * @users: filled in; users_free() it
 *
 * What is mounted on top of an LV on the device counts too. Processes of others are seen
 * by root only.
 */
void device_users(const struct device *device, struct users *users)
{
	memset(users, 0, sizeof(*users));
	mounts_of(device->devno, device->path, &users->mounts);
	find_swaps(device->devno, device->kname, users);
	find_holders(device->kname, users);
	find_processes(device->devno, users);
}

bool users_any(const struct users *users)
{
	return users->mounts.nr || users->holders.nr || users->swaps.nr || users->processes.nr;
}

/* "mounted at /home, LV vg-home, process fio (123)", to be freed. */
char *users_text(const struct users *users)
{
	struct strings all = { 0 };
	char *text;

	for (unsigned int i = 0; i < users->mounts.nr; i++)
		strings_add(&all, xasprintf("mounted at %s", users->mounts.s[i]));
	for (unsigned int i = 0; i < users->swaps.nr; i++)
		strings_add(&all, xstrdup(users->swaps.s[i]));
	for (unsigned int i = 0; i < users->holders.nr; i++)
		strings_add(&all, xstrdup(users->holders.s[i]));
	for (unsigned int i = 0; i < users->processes.nr; i++) {
		if (i == 5) {
			strings_add(&all, xasprintf("%u more processes", users->processes.nr - i));
			break;
		}
		strings_add(&all, xstrdup(users->processes.s[i]));
	}
	text = all.nr ? strings_join(&all, ", ") : xstrdup("in use");
	strings_free(&all);
	return text;
}

void users_free(struct users *users)
{
	strings_free(&users->mounts);
	strings_free(&users->holders);
	strings_free(&users->swaps);
	strings_free(&users->processes);
}

/* ---- loop devices -------------------------------------------------------------------- */

/* The file behind a loop device. */
bool loop_backing(const char *kname, char **file)
{
	*file = read_text("/sys/class/block/%s/loop/backing_file", kname);
	return *file;
}

/**
 * loop_attach() - a loop device for an image file
 * @file: the image
 * @read_only: do not open it for writing
 * @device: the loop device
 * @fd: keeps the loop device alive; close it when a mapping stands on it
 *
 * The loop device goes away with its last user. Direct I/O below, if the file system can,
 * so that nothing is cached twice.
 *
 * Return: 0, E_NO_VOLUME or E_FAILED.
 */
int loop_attach(const char *file, bool read_only, struct device *device, int *fd)
{
	struct loop_config config = { 0 };
	int control, image, number, tries;
	char *path = NULL;

	image = open(file, (read_only ? O_RDONLY : O_RDWR) | O_CLOEXEC);
	if (image < 0)
		return fail(E_NO_VOLUME, NULL, "cannot open image %s: %s", file, strerror(errno));
	control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	if (control < 0) {
		close(image);
		return fail(E_FAILED, "modprobe loop", "cannot make a loop device for %s: %s",
			    file, strerror(errno));
	}
	config.fd = image;
	config.info.lo_flags = LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO |
			       (read_only ? LO_FLAGS_READ_ONLY : 0);
	snprintf((char *)config.info.lo_file_name, LO_NAME_SIZE, "%s", file);
	*fd = -1;
	/* another process may take the free one first */
	for (tries = 0; tries < 20 && *fd < 0; tries++) {
		number = ioctl(control, LOOP_CTL_GET_FREE);
		if (number < 0)
			break;
		free(path);
		path = xasprintf("/dev/loop%d", number);
		*fd = open(path, (read_only ? O_RDONLY : O_RDWR) | O_CLOEXEC);
		if (*fd < 0)
			continue;
		if (!ioctl(*fd, LOOP_CONFIGURE, &config))
			break;
		if (errno == EINVAL && config.info.lo_flags & LO_FLAGS_DIRECT_IO)
			config.info.lo_flags &= ~LO_FLAGS_DIRECT_IO;
		close(*fd);
		*fd = -1;
	}
	close(control);
	close(image);
	if (*fd < 0) {
		free(path);
		return fail(E_FAILED, NULL, "cannot make a loop device for %s: %s", file,
			    strerror(errno));
	}
	tries = device_get(path, device);
	free(path);
	if (tries) {
		close(*fd);
		*fd = -1;
	}
	return tries;
}

/**
 * loop_follow() - have a loop device take the size that its file has now
 * @device: any device; its size is brought up to date if it is a loop device
 *
 * Return: 0, or E_FAILED.
 */
int loop_follow(struct device *device)
{
	char *file = NULL;
	uint64_t sectors;
	int fd, ret = 0;

	if (!loop_backing(device->kname, &file))
		return 0;
	fd = open(device->path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || ioctl(fd, LOOP_SET_CAPACITY, 0))
		ret = fail(E_FAILED, NULL, "cannot have %s take the size of %s: %s", device->path,
			   file, strerror(errno));
	if (fd >= 0)
		close(fd);
	if (!ret && read_number(&sectors, "/sys/class/block/%s/size", device->kname))
		device->size = sectors * SECTOR;
	free(file);
	return ret;
}
