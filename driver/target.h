/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef COFFER_TARGET_H
#define COFFER_TARGET_H

#include <linux/device-mapper.h>

extern struct target_type coffer_target;

#endif
