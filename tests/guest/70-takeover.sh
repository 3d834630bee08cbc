#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# takeover=1: the module is the target "crypt" too, and unmodified cryptsetup and
# systemd-cryptsetup work on it, dm-crypt being absent. Then the module goes, dm-crypt
# comes, and reads all that was written. What the module cannot do it refuses with a
# line that names dm-crypt.
#
# Invariant: every volume that was written to is in $volumes with the checksum of its
# content, and is read by dm-crypt at the end.

set -euo pipefail
# shellcheck source=tests/guest/lib.sh
. "$(dirname "$0")/lib.sh"

us=$COFFER_TARGET
pw=$WORK/passphrase wrong=$WORK/wrong
printf 'correct horse' > "$pw"
printf 'correct house' > "$wrong"
# a header of 2 MiB, with room for the keyslots of a reencryption
small=(--luks2-metadata-size 16k --luks2-keyslots-size 2000k --offset 4096)
volumes=()	# "NAME SHA256 OPEN-ARGUMENT..."

# Quick to derive; the guest has no udev to wait for
format() { cryptsetup luksFormat -q --pbkdf pbkdf2 --pbkdf-force-iterations 1000 "$@" "$pw"; }
open() { cryptsetup open --key-file "$pw" "$@"; }
content() { dd if="/dev/mapper/$1" bs=1M iflag=direct status=none | sha256sum | cut -d' ' -f1; }
holds() { [ "$(content "$1")" = "$2" ] || { echo "the content of $1 has changed"; return 1; }; }
status_has() { cryptsetup status "$1" | grep -Eq -- "$2" || { cryptsetup status "$1"; return 1; }; }
running() { ! dmsetup info "$1" | grep -q SUSPENDED; }
loaded() { grep -q "^$1 " /proc/modules; }
must_fail() { ! "$@" || { echo "not refused: $*"; return 1; }; }

# Only our target prints its cipher's driver in the status line
ours()
{
	[ "$us" = coffer ] || return 0
	dmsetup status "$1" | grep -Eq ' crypt .*aes.* key_set ' ||
		{ echo "$1 is not on our data path: $(dmsetup status "$1")"; return 1; }
}

# fill NAME: random data all over; prints its checksum
fill()
{
	dd if=/dev/urandom of="/dev/mapper/$1" bs=1M oflag=direct status=none 2> /dev/null || true
	sync "/dev/mapper/$1"
	content "$1"
}

# logged PATTERN COMMAND...: the command fails, and the kernel log says why
logged()
{
	local pattern=$1 mark
	shift
	mark=takeover-$RANDOM$RANDOM
	echo "$mark" > /dev/kmsg
	must_fail "$@"
	dmesg | sed "1,/$mark/d" > "$WORK/dmesg"
	grep -Eq -- "$pattern" "$WORK/dmesg" ||
		{ echo "the log does not say '$pattern':"; tail -n 3 "$WORK/dmesg"; return 1; }
}

# ---- loading ----------------------------------------------------------------

unload()
{
	! loaded dm_coffer || rmmod dm_coffer
	! loaded dm_crypt || rmmod dm_crypt
}
unload

dm_crypt_first()
{
	modprobe dm_crypt
	insmod "$COFFER_MODULE" takeover=1
	dmesg | tail -n 5 | grep -q 'no takeover: dm-crypt' || { dmesg | tail -n 3; return 1; }
	[ "$(cat /sys/module/dm_coffer/parameters/takeover)" = N ]
	local store
	store=$(mkram 8)
	format --type luks1 "$store"
	open "$store" dc
	[ "$(dmsetup status dc | awk '{ print NF }')" = 3 ] || { dmsetup status dc; return 1; }
	cryptsetup close dc
	map cf coffer "$AES $(hexkey first 64) 0 $store 0"
	dmsetup status cf | grep -q ' coffer .* key_set '
	unmap cf
	freeram "$store"
	unload
}

if [ "$us" = coffer ]; then
	check "dm-crypt loaded first: it keeps the name, coffer is there too" dm_crypt_first
	unload
	insmod "$COFFER_MODULE" takeover=1
	# remove even after a failure, so that the next script loads its own
	_undo unload
	check "takeover=1 registers crypt 1.28" sh -c 'dmsetup targets | grep -Eq "^crypt +v1\.28\.0"'
	check "and coffer" sh -c 'dmsetup targets | grep -q "^coffer "'
	# 6.1 says that the name exists, which modprobe takes for a module that is loaded
	check "dm-crypt is not loaded, and cannot be" \
		sh -c 'modprobe dm_crypt; ! grep -q "^dm_crypt " /proc/modules'
