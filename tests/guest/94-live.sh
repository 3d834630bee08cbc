#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# What the command does to volumes that are in use: images and volumes that grow, lock and
# unlock. I/O runs all the time, and what it reads is verified.

set -euo pipefail
# shellcheck source=tests/guest/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/guest/command.sh
. "$(dirname "$0")/command.sh"
only_in_check_all

insmod_coffer
modprobe -q loop
loops=$(nr_loops)
quick=(--no-recovery --unlock-time 50)

# ---- image create ------------------------------------------------------------------

img=$WORK/box.img
check "image create" right image create "$img" --size 40M "${quick[@]}"
equal "image create: the size" "$(stat -c %s "$img")" $((40 << 20))
check "image create: it is sparse" test "$(du -m "$img" | cut -f1)" -lt 20
check "image create: LUKS2" cryptsetup isLuks --type luks2 "$img"
equal "image create: for its owner only" "$(stat -c %a "$img")" 600
equal "image create: no loop device is left" "$(nr_loops)" "$loops"
before=$(sha256sum "$img")
control "image create: not over a file" 15 'File exists' right image create "$img" --size 40M
equal "image create: the file is as it was" "$(sha256sum "$img")" "$before"
control "image create: no size" 2 'size' right image create "$WORK/none.img"
control "image create: too small" 10 'needs 17 MiB' right image create "$WORK/small.img" --size 4M
control "image create: no secret" 13 'no secret' alone image create "$WORK/small.img" --size 40M
check "image create: what failed leaves no file" test ! -e "$WORK/small.img" -a ! -e "$WORK/none.img"

# ---- resize ------------------------------------------------------------------------

check "open" right open "$img" box
_undo "dmsetup remove --retry box"
equal "open: on coffer" "$(target_of box)" coffer
equal "open: the size" "$(size_of box)" $((24 << 11))
before=$(sum box)
load box
check "image resize: no secret is asked" alone image resize "$img" --size 56M
check "image resize: I/O goes on" busy
equal "image resize: the size" "$(size_of box)" $((40 << 11))
equal "image resize: of the file" "$(stat -c %s "$img")" $((56 << 20))
truncate -s 60M "$img"
check "resize: follows a file that grew, no secret is asked" alone resize box
equal "resize: the size" "$(size_of box)" $((44 << 11))
check "resize: nothing to do" alone resize box
control "resize: not larger than the device" 10 'has room for 44 MiB' alone resize box --size 1G
control "resize: not smaller" 13 'a file system may use the end' alone resize box --size 20M
equal "resize: refused, the size" "$(size_of box)" $((44 << 11))
check "resize: smaller by force" alone resize box --size 20M --force
equal "resize: smaller" "$(size_of box)" $((20 << 11))
check "resize: and back" alone resize box
equal "resize: back" "$(size_of box)" $((44 << 11))
calm "resize: I/O was right all the time"
check "resize: the table shows the key's description" grep -q ' :64:logon:cryptsetup:' <(dmsetup table box)
check "resize: no key in a keyring" no_keys
control "image resize: not smaller" 13 'would be lost' alone image resize "$img" --size 50M
equal "image resize: refused, the file" "$(stat -c %s "$img")" $((60 << 20))
dd if=/dev/urandom of="$WORK/noise" bs=1M count=20 status=none
before=$(sha256sum "$WORK/noise")
control "image resize: not of just any file" 14 'not an encrypted volume' alone image resize "$WORK/noise" --size 50M
equal "image resize: such a file is as it was" "$(sha256sum "$WORK/noise")" "$before"
control "resize: not open" 4 'not open' alone resize "$WORK/noise"

before=$(sum box)
check "close" coffer close box
equal "close: no loop device is left" "$(nr_loops)" "$loops"
check "image resize: closed" alone image resize "$img" --size 64M
equal "image resize: closed, no loop device is left" "$(nr_loops)" "$loops"

# dm-crypt does not let go of its key: the secret is asked for
check "open on dm-crypt" right open --driver dm-crypt "$img" box
equal "open on dm-crypt: the target" "$(target_of box)" crypt
equal "open on dm-crypt: the size" "$(size_of box)" $((48 << 11))
check "open on dm-crypt: the data" cmp -n $((44 << 20)) <(sum box; echo) <(sum box; echo)
truncate -s 66M "$img"
control "resize on dm-crypt: no secret" 13 'no secret' alone resize box
control "resize on dm-crypt: wrong secret" 3 'wrong secret' wrong resize box
equal "resize on dm-crypt: refused, the size" "$(size_of box)" $((48 << 11))
check "resize on dm-crypt: nothing is left loaded" active_only box
check "resize on dm-crypt: right secret" right resize box
equal "resize on dm-crypt: the size" "$(size_of box)" $((50 << 11))
equal "resize on dm-crypt: the data" "$(head -c $((44 << 20)) /dev/mapper/box | sha256sum)" "$before"
coffer close box

