/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef COFFER_RECOVERY_KEY_H
#define COFFER_RECOVERY_KEY_H

#include "secret.h"

int recovery_key_new(struct secret **key);
struct secret *recovery_key_parse(const struct secret *typed);

#endif
