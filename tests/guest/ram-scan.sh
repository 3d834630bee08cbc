#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The guest's part of tests/vm/ram-scan: bring keys into the kernel and out of it, and
# wait at each phase until the host has searched the memory. No key ever passes through
# this script: see tests/tools/dmkey.c. Seeds of the keys:
#
#   1 coffer, hex    2 coffer, keyring    3 dm-crypt, hex    4 dm-crypt, keyring
#   5 the key that is never taken away: what a search finds when a key is there
#   6 the volume that the command opens (with the argument "tool")
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

if [ "${1:-module}" = tool ]; then
	coffer=$OLDPWD/build/userspace/coffer
	modprobe loop
	mkdir -p /run/cryptsetup
	cp "$out/volume.img" "$out/secret" /tmp/
	head -c 64 /dev/urandom > /tmp/other
	cd /tmp
	chmod 600 secret other
	"$coffer" open volume.img box --driver coffer --key-file secret
	for bs in 4k 512k; do
		dd if=/dev/zero of=/dev/mapper/box bs=$bs count=4 oflag=direct conv=notrunc status=none
		dd if=/dev/mapper/box of=/dev/null bs=$bs count=4 iflag=direct status=none
	done
	phase active
	"$coffer" close box
	phase closed
	"$coffer" key test volume.img --key-file secret
	"$coffer" key add volume.img anna --key-file secret --new-key-file other --unlock-time 2
	"$coffer" key change volume.img slot-0 --key-file secret --new-key-file secret --unlock-time 2
	"$coffer" recovery new volume.img --key-file secret > /dev/null
	if "$coffer" key test volume.img <<< wrong; then
		exit 1
	fi
	phase tool
	"$coffer" open volume.img box --driver coffer --key-file secret
	dd if=/dev/mapper/box of=/dev/null bs=512k count=4 iflag=direct status=none
	phase again
	"$coffer" lock box
	phase locked
	"$coffer" unlock box --key-file secret
	"$coffer" close box
	echo "guest: all phases done"
	exit
fi

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
