// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Converting in place: libcryptsetup's engine, and what makes it survive a power cut.
 *
 * While the header is on the device, LUKS2 itself knows how far the conversion is. Before
 * (the header is about to be written over the start of the file system) and after (the
 * start of the device holds plain data again) it lies in a file beside a journal of one
 * line. Each stage can be done again from its start:
 *
 *	prepare	nothing of the device but free space has been written
 *	place	the header in the file is complete; the device's start may be anything
 *	export	the header on the device is complete, or the one in the file is
 *	decrypt	only the one in the file counts
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "backup.h"
#include "convert.h"
#include "error.h"
#include "ui.h"

#define JOURNALS STATE_DIR "/convert"
#define RUN_DIR "/run/coffer"

/* ---- journal ---------------------------------------------------------------------------- */

/* The file with the header of a conversion; to be freed. */
char *journal_header(const char *uuid)
{
	return xasprintf(JOURNALS "/%s.luks", uuid);
}

static char *journal_path(const char *uuid)
{
	return xasprintf(JOURNALS "/%s.json", uuid);
}

void journal_free(struct convert_journal *journal)
{
	free(journal->stage);
	free(journal->header);
	free(journal->uuid);
	memset(journal, 0, sizeof(*journal));
}

static int sync_dir(const char *path)
{
	int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), ret;

	if (dir < 0)
		return -1;
	ret = fsync(dir);
	close(dir);
	return ret;
}

/* What a device is called wherever it is plugged in: its partition's UUID, else its path. */
static char *identity(const struct device *device)
{
	char *path, *name = NULL;
	struct dirent *entry;
	struct stat st;
	DIR *dir = opendir("/dev/disk/by-partuuid");

	while (dir && !name && (entry = readdir(dir))) {
		path = xasprintf("/dev/disk/by-partuuid/%s", entry->d_name);
		if (entry->d_name[0] != '.' && !stat(path, &st) && st.st_rdev == device->devno)
			name = xstrdup(path);
		free(path);
	}
	if (dir)
		closedir(dir);
	if (!name && loop_backing(device->kname, &name))
		return name;
	return name ? name : xstrdup(device->path);
}

static const char *member(struct json_object *object, const char *key)
{
	struct json_object *value;

	return json_object_object_get_ex(object, key, &value) ? json_object_get_string(value) : NULL;
}

/* The next journal in the directory and its UUID, to be freed both; NULL after the last one. */
static struct json_object *journal_next(DIR *dir, char **uuid)
{
	struct json_object *object;
	struct dirent *entry;
	char *text;

	while (dir && (entry = readdir(dir))) {
		size_t len = strlen(entry->d_name);

		if (len < 5 || strcmp(entry->d_name + len - 5, ".json"))
			continue;
		text = read_text(JOURNALS "/%s", entry->d_name);
		object = text ? json_tokener_parse(text) : NULL;
		free(text);
		if (object && member(object, "device") && member(object, "stage") &&
		    member(object, "size")) {
			*uuid = xasprintf("%.*s", (int)(len - 5), entry->d_name);
			return object;
		}
		json_object_put(object);
	}
	return NULL;
}

/**
 * journal_find() - whether a conversion of a device was cut off while its header was away
 * @device: the device
 * @journal: filled in if it was; journal_free() it
 * @found: whether it was
 *
 * Return: 0, or what failed.
 */
int journal_find(const struct device *device, struct convert_journal *journal, bool *found)
{
	DIR *dir = opendir(JOURNALS);
	char *id = identity(device), *uuid;
	struct json_object *object;

	memset(journal, 0, sizeof(*journal));
	*found = false;
	while (!*found && (object = journal_next(dir, &uuid))) {
		if (!strcmp(member(object, "device"), id) &&
		    strtoull(member(object, "size"), NULL, 10) == device->size) {
			*found = true;
			journal->stage = xstrdup(member(object, "stage"));
			journal->uuid = uuid;
			journal->header = journal_header(uuid);
		} else {
			free(uuid);
		}
		json_object_put(object);
	}
	if (dir)
		closedir(dir);
	free(id);
	return 0;
}

/**
 * journal_load() - a volume's header, in the journal while a conversion keeps it there
 * @device: where the data is
 * @file: a detached header, or NULL
 * @header: to be freed
 *
 * Changes nothing; for those who look, and for those who have somebody else's conversion wait.
 *
 * Return: as header_load().
 */