else
	modprobe dm_crypt
fi

# ---- LUKS, each format ---------------------------------------------------------

# luks STORE NAME OPTION...: format, open, fill, close
luks()
{
	local store=$1 name=$2
	shift 2
	format "$@" "$store"
	open "$store" "$name"
	_undo "dmsetup remove --retry $name"
	ours "$name"
	status_has "$name" 'cipher: +aes-xts-plain64'
	status_has "$name" 'keysize: 512 bits'
	fill "$name" > "$WORK/$name.sum"
	cryptsetup close "$name"
	must_fail test -e "/dev/mapper/$name"
	must_fail cryptsetup open --key-file "$wrong" "$store" "$name"
	open "$store" "$name"
	holds "$name" "$(cat "$WORK/$name.sum")"
}

s1=$(mkram 6) s2=$(mkram 6) s4=$(mkram 6)
check "luks1: format, open, close" luks "$s1" l1 --type luks1
check "luks2, sector size 512: format, open, close" luks "$s2" l2 --type luks2 --sector-size 512 "${small[@]}"
check "luks2, sector size 4096: format, open, close" luks "$s4" l4 --type luks2 --sector-size 4096 "${small[@]}"
check "luks1: the key is in the table" status_has l1 'key location: dm-crypt'
check "luks2: the key is in the keyring" status_has l2 'key location: keyring'
check "luks2: the sector size is what was asked for" status_has l4 'sector size: +4096'
for name in l1 l2 l4; do
	case $name in l1) store=$s1 ;; l2) store=$s2 ;; l4) store=$s4 ;; esac
	volumes+=("$name $(cat "$WORK/$name.sum") $store")
done

resize()
{
	local whole
	whole=$(sectors "/dev/mapper/$1")
	cryptsetup resize --key-file "$pw" --size 4096 "$1"
	[ "$(sectors "/dev/mapper/$1")" = 4096 ]
	ours "$1"
	cryptsetup resize --key-file "$pw" "$1"
	[ "$(sectors "/dev/mapper/$1")" = "$whole" ]
	holds "$1" "$(cat "$WORK/$1.sum")"
}
check "luks2, key in the keyring: resize, and back" resize l2

# no_resize NAME: cryptsetup would load the key that the table shows, which is none
no_resize()
{
	local whole table
	whole=$(sectors "/dev/mapper/$1")
	table=$(dmsetup table --showkeys "$1")
	grep -Eq ' aes-xts-plain64 x{128} 0 ' <<< "$table"
	must_fail cryptsetup resize --key-file "$pw" --size 4096 "$1"
	running "$1"
	[ "$(dmsetup table --showkeys "$1")" = "$table" ] || { echo "the table has changed"; return 1; }
	[ "$(dmsetup info -c --noheadings -o tables_loaded "$1")" = Live ]
	[ "$(sectors "/dev/mapper/$1")" = "$whole" ]
	# reads from the disk, by the right key still
	holds "$1" "$(cat "$WORK/$1.sum")"
	fill "$1" > "$WORK/$1.sum"
	cryptsetup close "$1"
	open "$2" "$1"
	holds "$1" "$(cat "$WORK/$1.sum")"
}
without_keyring()
{
	cryptsetup close l2
	open --disable-keyring "$s2" l2
	status_has l2 'key location: dm-crypt'
	no_resize l2 "$s2"
}
if [ "$us" = coffer ]; then
	check "luks2 without keyring: resize is refused, the volume unharmed" without_keyring
	check "luks1: resize is refused, the volume unharmed" no_resize l1 "$s1"
	volumes[0]="l1 $(cat "$WORK/l1.sum") $s1"
	volumes[1]="l2 $(cat "$WORK/l2.sum") $s2"
fi

# ---- refresh -----------------------------------------------------------------

refresh()
{
	cryptsetup refresh --key-file "$pw" --allow-discards --perf-same_cpu_crypt \
		--perf-submit_from_crypt_cpus "$1"
	status_has "$1" 'flags: .*discards'
	status_has "$1" 'flags: .*same_cpu_crypt'
	status_has "$1" 'flags: .*submit_from_crypt_cpus'
	dmsetup table "$1" | grep -q ' allow_discards'
	cryptsetup refresh --key-file "$pw" --perf-no_read_workqueue --perf-no_write_workqueue "$1"
	status_has "$1" 'flags: .*no_read_workqueue no_write_workqueue'
	must_fail status_has "$1" 'discards|same_cpu'
	ours "$1"
	cryptsetup refresh --key-file "$pw" "$1"
	must_fail status_has "$1" 'flags:.*workqueue'
	holds "$1" "$(cat "$WORK/$1.sum")"
}
check "luks2: refresh with flags, and without" refresh l2
must_fail_refresh()
{
	must_fail cryptsetup refresh --key-file "$pw" --perf-same_cpu_crypt l1
	running l1
	holds l1 "$(cat "$WORK/l1.sum")"
}
[ "$us" != coffer ] || check "luks1: refresh is refused, the volume unharmed" must_fail_refresh

