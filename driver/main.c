// SPDX-License-Identifier: GPL-2.0-only
/*
 * Loading and unloading: what all mappings share, then the names that the target
 * answers to: "coffer" always, "crypt" in dm-crypt's stead if asked.
 */
#include <linux/module.h>

#include "bounce.h"
#include "queue.h"
#include "target.h"

#define DM_MSG_PREFIX "coffer"

static bool takeover;
module_param(takeover, bool, 0444);
MODULE_PARM_DESC(takeover, "Also be the target \"crypt\", unless dm-crypt is (default: no)");

/*
 * Tools tell what dm-crypt can do from its version: this one has every option that we
 * take, and none that we do not.
 */
static struct target_type crypt_target;
static const unsigned int crypt_version[] = { 1, 28, 0 };

static void take_over(void)
{
	crypt_target = coffer_target;
	crypt_target.name = "crypt";
	memcpy(crypt_target.version, crypt_version, sizeof(crypt_version));
	if (dm_register_target(&crypt_target)) {
		takeover = false;
		DMWARN("no takeover: dm-crypt is loaded and has the name");
	}
}

static int __init coffer_init(void)
{
	int ret;

	ret = coffer_bounce_start();
	if (ret)
		return ret;
	coffer_queue_start();
	ret = dm_register_target(&coffer_target);
	if (ret)
		goto stop;
	if (takeover)
		take_over();
	return 0;

stop:
	coffer_queue_stop();
	coffer_bounce_stop();
	return ret;
}

static void __exit coffer_exit(void)
{
	if (takeover)
		dm_unregister_target(&crypt_target);
	dm_unregister_target(&coffer_target);
	coffer_queue_stop();
	coffer_bounce_stop();
}

module_init(coffer_init);
module_exit(coffer_exit);

MODULE_DESCRIPTION("Device-mapper target for disk encryption with AES-XTS");
MODULE_AUTHOR("The Coffer authors");
MODULE_LICENSE("GPL");
MODULE_SOFTDEP("pre: aesni-intel");
