/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef COFFER_COMMANDS_H
#define COFFER_COMMANDS_H

#include "options.h"

/* One function a verb, in the file of its name. Each returns 0 or an enum coffer_exit. */
int cmd_status(const struct args *args);
int cmd_format(const struct args *args);
int cmd_open(const struct args *args);
int cmd_close(const struct args *args);
int cmd_enable(const struct args *args);
int cmd_resume(const struct args *args);
int cmd_pause(const struct args *args);
int cmd_disable(const struct args *args);
int cmd_key_list(const struct args *args);
int cmd_key_add(const struct args *args);
int cmd_key_remove(const struct args *args);
int cmd_key_change(const struct args *args);
int cmd_key_test(const struct args *args);
int cmd_recovery_new(const struct args *args);
int cmd_recovery_check(const struct args *args);
int cmd_recovery_remove(const struct args *args);
int cmd_backup(const struct args *args);
int cmd_repair(const struct args *args);
int cmd_erase(const struct args *args);
int cmd_resize(const struct args *args);
int cmd_image_create(const struct args *args);
int cmd_image_resize(const struct args *args);
int cmd_lock(const struct args *args);
int cmd_unlock(const struct args *args);
int cmd_adopt(const struct args *args);
int cmd_release(const struct args *args);
int cmd_takeover_on(const struct args *args);
int cmd_takeover_off(const struct args *args);
int cmd_takeover_status(const struct args *args);
int cmd_bench(const struct args *args);
int cmd_doctor(const struct args *args);

#endif
