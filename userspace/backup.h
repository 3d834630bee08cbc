/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef COFFER_BACKUP_H
#define COFFER_BACKUP_H

#include <stdbool.h>
#include <time.h>
#include "header.h"

#define STATE_DIR "/var/lib/coffer"

char *backup_path(const char *uuid);
int backup_update(struct header *header);
bool backup_is_current(struct header *header);
bool backup_time(const char *uuid, time_t *when);
int backup_erase(const char *uuid, bool *was_there);
int backup_write(struct header *header, const char *path);

#endif