# without a header: dm-crypt's table has the key, ours does not show it
store=$(mkram 32)
key=$(hexkey live 64)
dmsetup create half --table "0 32768 linear $store 0"
_undo "dmsetup remove --retry half"
map plain crypt "$AES $key 0 /dev/mapper/half 0"
before=$(sum plain)
dmsetup load half --table "0 65536 linear $store 0"
dmsetup resume half
check "resize: the key in dm-crypt's table" alone resize plain
equal "resize: the key in dm-crypt's table: the size" "$(size_of plain)" 65536
equal "resize: the key in dm-crypt's table: the data" "$(head -c $((16 << 20)) /dev/mapper/plain | sha256sum)" "$before"
unmap plain
map plain coffer "$AES $key 0 /dev/mapper/half 0" 32768
control "resize: a hidden key without a header" 14 'no header' alone resize plain
equal "resize: a hidden key: the size" "$(size_of plain)" 32768
unmap plain half

# ---- lock, unlock ------------------------------------------------------------------

mnt=$WORK/mnt
mkdir "$mnt"
lock()
{
	local driver=$1 reader writer status=0 sum
	check "$driver: open" right open --driver "$driver" "$img" box
	mkfs.ext4 -q /dev/mapper/box
	mount /dev/mapper/box "$mnt"
	_undo "umount $mnt"
	cp "$COFFER" "$mnt/coffer"
	dd if=/dev/urandom of="$mnt/file" bs=1M count=8 status=none
	sum=$(sha256sum < "$mnt/file")
	sync
	echo 3 > /proc/sys/vm/drop_caches

	control "$driver: lock refuses the volume that it runs from" 13 'this program is on it' \
		"$mnt/coffer" lock box
	check "$driver: which runs on" running box
	check "$driver: lock" alone lock "$mnt"
	check "$driver: locked: suspended" stopped box
	[ "$driver" != coffer ] || check "coffer: locked: no key" grep -q key_wiped <(dmsetup status --noflush box)
	control "$driver: locked: no resume" 1 'temporarily unavailable' timeout 20 dmsetup resume box
	timeout 20 "$COFFER" status > "$WORK/status" || true
	check "$driver: locked: status says so, and does not hang" grep -q 'box: .*locked' "$WORK/status"
	control "$driver: lock again" 18 'is locked' alone lock box
	check "$driver: lock --all leaves it" alone lock --all
	control "$driver: resize waits for unlock" 18 'locked' alone resize box
	control "$driver: adopt and release too" 18 'locked' \
		alone "$([ "$driver" = coffer ] && echo release || echo adopt)" box
	sha256sum < "$mnt/file" > "$WORK/read" &
	reader=$!
	echo more > "$mnt/more" &
	writer=$!
	sleep 1
	check "$driver: locked: a read waits" kill -0 $reader
	check "$driver: locked: a write waits" kill -0 $writer
	control "$driver: unlock: no secret" 13 'no secret' alone unlock box
	control "$driver: unlock: wrong secret" 3 'wrong secret' wrong unlock box
	check "$driver: unlock: wrong: still locked" stopped box
	check "$driver: unlock: wrong: the read waits" kill -0 $reader
	check "$driver: unlock" right unlock "$img"
	wait $reader || status=$?
	wait $writer || status=$?
	equal "$driver: unlock: the read and the write end" $status 0
	equal "$driver: unlock: what was read" "$(cat "$WORK/read")" "$sum"
	check "$driver: unlock: what was written" grep -q more "$mnt/more"
	check "$driver: unlock: no key in a keyring" no_keys
	control "$driver: unlock again" 15 'not locked' right unlock box

	# a lock that was killed before it wiped the key
	dmsetup suspend --nolockfs box
	if [ "$driver" = coffer ]; then
		check "$driver: suspended with its key: unlock needs no secret" alone unlock box
	else
		check "$driver: suspended with its key: unlock" right unlock box
	fi
	check "$driver: suspended with its key: runs" running box
	check "$driver: lock --no-freeze" alone lock --no-freeze box
	check "$driver: lock --no-freeze: unlock" right unlock box
	umount "$mnt"
	check "$driver: the file system is whole" e2fsck -fn /dev/mapper/box
	mkswap /dev/mapper/box > /dev/null
	swapon /dev/mapper/box
	control "$driver: lock refuses swap" 13 'swap' alone lock box
	swapoff /dev/mapper/box
	check "$driver: close" coffer close box
}
lock coffer
lock dm-crypt
map plain coffer "$AES $key 0 $store 0"
control "lock: not without a header" 14 'no header' alone lock plain
check "lock: without a header: runs" running plain
unmap plain
equal "no loop device is left" "$(nr_loops)" "$loops"
finish
