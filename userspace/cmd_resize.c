// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * coffer resize: an open volume follows its device, while it is in use.
 */
#define _GNU_SOURCE
#include <string.h>
#include "commands.h"
#include "error.h"
#include "resize.h"
#include "ui.h"

int cmd_resize(const struct args *args)
{
	struct volume volume;
	uint64_t before;
	int ret;

	ret = volume_find_open(args->words[0], &volume);
	if (ret)
		return ret;
	/* a loop device keeps the size that its file had */
	if (volume.has_device)
		ret = loop_follow(&volume.device);
	before = volume.map.size;
	if (!ret)
		ret = volume_resize(&volume, args, args->size);
	if (!ret && volume.map.size > before)
		say("A file system on it grows with resize2fs, xfs_growfs or btrfs filesystem resize.");
	volume_free(&volume);
	return ret;
}