int journal_load(const struct device *device, const char *file, struct header **header)
{
	struct convert_journal journal = { 0 };
	bool found = false;
	int ret = file ? 0 : journal_find(device, &journal, &found);

	if (!ret && found && !header_load(device->path, journal.header, header)) {
		journal_free(&journal);
		return 0;
	}
	error_clear();
	journal_free(&journal);
	return ret ? ret : header_load(device->path, file, header);
}

/**
 * journal_devices() - devices of which a conversion keeps the header, that are there now
 * @paths: added to; an image file that has no loop device is not among them
 */
void journal_devices(struct strings *paths)
{
	DIR *dir = opendir(JOURNALS);
	struct json_object *object;
	struct stat st;
	char *uuid;

	while ((object = journal_next(dir, &uuid))) {
		if (!stat(member(object, "device"), &st) && S_ISBLK(st.st_mode))
			strings_add(paths, devno_path(st.st_rdev));
		json_object_put(object);
		free(uuid);
	}
	if (dir)
		closedir(dir);
}

/**
 * journal_refuse() - leave a device alone whose conversion has not ended
 * @device: the device
 * @what: what cannot be done to it
 *
 * Its header may be in the journal only, and an older one would not know how far it is.
 *
 * Return: 0; E_BUSY if there is a journal.
 */
int journal_refuse(const struct device *device, const char *what)
{
	struct convert_journal journal = { 0 };
	bool found = false;
	int ret = journal_find(device, &journal, &found);

	if (!ret && found)
		ret = fail(E_BUSY, "coffer resume or coffer disable goes on with it",
			   "cannot %s %s: its conversion has not ended", what, device->path);
	journal_free(&journal);
	return ret;
}

/**
 * journal_write() - note that a conversion enters a stage
 * @device: the device
 * @uuid: of the volume
 * @stage: see the top of this file
 *
 * Returns when it is on the disk. Return: 0, or what failed.
 */
int journal_write(const struct device *device, const char *uuid, const char *stage)
{
	char *path = journal_path(uuid), *fresh = xasprintf("%s.new", path), *id = identity(device);
	struct json_object *object = json_object_new_object();
	const char *text;
	int fd, ret = 0;

	put_str(object, "device", id);
	put_num(object, "size", device->size);
	put_str(object, "stage", stage);
	text = json_object_to_json_string_ext(object, JSON_C_TO_STRING_PLAIN);
	if ((mkdir(STATE_DIR, 0700) && errno != EEXIST) || (mkdir(JOURNALS, 0700) && errno != EEXIST))
		ret = fail(E_FAILED, NULL, "cannot make the directory " JOURNALS ": %s",
			   strerror(errno));
	fd = ret ? -1 : open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (!ret && (fd < 0 || write_all(fd, text, strlen(text)) || fsync(fd) ||
		     rename(fresh, path) || sync_dir(JOURNALS) || sync_dir(STATE_DIR)))
		ret = fail(E_IO, NULL, "cannot write %s: %s", path, strerror(errno));
	if (fd >= 0)
		close(fd);
	json_object_put(object);
	free(id);
	free(path);
	free(fresh);
	return ret;
}

/* The header is on the device, or not needed any more. */
void journal_remove(const char *uuid)
{
	char *path = journal_path(uuid), *file = journal_header(uuid);

	unlink(path);
	sync_dir(JOURNALS);
	unlink(file);
	sync_dir(JOURNALS);
	free(path);
	free(file);
}

/* ---- how far it is ------------------------------------------------------------------------ */

/* Sectors of segments that are what all of them will be in the end. */
static uint64_t segments_done(struct json_object *segments, bool decrypting, uint64_t *total)
{
	uint64_t done = 0;

	json_object_object_foreach(segments, key, segment) {
		struct json_object *flags;
		bool backup = false, converted;
		uint64_t size = 0;
		const char *text = member(segment, "size"), *type = member(segment, "type");

		(void)key;
		if (json_object_object_get_ex(segment, "flags", &flags))
			for (size_t i = 0; i < json_object_array_length(flags); i++) {
				const char *flag = json_object_get_string(
					json_object_array_get_idx(flags, i));

				backup |= starts_with(flag, "backup-");
			}
		if (backup || !text || !type)
			continue;
		size = strtoull(text, NULL, 10);
		converted = decrypting ? !strcmp(type, "linear") : !strcmp(type, "crypt");
		*total += size;
		if (converted)
			done += size;
	}
	return done;
}

/**
 * convert_get_state() - what a header says of a conversion
 * @header: the header
 * @state: filled in
 */
