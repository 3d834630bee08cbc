/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef COFFER_ERROR_H
#define COFFER_ERROR_H

/* Exit codes, one a cause. They are an interface: coffer(8) lists them. */
enum coffer_exit {
	E_OK = 0,
	E_FAILED = 1,		/* a system call or library failed in a way not listed here */
	E_USAGE = 2,		/* the command line */
	E_SECRET = 3,		/* no keyslot opens with this secret */
	E_NO_VOLUME = 4,	/* no such volume, device or keyslot */
	E_BUSY = 5,		/* mounted, held by another mapping, open in a process */
	E_MEMORY = 6,		/* too little memory to derive the key (Argon2) */
	E_KEYRING = 7,		/* the kernel keyring cannot be used */
	E_KEY_FILE = 8,		/* a file with a secret cannot be read */
	E_HEADER = 9,		/* the header is damaged or not there */
	E_TOO_SMALL = 10,	/* the device is too small */
	E_NOT_ROOT = 11,	/* needs root */
	E_MODULE = 12,		/* the kernel module that was asked for is not there */
	E_REFUSED = 13,		/* the user said no, or it would do harm */
	E_UNSUPPORTED = 14,	/* another cipher, integrity, a format that is not LUKS */
	E_EXISTS = 15,		/* name in use, already open, already encrypted */
	E_IO = 16,		/* the device reports errors */
	E_INTERRUPTED = 17,	/* a signal; the work can be taken up again */
	E_LOCKED = 18,		/* the key is wiped; unlock first */
};

int fail(enum coffer_exit code, const char *next, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

int error_code(void);
const char *error_message(void);
const char *error_next(void);
const char *error_name(int code);
void error_clear(void);
int error_report(void);
unsigned int note_count(void);
const char *note_text(unsigned int i);

#endif
