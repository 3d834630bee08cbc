// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A volume key on its way to the kernel: a logon key in this thread's own keyring.
 *
 * Nobody can read a logon key back, no other process finds this one, and it is gone with
 * the process at the latest. keyring_drop() takes it away as soon as the target has it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/keyctl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "error.h"
#include "keyring.h"

/**
 * keyring_add() - hand a key to the kernel
 * @description: "prefix:name", as a table refers to it
 * @key: its bytes
 * @serial: for keyring_drop()
 *
 * Return: 0, or E_KEYRING.
 */
int keyring_add(const char *description, const struct secret *key, int *serial)
{
	long id = syscall(SYS_add_key, "logon", description, key->data, key->len,
			  KEY_SPEC_THREAD_KEYRING);

	if (id < 0)
		return fail(E_KEYRING, errno == EPERM || errno == ENOSYS || errno == EACCES ?
			    "a container or seccomp filter may forbid it" : NULL,
			    "cannot put the volume key into the kernel keyring: %s",
			    strerror(errno));
	*serial = id;
	return 0;
}

/* Revoke it, so that its bytes go now and not with the process. */
void keyring_drop(int serial)
{
	syscall(SYS_keyctl, KEYCTL_REVOKE, serial);
	syscall(SYS_keyctl, KEYCTL_UNLINK, serial, KEY_SPEC_THREAD_KEYRING);
}