void convert_get_state(const struct header *header, struct convert_state *state)
{
	struct crypt_params_reencrypt params = { 0 };
	struct json_object *root, *segments;
	crypt_reencrypt_info info;
	const char *json;

	memset(state, 0, sizeof(*state));
	if (!header->luks2)
		return;
	info = crypt_reencrypt_status(header->cd, &params);
	if (info != CRYPT_REENCRYPT_CLEAN && info != CRYPT_REENCRYPT_CRASH)
		return;
	state->active = true;
	state->crashed = info == CRYPT_REENCRYPT_CRASH;
	state->decrypting = params.mode == CRYPT_REENCRYPT_DECRYPT;
	state->rotating = params.mode == CRYPT_REENCRYPT_REENCRYPT;
	if (crypt_dump_json(header->cd, &json, 0))
		return;
	root = json_tokener_parse(json);
	if (root && json_object_object_get_ex(root, "segments", &segments))
		state->done = segments_done(segments, state->decrypting, &state->total);
	json_object_put(root);
}

static char *run_path(const char *uuid)
{
	return xasprintf(RUN_DIR "/%s.convert", uuid);
}

/**
 * convert_get_run() - whether a process converts a volume now
 * @uuid: of the volume
 * @run: filled in
 *
 * The process holds a lock on its file, so one that died is not taken for alive.
 */
void convert_get_run(const char *uuid, struct convert_run *run)
{
	char *path = run_path(uuid), *text;
	unsigned long long rate;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	memset(run, 0, sizeof(*run));
	if (fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) && errno == EWOULDBLOCK) {
		run->running = true;
		text = read_text("%s", path);
		if (text && sscanf(text, "%d %llu %63[a-z]", &run->pid, &rate, run->why) >= 2)
			run->rate = rate;
		run->paused = *run->why;
		free(text);
	}
	if (fd >= 0)
		close(fd);
	free(path);
}

static char *pause_path(const char *uuid)
{
	return xasprintf(RUN_DIR "/%s.pause", uuid);
}

/* Have a running conversion wait, or go on. */
int convert_pause(const char *uuid, bool pause)
{
	char *path = pause_path(uuid);
	int fd, ret = 0;

	if (pause) {
		mkdir(RUN_DIR, 0755);
		fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		if (fd < 0)
			ret = fail(E_FAILED, NULL, "cannot write %s: %s", path, strerror(errno));
		else
			close(fd);
	} else {
		unlink(path);
	}
	free(path);
	return ret;
}

/* ---- the engine ------------------------------------------------------------------------------ */

struct runner {
	const char *uuid;
	struct progress progress;
	bool begun;
	int fd;			/* of the run file, locked */
	uint64_t max_rate, window_bytes, last;
	double window;
};

static volatile sig_atomic_t stop;

static void on_signal(int sig)
{
	stop = sig;
}

static double seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

static void doze(double s)
{
	struct timespec ts = { s, (s - (long)s) * 1e9 };

	nanosleep(&ts, NULL);
}

/* A laptop that is about to run out is not the time to move all data. */
static bool battery_low(void)
{
	DIR *dir = opendir("/sys/class/power_supply");
	bool battery = false, mains = false;
	struct dirent *entry;
	uint64_t value;
	char *type;

	while (dir && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		type = read_text("/sys/class/power_supply/%s/type", entry->d_name);
		if (type && !strcmp(type, "Battery"))
			battery |= read_number(&value, "/sys/class/power_supply/%s/capacity",
					       entry->d_name) && value < 15;
		else if (type)
			mains |= read_number(&value, "/sys/class/power_supply/%s/online",
					     entry->d_name) && value;
		free(type);
	}
	if (dir)
		closedir(dir);
	return battery && !mains;
}

static void publish(struct runner *runner, uint64_t rate, const char *why)
{
	char *text = xasprintf("%d %llu %s\n", getpid(), (unsigned long long)rate, why);

	if (ftruncate(runner->fd, 0) || pwrite(runner->fd, text, strlen(text), 0) < 0)
		note("the state of the conversion cannot be shown: %s", strerror(errno));
	free(text);
}

static const char *wait_for(const char *uuid)
{
	char *path = pause_path(uuid);
	const char *why = !access(path, F_OK) ? "user" : battery_low() ? "battery" : NULL;

	free(path);
	return why;
}

