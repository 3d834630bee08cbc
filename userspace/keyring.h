/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef COFFER_KEYRING_H
#define COFFER_KEYRING_H

#include "secret.h"

int keyring_add(const char *description, const struct secret *key, int *serial);
void keyring_drop(int serial);

#endif
