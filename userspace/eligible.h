/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef COFFER_ELIGIBLE_H
#define COFFER_ELIGIBLE_H

#include "crypttab.h"
#include "mapping.h"

char *mapping_unfit(const struct mapping *map);
char *crypttab_unfit(const struct crypttab_entry *entry, bool *unknown);

#endif