/* libcryptsetup calls it between two steps: all that is converted is on the disk. */
static int step(uint64_t size, uint64_t offset, void *arg)
{
	struct runner *runner = arg;
	double now = seconds(), elapsed;
	const char *why;

	if (!runner->begun) {
		progress_begin(&runner->progress, runner->progress.what, offset, size);
		runner->begun = true;
		runner->window = now;
		runner->last = offset;
	}
	progress_update(&runner->progress, offset);
	runner->window_bytes += offset - runner->last;
	runner->last = offset;
	elapsed = now - runner->window;
	if (runner->max_rate && runner->window_bytes / (double)runner->max_rate > elapsed)
		doze(runner->window_bytes / (double)runner->max_rate - elapsed);
	if (elapsed > 1) {
		publish(runner, runner->window_bytes / elapsed, "");
		runner->window = seconds();
		runner->window_bytes = 0;
	}
	while (!stop && (why = wait_for(runner->uuid))) {
		publish(runner, 0, why);
		doze(0.5);
		runner->window = seconds();
		runner->window_bytes = 0;
	}
	return stop;
}

static int claim(struct runner *runner)
{
	char *path = run_path(runner->uuid);
	int ret = 0;

	mkdir(RUN_DIR, 0755);
	runner->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	if (runner->fd < 0)
		ret = fail(E_FAILED, NULL, "cannot write %s: %s", path, strerror(errno));
	else if (flock(runner->fd, LOCK_EX | LOCK_NB))
		ret = fail(E_BUSY, "coffer status shows how far it is",
			   "cannot convert: another process does it already");
	free(path);
	return ret;
}

/**
 * convert_begin_encrypt() - have a header file say that all of a device is to be encrypted
 * @device: the device, not in use, with CONVERT_ROOM free at its end
 * @file: a header with keyslots
 * @data_unit: bytes
 * @secret: of @slot
 * @slot: keyslot
 *
 * Copies the first CONVERT_HEADER bytes of the device into the free space.
 *
 * Return: 0, or what failed.
 */
int convert_begin_encrypt(const struct device *device, const char *file, unsigned int data_unit,
			  const struct secret *secret, int slot)
{
	struct crypt_params_luks2 luks2 = { .sector_size = data_unit };
	struct crypt_params_reencrypt params = {
		.mode = CRYPT_REENCRYPT_ENCRYPT,
		.direction = CRYPT_REENCRYPT_BACKWARD,
		.resilience = "datashift",
		.hash = "sha256",
		.data_shift = CONVERT_HEADER / SECTOR,
		.luks2 = &luks2,
		.flags = CRYPT_REENCRYPT_INITIALIZE_ONLY | CRYPT_REENCRYPT_MOVE_FIRST_SEGMENT,
	};
	struct header *header;
	int ret, fd;

	ret = header_load(device->path, file, &header);
	if (ret)
		return ret;
	ret = crypt_reencrypt_init_by_passphrase(header->cd, NULL, secret->data, secret->len,
						 CRYPT_ANY_SLOT, slot, "aes", "xts-plain64", &params);
	if (ret < 0)
		ret = header_failed(ret, "cannot begin to encrypt %s", device->path);
	else
		ret = 0;
	header_free(header);
	fd = ret ? -1 : open(file, O_RDONLY | O_CLOEXEC);
	if (!ret && (fd < 0 || fsync(fd)))
		ret = fail(E_IO, NULL, "cannot write %s: %s", file, strerror(errno));
	if (fd >= 0)
		close(fd);
	return ret;
}

/**
 * convert_place_header() - write a header to the start of its device
 * @device: the device
 * @file: the header
 *
 * May be repeated from the start when it was cut off. Return: 0, or what failed.
 */
int convert_place_header(const struct device *device, const char *file)
{
	struct crypt_device *cd;
	int ret, fd;

	ret = crypt_init(&cd, device->path);
	if (ret)
		return header_failed(ret, "cannot use %s", device->path);
	header_quiet(cd);
	ret = crypt_header_restore(cd, CRYPT_LUKS2, file);
	crypt_free(cd);
	if (ret)
		return header_failed(ret, "cannot write the header to %s", device->path);
	fd = open(device->path, O_RDWR | O_CLOEXEC);
	if (fd < 0 || fsync(fd))
		ret = fail(E_IO, NULL, "cannot write the header to %s: %s", device->path,
			   strerror(errno));
	if (fd >= 0)
		close(fd);
	return ret;
}

/**
 * convert_begin_decrypt() - have a header file say that all of a device is to be decrypted
 * @device: the device, not in use
 * @file: a copy of its header, the one that counts from now on
 * @secret: of @slot
 * @slot: keyslot
 *
 * Writes the first data over the header on the device. Return: 0, or what failed.
 */
