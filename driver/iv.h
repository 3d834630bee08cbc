/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sector to tweak: plain64, the sector number as a little-endian 64-bit integer in
 * the low half of the tweak. Pure arithmetic, no state.
 *
 * An "IV sector" is the sector within the mapping plus the table's iv_offset; it
 * wraps at 2^64 as it does in dm-crypt. With iv_large_sectors the tweak counts data
 * units, without it 512-byte sectors, whatever the data unit.
 */
#ifndef COFFER_IV_H
#define COFFER_IV_H

#include <linux/types.h>
#include <asm/byteorder.h>

struct coffer_tweak {
	__le64 low;
	__le64 high;
};

/**
 * coffer_tweak_set() - the tweak of one data unit
 * @tweak: where to put it
 * @iv_sector: IV sector of the data unit's first sector
 * @shift: log2 of the sectors in a data unit with iv_large_sectors, else 0
 */
static inline void coffer_tweak_set(struct coffer_tweak *tweak, u64 iv_sector,
				    unsigned int shift)
{
	tweak->low = cpu_to_le64(iv_sector >> shift);
	tweak->high = 0;
}

#endif
