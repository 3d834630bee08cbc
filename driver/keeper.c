// SPDX-License-Identifier: GPL-2.0-only
/*
 * Who has a key. A new table of a mapping may name the key of the active table when that
 * key has left the keyring, so that a mapping can be resized by somebody who does not
 * know the secret: then both tables have one keeper, and what becomes of the key becomes
 * of it for both.
 *
 * Invariants:
 *  - A key is in one cipher, which goes with the last table that uses it.
 *  - Nothing is inherited from another mapping, from a table that was never active, or
 *    from a key that is wiped; nor where two keys could be meant.
 *  - The keepers' lock is taken before a keeper's own.
 */
#include <linux/err.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "keeper.h"

static LIST_HEAD(keepers);
static DEFINE_MUTEX(keepers_lock);

static void destroy(struct coffer_keeper *keeper)
{
	coffer_cipher_exit(&keeper->cipher);
	coffer_key_exit(&keeper->key);
	kfree(keeper);
}

static bool may_inherit(struct coffer_keeper *keeper, const struct mapped_device *mapping,
			const char *word)
{
	bool may;

	if (keeper->mapping != mapping)
		return false;
	mutex_lock(&keeper->lock);
	may = keeper->live && keeper->valid && keeper->key.description &&
	      !strcmp(keeper->key.description, word);
	mutex_unlock(&keeper->lock);
	return may;
}

/* Called with the keepers' lock held. */
static struct coffer_keeper *inherit(const struct mapped_device *mapping, const char *word)
{
	struct coffer_keeper *keeper, *found = NULL;

	list_for_each_entry(keeper, &keepers, node) {
		if (!may_inherit(keeper, mapping, word))
			continue;
		if (found)
			return NULL;
		found = keeper;
	}
	return found;
}

/**
 * coffer_keeper_get() - the key that a table names
 * @mapping: the mapping that the table is for
 * @cipher: initialised, without a key; on return the one that has the key
 * @word: as for coffer_key_set()
 * @error: on failure, the reason in words
 *
 * A key of the keyring that is not there any more is taken from the mapping's active
 * table, if that names it by the same word.
 *
 * Context: may sleep; reads the keyrings of the calling process.
 * Return: the keeper, which owns the key and @cipher's algorithm; or an ERR_PTR, then
 * @cipher is still the caller's.
 */
struct coffer_keeper *coffer_keeper_get(const struct mapped_device *mapping,
					struct coffer_cipher *cipher, char *word,
					char **error)
{
	struct coffer_keeper *keeper, *old = NULL;
	int ret;

	keeper = kzalloc(sizeof(*keeper), GFP_KERNEL);
	if (!keeper) {
		*error = "Out of memory";
		return ERR_PTR(-ENOMEM);
	}
	mutex_init(&keeper->lock);
	keeper->mapping = mapping;
	keeper->tables = 1;
	ret = coffer_key_set(&keeper->key, cipher, word, error);

	mutex_lock(&keepers_lock);
	if (ret == -ENOKEY)
		old = inherit(mapping, word);
	if (old) {
		old->tables++;
	} else if (!ret) {
		keeper->cipher = *cipher;
		keeper->valid = true;
		list_add(&keeper->node, &keepers);
	}
	mutex_unlock(&keepers_lock);

	if (!old && !ret)
		return keeper;
	kfree(keeper);
	if (!old)
		return ERR_PTR(ret);
	coffer_cipher_exit(cipher);
	cipher->tfm = old->cipher.tfm;
	return old;
}

/**
 * coffer_keeper_put() - a table is done with its key
 * @keeper: from coffer_keeper_get(); no conversion of the table's may be running
 *
 * With the last one the cipher goes, and its key schedule is wiped.
 */
void coffer_keeper_put(struct coffer_keeper *keeper)
{
	bool last;

	mutex_lock(&keepers_lock);
	last = !--keeper->tables;
	if (last)
		list_del(&keeper->node);
	mutex_unlock(&keepers_lock);
	if (last)
		destroy(keeper);
}
