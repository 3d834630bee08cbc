/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef COFFER_RESIZE_H
#define COFFER_RESIZE_H

#include "options.h"
#include "volume.h"

int volume_resize(struct volume *volume, const struct args *args, uint64_t bytes);

#endif
