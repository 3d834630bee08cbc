#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Known answers: what is written through the mapping must be on the store as
# IEEE 1619 and an implementation of our own (tests/oracle) say, and come back.
# The store is read with direct I/O beneath the mapping, so no code under test
# takes part in the comparison.

set -euo pipefail
# shellcheck source=tests/guest/lib.sh
. "$(dirname "$0")/lib.sh"

insmod_coffer
store=$(mkram 1)
other=$(mkram 1)
vectors=$TOP/tests/oracle
declare -A key
while read -r name value; do
	key[$name]=$value
done < <(grep '^k[12] ' "$vectors/sectors.txt")

# through NAME FILE SECTOR: write FILE at SECTOR of the mapping, read it back
through()
{
	put "$2" "/dev/mapper/$1" $(($3 * 512))
	is "$2" "/dev/mapper/$1" $(($3 * 512))
}

# remap KEY... as map, in place of what a failed case may have left
remap()
{
	! [ -e /dev/mapper/kat ] || unmap kat
	map kat "$@"
}

# ---- IEEE 1619: the vectors that are whole sectors -------------------------

for ((i = 0; i < 256; i++)); do printf '%b' "\\x$(printf %02x $i)"; done > "$WORK/half"
cat "$WORK/half" "$WORK/half" > "$WORK/count"

# ieee KEY UNIT PLAIN SHA OUT: twice: as sector 0 of a mapping that begins at
# the unit, and further in
ieee()
{
	local at start
	for at in 0 37; do
		[ "$2" -ge $at ] || continue
		start=$((at * 8))
		remap "$COFFER_TARGET" "$AES $1 $(($2 - at)) $store $start" 1024
		through kat "$WORK/$3" $at
		get "$store" $(((start + at) * 512)) 512 > "$WORK/$5"
		unmap kat
		# on the store, under the mapping's feet
		[ "$(sha256sum < "$WORK/$5")" = "$4  -" ] || { echo "hash differs"; return 1; }
	done
}

while read -r number k unit plain _ _ sha; do
	case $number in '#'* | k*) continue ;; esac
	check "IEEE 1619 vector $number, unit $unit" \
		ieee "${key[$k]}" "$unit" "$plain" "$sha" "$number"
	[ "$number" != 10 ] || sha10=$sha
	[ "$number" != 13 ] || sha13=$sha
done < "$vectors/sectors.txt"

control "another unit is another ciphertext" 1 'hash differs' ieee "${key[k2]}" 254 count "$sha10" wrong
control "another hash is noticed" 1 'hash differs' ieee "${key[k2]}" 255 count "$sha13" wrong

# ---- the oracle -------------------------------------------------------------

dd if=/dev/urandom of="$WORK/random" bs=16384 count=1 status=none

# oracle KEY IV_OFFSET UNIT LARGE PLAIN [THE ORACLE'S IV_OFFSET]: one case through the
# mapping
oracle() { through_targets "$COFFER_TARGET" "$@"; }

# ... and the same through dm-crypt
both() { through_targets "$COFFER_TARGET crypt" "$@"; }

through_targets()
{
	local targets=$1 opts='' n=0 file dev target
	shift
	file=$WORK/$5
	[ "$3" = 512 ] || { opts+=" sector_size:$3"; n=$((n + 1)); }
	[ "$4" = 0 ] || { opts+=" iv_large_sectors"; n=$((n + 1)); }
	[ $n = 0 ] || opts=" $n$opts"
	"$TOOLS/xts-oracle" encrypt "$1" "${6:-$2}" "$3" "$4" < "$file" > "$WORK/want"
	for target in $targets; do
		dev=$store
		[ "$target" != crypt ] || dev=$other
		remap "$target" "$AES $1 $2 $dev 16$opts" 1024
		through kat "$file" 0
		unmap kat
		is "$WORK/want" "$dev" 8192 ||
			{ echo "$target differs from the oracle"; return 1; }
	done
}

k64=$(hexkey oracle 64) k32=$(hexkey oracle 32)
while read -r k iv unit large; do
	check "oracle: ${#k}-digit key, iv_offset $iv, unit $unit$([ "$large" = 0 ] || echo , large)" \
		oracle "$k" "$iv" "$unit" "$large" random
done <<- END
	$k64 0 512 0
	$k32 0 512 0
	$k64 4294967291 512 0
	$k64 4294967301 512 1
	$k64 1099511627781 512 0
	$k32 1099511627781 512 0
	$k64 4294967288 4096 0
	$k64 4294967288 4096 1
	$k64 1099511627784 4096 0
	$k64 1099511627784 4096 1
	$k32 34359738360 4096 1
	$k64 8796093022200 1024 0
	$k64 8796093022200 1024 1
	$k32 72057594037927928 2048 0
	$k32 72057594037927928 2048 1
	$k64 9223372036854775808 512 0
END

# numbers and keys of NIST's vectors, whose own data units are shorter than a
# sector: their plaintext over and over
while read -r label k iv plain _; do
	iv=$(printf '%d' "0x${iv:0:2}")
	while [ ${#plain} -lt 1024 ]; do plain+=$plain; done
	unhex "${plain:0:1024}" > "$WORK/nist"
	check "oracle: sector with the key and number of $label" oracle "$k" "$iv" 512 0 nist
done < <(grep '^cavp-seq' "$vectors/blocks.txt" | head -n 6)

# Sector numbers wrap at 2^64, with dm-crypt as the judge of how.
check "wrap: iv_offset 2^64-8, unit 512" both "$k64" 18446744073709551608 512 0 random
check "wrap: iv_offset 2^64-1, unit 512" both "$k64" 18446744073709551615 512 0 random
check "wrap: iv_offset 2^64-8, unit 4096" both "$k64" 18446744073709551608 4096 0 random
check "wrap: iv_offset 2^64-8, unit 4096, large" both "$k64" 18446744073709551608 4096 1 random

control "the oracle notices an iv_offset that lost its upper half" 1 'differs? from the oracle' \
	oracle "$k64" 1099511627781 512 0 random 5
finish
