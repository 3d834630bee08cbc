#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The guest's part of tests/vm/ram-scan: bring keys into the kernel and out of it, and
# wait at each phase until the host has searched the memory. No key ever passes through
# this script: see tests/tools/dmkey.c. Seeds of the keys:
#
#   1 coffer, hex    2 coffer, keyring    3 dm-crypt, hex    4 dm-crypt, keyring
#   5 the key that is never taken away: what a search finds when a key is there
#
# Invariant: nothing here reads or writes what a key would have been seen in.

set -euo pipefail

export DM_DISABLE_UDEV=1
out=$COFFER_OUT
dmkey=$PWD/build/tools/dmkey
cd /

# phase NAME: wait for the host; answer what it wants to know about pages
phase()
{
	local pages
	sync
	echo > "$out/phase.$1"
	while [ ! -e "$out/done.$1" ]; do
		if [ -e "$out/pages.$1" ] && [ ! -e "$out/flags.$1" ]; then
			read -ra pages < "$out/pages.$1"
			"$dmkey" flags "${pages[@]}" > "$out/flags.new" || true
			mv "$out/flags.new" "$out/flags.$1"
		fi
		sleep 0.1
	done
}

modprobe dm_crypt
modprobe brd rd_nr=4 rd_size=4096
insmod "$COFFER_MODULE"
"$dmkey" keep 5
phase before

names=(coffer-hex coffer-logon crypt-hex crypt-logon)
n=0
for name in "${names[@]}"; do
	"$dmkey" map "$name" "${name%-*}" /dev/ram$n 8192 $((n + 1)) "${name#*-}"
	dmsetup mknodes "$name"
	# small and large, so that every way of conversion has had the key
	for bs in 4k 512k; do
		dd if=/dev/zero of=/dev/mapper/"$name" bs=$bs count=4 oflag=direct conv=notrunc status=none
		dd if=/dev/mapper/"$name" of=/dev/null bs=$bs count=4 iflag=direct status=none
	done
	n=$((n + 1))
done
phase active

# a new table that shares the key, half the size; it becomes the active one as the key comes back
dmsetup table coffer-logon | sed 's/^0 8192 /0 4096 /' | dmsetup load coffer-logon
for name in "${names[@]}"; do
	dmsetup suspend "$name"
	dmsetup message "$name" 0 key wipe
done
phase wiped

n=0
for name in "${names[@]}"; do
	n=$((n + 1))
	"$dmkey" set "$name" $n "${name#*-}"
	dmsetup resume "$name"
	dd if=/dev/mapper/"$name" of=/dev/null bs=512k count=2 iflag=direct status=none
done
[ "$(blockdev --getsz /dev/mapper/coffer-logon)" = 4096 ]
phase again

for name in "${names[@]}"; do
	dmsetup remove "$name"
done
phase removed

rmmod dm_coffer
rmmod dm_crypt
phase unloaded
echo "guest: all phases done"