# ---- suspend and resume ----------------------------------------------------------

suspend()
{
	local reader status=0
	cryptsetup luksSuspend "$1"
	status_has "$1" 'suspended'
	must_fail running "$1"
	# a read waits, it does not fail
	content "$1" > "$WORK/read" &
	reader=$!
	cryptsetup luksResume --key-file "$wrong" "$1" || status=$?
	[ $status = 2 ] || { echo "wrong passphrase: exit status $status"; return 1; }
	must_fail running "$1"
	kill -0 $reader
	[ ! -s "$WORK/read" ]
	cryptsetup luksResume --key-file "$pw" "$1"
	running "$1"
	wait $reader
	[ "$(cat "$WORK/read")" = "$(cat "$WORK/$1.sum")" ] || { echo "read something else"; return 1; }
	ours "$1"
}
check "luks1: suspend, wrong passphrase, resume" suspend l1
check "luks2: suspend, wrong passphrase, resume" suspend l2
cryptsetup luksSuspend l2
check "a suspended volume stays closed to dmsetup resume" must_fail dmsetup resume l2
cryptsetup luksResume --key-file "$pw" l2

# ---- plain ---------------------------------------------------------------------

plain()
{
	local name=$1 store=$2
	shift 2
	cryptsetup open --type plain --key-file "$WORK/key" -c "$AES" -s 512 "$@" "$store" "$name"
	_undo "dmsetup remove --retry $name"
	ours "$name"
	fill "$name" > "$WORK/$name.sum"
	cryptsetup close "$name"
	cryptsetup open --type plain --key-file "$WORK/key" -c "$AES" -s 512 "$@" "$store" "$name"
	holds "$name" "$(cat "$WORK/$name.sum")"
}
head -c 64 /dev/urandom > "$WORK/key"
p1=$(mkram 4) p2=$(mkram 4)
more=(--sector-size 4096 --iv-large-sectors --offset 2048 --skip 64)
check "plain: open, close" plain p1 "$p1"
check "plain, 4096, large, with offsets: open, close" plain p2 "$p2" "${more[@]}"
volumes+=("p1 $(cat "$WORK/p1.sum") --type plain --key-file $WORK/key -c $AES -s 512 $p1")
volumes+=("p2 $(cat "$WORK/p2.sum") --type plain --key-file $WORK/key -c $AES -s 512 ${more[*]} $p2")

# ---- online encryption ---------------------------------------------------------

# A writer at work all the while; what it had on disk at the end must be there
online()
{
	local store=$1 dir=$WORK/mnt writer n
	mkfs.ext4 -q -O ^has_journal "$store" 10M
	mkdir -p "$dir"
	mount "$store" "$dir"
	head -c 3M /dev/urandom > "$dir/old"
	sha256sum < "$dir/old" > "$WORK/old.sum"
	umount "$dir"
	cryptsetup reencrypt --encrypt --init-only --reduce-device-size 8M -q --key-file "$pw" \
		--pbkdf pbkdf2 --pbkdf-force-iterations 1000 "$store" enc
	_undo "cryptsetup close enc"
	mount /dev/mapper/enc "$dir"
	_undo "umount $dir"
	sha256sum < "$dir/old" | cmp - "$WORK/old.sum"
	rm -f "$WORK/stop"
	(
		n=0
		while [ ! -e "$WORK/stop" ]; do
			n=$((n + 1))
			head -c 128K /dev/urandom > "$dir/new.$((n % 16))"
			sync "$dir/new.$((n % 16))"
		done
		echo $n > "$WORK/written"
	) &
	writer=$!
	cryptsetup reencrypt --resume-only -q --key-file "$pw" "$store"
	touch "$WORK/stop"
	wait $writer
	n=$(cat "$WORK/written")
	echo "$n files written meanwhile"
	[ "$n" -ge 4 ]
	ours enc
	must_fail status_has enc 'reencryption'
	sha256sum < "$dir/old" | cmp - "$WORK/old.sum"
	(cd "$dir" && sha256sum new.*) > "$WORK/new.sum"
	umount "$dir"
	# only now does the mapping reach to the end of the device
	cryptsetup close enc
	open "$store" enc
	ours enc
	content enc > "$WORK/enc.sum"
}
store=$(mkram 18)
check "online encryption with a writer" online "$store"
volumes+=("enc $(cat "$WORK/enc.sum") $store")

