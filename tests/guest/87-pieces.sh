#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Data units whose memory is in pieces, as only a user in the kernel can hand them down:
# tests/kmod/pieces.c is one. dm-crypt refuses such bios; the target takes pieces of whole
# sectors, and refuses finer ones.

set -euo pipefail
# shellcheck source=tests/guest/lib.sh
. "$(dirname "$0")/lib.sh"

insmod_coffer
seed=${COFFER_SEED:-$(date +%s)}
note "seed $seed"
key=$(hexkey pieces 64)
ko=$TOP/build/kmod/$COFFER_KERNEL/pieces.ko
store=$(mkram 8 irqmode=1)
_undo 'rmmod pieces'

# pieces DEVICE PARAMETER...
pieces()
{
	insmod "$ko" device="$1" seed=$((seed & 0xffffffff)) "${@:2}"
	rmmod pieces
}

# on UNIT TARGET PARAMETER...: on a mapping with that data unit
on()
{
	map dut "$2" "$AES $key 0 $store 0 1 sector_size:$1"
	pieces /dev/mapper/dut unit="$1" "${@:3}"
	unmap dut
}
none() { ! [ -e /dev/mapper/dut ] || unmap dut; }

# How often a function of the module is called; its name may have got a suffix.
probe=/sys/kernel/tracing
hits() { awk '$1 == "coffer_pieces" { print $2 }' $probe/kprobe_profile; }
if [ "$COFFER_TARGET" = coffer ]; then
	symbol=$(awk '$3 ~ /^convert_pieces/ && $3 !~ /cold/ { print $3; exit }' /proc/kallsyms)
	echo "p:coffer_pieces dm_coffer:$symbol" > $probe/kprobe_events
	_undo "echo -:coffer_pieces > $probe/kprobe_events"
	_undo "echo 0 > $probe/events/kprobes/coffer_pieces/enable"
	echo 1 > $probe/events/kprobes/coffer_pieces/enable

	on 4096 coffer most=4096 align=4096 units=8
	equal "whole pages do not come there" "$(hits)" 0
fi

while read -r name unit params; do
	read -ra params <<< "$params"
	before=$(hits || true)
	check "$name, unit $unit" on "$unit" "$COFFER_TARGET" "${params[@]}"
	none
	[ "$COFFER_TARGET" != coffer ] ||
		check "$name, unit $unit: data units in pieces came ($(($(hits) - before)))" \
			[ "$(hits)" -gt "$before" ]
done <<- END
	sectors 4096 most=512 rounds=64
	up-to-a-page 4096 most=4096 rounds=64
	many-sectors 4096 most=512 units=32
	large 4096 most=2560 units=48
	up-to-a-page 2048 most=4096 units=20
	sectors 1024 most=512 units=100
END

# What was written in pieces, to somebody else: dm-crypt reads the same.
dm_crypt_reads()
{
	map dut "$COFFER_TARGET" "$AES $key 0 $store 0 1 sector_size:4096"
	pieces /dev/mapper/dut most=512 units=32
	get /dev/mapper/dut 0 $((8 << 20)) > "$WORK/ours"
	unmap dut
	map dut crypt "$AES $key 0 $store 0 1 sector_size:4096"
	get /dev/mapper/dut 0 $((8 << 20)) | cmp - "$WORK/ours"
	unmap dut
}
check "dm-crypt reads what was written in pieces" dm_crypt_reads
none

control "pieces finer than sectors are an error" 1 'Input/output error' \
	on 4096 "$COFFER_TARGET" most=256 align=256
none
control "dm-crypt has an error for any" 1 'Input/output error' on 4096 crypt most=512
none

# Does the module notice wrong data?
zero() { dmsetup create dut --table '0 16384 zero'; pieces /dev/mapper/dut most=512; }
control "data that is not kept is noticed" 1 'Invalid or incomplete' zero
dmsetup remove dut
finish