int convert_begin_decrypt(const struct device *device, const char *file,
			  const struct secret *secret, int slot)
{
	struct crypt_params_reencrypt params = {
		.mode = CRYPT_REENCRYPT_DECRYPT,
		.direction = CRYPT_REENCRYPT_FORWARD,
		.resilience = "datashift-checksum",
		.hash = "sha256",
		.flags = CRYPT_REENCRYPT_INITIALIZE_ONLY | CRYPT_REENCRYPT_MOVE_FIRST_SEGMENT,
	};
	struct header *header;
	int ret;

	ret = header_load(device->path, file, &header);
	if (ret)
		return ret;
	params.data_shift = crypt_get_data_offset(header->cd);
	ret = crypt_reencrypt_init_by_passphrase(header->cd, NULL, secret->data, secret->len, slot,
						 CRYPT_ANY_SLOT, NULL, NULL, &params);
	ret = ret < 0 ? header_failed(ret, "cannot begin to decrypt %s", device->path) : 0;
	header_free(header);
	return ret;
}

/* Finish the step that a power cut left half done. */
static int recover(struct header *header, const struct secret *secret)
{
	struct crypt_params_reencrypt params = { .flags = CRYPT_REENCRYPT_RECOVERY };
	int ret;

	ret = crypt_reencrypt_init_by_passphrase(header->cd, NULL, secret->data, secret->len,
						 CRYPT_ANY_SLOT, CRYPT_ANY_SLOT, NULL, NULL, &params);
	if (ret < 0)
		return header_failed(ret, "cannot take up the conversion of %s after it was cut off",
				     header->device);
	note("the conversion of %s was cut off; its last step was repaired", header->device);
	return 0;
}

/**
 * convert_run() - convert until the end, or until a signal
 * @header: a header with a conversion in it
 * @active: the open volume on it, NULL if there is none
 * @secret: that opens the volume
 * @what: for the progress bar
 * @max_rate: bytes a second, 0 for as fast as it goes
 *
 * Return: 0 when all is converted; E_INTERRUPTED; or what failed. It can be called again
 * with the same header, after a power cut too.
 */
int convert_run(struct header *header, const char *active, const struct secret *secret,
		const char *what, uint64_t max_rate)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction action = { .sa_handler = on_signal }, old[ARRAY_SIZE(signals)];
	struct runner runner = {
		.uuid = header->uuid, .fd = -1, .max_rate = max_rate, .progress.what = what,
	};
	struct crypt_params_reencrypt params = { .flags = CRYPT_REENCRYPT_RESUME_ONLY };
	char *next;
	int ret;

	ret = claim(&runner);
	if (ret)
		goto out;
	stop = 0;
	for (unsigned int i = 0; i < ARRAY_SIZE(signals); i++)
		sigaction(signals[i], &action, &old[i]);
	if (crypt_reencrypt_status(header->cd, NULL) == CRYPT_REENCRYPT_CRASH)
		ret = recover(header, secret);
	if (!ret && crypt_reencrypt_status(header->cd, NULL) != CRYPT_REENCRYPT_NONE) {
		/* which keyslots are the old and the new volume key's is in the header */
		ret = crypt_reencrypt_init_by_passphrase(header->cd, active, secret->data, secret->len,
							 CRYPT_ANY_SLOT, CRYPT_ANY_SLOT, NULL, NULL,
							 &params);
		ret = ret < 0 ? header_failed(ret, "cannot take up the conversion of %s",
					      header->device) : 0;
		if (!ret) {
			publish(&runner, 0, "");
			ret = crypt_reencrypt_run(header->cd, step, &runner);
			progress_end(&runner.progress);
			if (ret < 0 && !stop)
				ret = header_failed(ret, "the conversion of %s stopped", header->device);
			else
				ret = 0;
		}
	}
	for (unsigned int i = 0; i < ARRAY_SIZE(signals); i++)
		sigaction(signals[i], &old[i], NULL);
	if (!ret && stop && crypt_reencrypt_status(header->cd, NULL) != CRYPT_REENCRYPT_NONE) {
		next = xasprintf("coffer resume %s goes on", header->device);
		ret = fail(E_INTERRUPTED, next, "the conversion of %s was interrupted, nothing is lost",
			   header->device);
		free(next);
	}
out:
	if (runner.fd >= 0) {
		char *path = run_path(header->uuid);

		if (ret != E_BUSY)
			unlink(path);
		close(runner.fd);
		free(path);
	}
	return ret;
}