# A new key under an open volume, and larger data units with it
again()
{
	cryptsetup reencrypt -q --key-file "$pw" --pbkdf pbkdf2 --pbkdf-force-iterations 1000 \
		--sector-size 4096 --active-name l2
	ours l2
	status_has l2 'sector size: +4096'
	must_fail status_has l2 'reencryption'
	holds l2 "$(cat "$WORK/l2.sum")"
}
check "reencryption of an open volume" again

# ---- systemd ------------------------------------------------------------------------

systemd=/lib/systemd/systemd-cryptsetup
attach()
{
	$systemd attach sd "$1" "$pw" luks,discard
	_undo "dmsetup remove --retry sd"
	ours sd
	status_has sd 'flags: .*discards'
	holds sd "$(cat "$WORK/l4.sum")"
	$systemd detach sd
	must_fail test -e /dev/mapper/sd
	$systemd attach sd "$2" "$WORK/key" "plain,cipher=$AES,size=512,hash=plain"
	ours sd
	holds sd "$(cat "$WORK/p1.sum")"
	$systemd detach sd
}
cryptsetup close l4
cryptsetup close p1
if [ -x $systemd ]; then
	check "systemd-cryptsetup: attach, detach" attach "$s4" "$p1"
else
	skip "systemd-cryptsetup" "not on this host"
fi

# ---- refusals -----------------------------------------------------------------------

refused()
{
	logged "$1.*dm-crypt" dmsetup create no --table "0 1024 crypt $2 0 $3 0 ${4:-}"
	must_fail dmsetup info no
}
if [ "$us" = coffer ]; then
	store=$(mkram 4)
	k32=$(hexkey refusal 32) k64=$(hexkey refusal 64)
	check "aes-cbc-essiv is refused, dm-crypt named" \
		refused 'cipher' "aes-cbc-essiv:sha256 $k32" "$store"
	check "serpent-xts-plain64 is refused, dm-crypt named" \
		refused 'cipher' "serpent-xts-plain64 $k64" "$store"
	check "cipher_null is refused, dm-crypt named" refused 'cipher' "cipher_null-ecb -" "$store"
	check "aes-xts-plain is refused, dm-crypt named" refused 'cipher' "aes-xts-plain $k64" "$store"
	check "authenticated encryption is refused, dm-crypt named" \
		refused 'cipher' "capi:gcm(aes)-random $k32" "$store" "1 integrity:28:aead"
	check "integrity is refused, dm-crypt named" \
		refused '[Ii]ntegrity' "$AES $k64" "$store" "1 integrity:16:none"
	check "cryptsetup open of another cipher is refused" \
		logged 'cipher.*dm-crypt' cryptsetup open --type plain -q --key-file "$WORK/key" \
		-c aes-cbc-essiv:sha256 -s 256 "$store" no
	check "dm-crypt was not loaded meanwhile" must_fail loaded dm_crypt
fi

# ---- dm-crypt reads it all ----------------------------------------------------------

for name in l1 l2 p2 enc; do
	cryptsetup close $name
done
if [ "$us" = coffer ]; then
	rmmod dm_coffer
	modprobe dm_crypt
	check "control: dm-crypt is not taken for our data path" \
		must_fail sh -c 'dmsetup targets | grep -q "^coffer "'
fi
stock()
{
	case $3 in
	--type) cryptsetup open "${@:3}" "$1" ;;
	*) open "$3" "$1" ;;
	esac
	[ "$(dmsetup status "$1" | awk '{ print NF }')" = 3 ] || { dmsetup status "$1"; return 1; }
	holds "$1" "$2"
	cryptsetup close "$1"
}
for volume in "${volumes[@]}"; do
	# shellcheck disable=SC2086 # words
	check "dm-crypt reads ${volume%% *}" stock $volume
done

files()
{
	open "$1" enc
	e2fsck -fn /dev/mapper/enc
	mount -o ro /dev/mapper/enc "$WORK/mnt"
	_undo "umount $WORK/mnt"
	sha256sum < "$WORK/mnt/old" | cmp - "$WORK/old.sum"
	(cd "$WORK/mnt" && sha256sum --quiet -c "$WORK/new.sum")
	umount "$WORK/mnt"
	cryptsetup close enc
}
for volume in "${volumes[@]}"; do
	case $volume in
	enc\ *) check "dm-crypt: the file system and its files are whole" files "${volume##* }" ;;
	esac
done
open "$s1" l1
control "another content is noticed" 1 'the content of l1 has changed' holds l1 "${volumes[1]:3:64}"
cryptsetup close l1
finish
