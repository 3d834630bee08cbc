#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Key bytes are never shown. Everything that the kernel prints about a mapping is
# collected, from one that is used, one that is refused and one whose key is changed, and
# searched for every 16 bytes of the key, in hex and in binary. dmsetup itself hides
# keys for the target name crypt only, so nothing but the kernel stands between a key
# and a bug report.

set -euo pipefail
# shellcheck source=tests/guest/lib.sh
. "$(dirname "$0")/lib.sh"

insmod_coffer
store=$(mkram 4)
hex=$(hexkey secrets-hex 64)
ring=$(hexkey secrets-ring 64)
next=$(hexkey secrets-next 64)

# leaks KEY FILE...: fails if a file holds 16 bytes of the key, and says which
leaks()
{
	local key=$1 i hits
	shift
	for ((i = 0; i < ${#key}; i += 32)); do
		printf '%s\n' "${key:i:32}"
	done > "$WORK/parts"
	hits=$({
		grep -aoiHF -f "$WORK/parts" -- "$@" | sed 's/^/in hex: /'
		cat -- "$@" | od -An -v -tx1 | tr -d ' \n' | grep -oF -f "$WORK/parts" |
			sed 's/^/in binary: /'
	} | head -n 5 || true)
	[ -z "$hits" ] || { echo "$hits"; return 1; }
}

# collect DIRECTORY NAME: what can be seen of a mapping and of the machine
collect()
{
	local dir=$1 name=$2 dm
	mkdir -p "$dir"
	for what in table 'table --showkeys' 'table --inactive' 'table --inactive --showkeys' status \
			'status --inactive' 'status -v' info; do
		# shellcheck disable=SC2086 # words
		dmsetup $what "$name" > "$dir/${what// /_}" 2>&1 || true
	done
	dmsetup table --showkeys > "$dir/all-tables" 2>&1
	dmesg > "$dir/dmesg"
	cat /proc/keys /proc/key-users > "$dir/keys"
	# not all of them are in each kernel
	cat /proc/mounts /proc/partitions /proc/crypto /proc/slabinfo /proc/modules /proc/locks \
		> "$dir/proc" 2> /dev/null || true
	dm=$(basename "$(readlink -f "/sys/dev/block/$(dmsetup info -c --noheadings -o major,minor \
		--separator : "$name")")")
	for tree in "/sys/block/$dm" "/sys/module/$MODULE" /sys/devices/virtual/workqueue /sys/kernel/debug/block/"$dm"; do
		[ -d "$tree" ] || continue
		# some of these files refuse to be read
		find "$tree" -xdev -type f -readable 2> /dev/null |
			timeout 20 xargs -r grep -asH . >> "$dir/sysfs" 2> /dev/null || true
	done
	cp /sys/kernel/tracing/trace "$dir/trace" 2> /dev/null || true
	cat /sys/kernel/security/ima/binary_runtime_measurements > "$dir/ima" 2> /dev/null || true
}

# Make the kernel as talkative as it gets.
dmesg -n 8
echo "module $MODULE +pmfl" > /sys/kernel/debug/dynamic_debug/control 2> /dev/null || true
if [ -d /sys/kernel/tracing/events ]; then
	for event in block/enable workqueue/enable printk/enable; do
		echo 1 > /sys/kernel/tracing/events/$event 2> /dev/null || true
		_undo "echo 0 > /sys/kernel/tracing/events/$event"
	done
fi
[ -d /sys/kernel/security/ima ] || mount -t securityfs none /sys/kernel/security 2> /dev/null || true
ima=''
if [ -e /sys/kernel/security/ima/policy ] &&
	echo 'measure func=CRITICAL_DATA label=device-mapper' > /sys/kernel/security/ima/policy 2> /dev/null; then
	ima=1
fi

# ---- a hex key ------------------------------------------------------------------

map secret "$COFFER_TARGET" "$AES $hex 0 $store 8 1 sector_size:4096"
dmsetup reload secret --table "0 4096 $COFFER_TARGET $AES $hex 8 $store 8"	# the inactive table
dd if=/dev/zero of=/dev/mapper/secret bs=64k count=4 oflag=direct status=none
collect "$WORK/hex" secret
dmsetup clear secret
check 'hex key: not shown anywhere' leaks "$hex" "$WORK"/hex/*
read -r _ _ _ cipher key _ < "$WORK/hex/table_--showkeys" || true
equal 'hex key: the table has the cipher' "$cipher" "$AES"
equal 'hex key: the table has x in its place, at its length' "$key" "$(printf 'x%.0s' {1..128})"
read -r _ _ _ _ key _ < "$WORK/hex/table_--inactive_--showkeys" || true
equal 'hex key: so has the inactive table' "$key" "$(printf 'x%.0s' {1..128})"

# the blanked table is no table: refused, and what is active goes on
dd if=/dev/mapper/secret bs=64k count=4 iflag=direct status=none | sha256sum > "$WORK/before"
blanked=$(dmsetup table --showkeys secret)
control 'the blanked table does not load' 1 'Invalid argument|reload ioctl' \
	dmsetup reload secret --table "$blanked"
dd if=/dev/mapper/secret bs=64k count=4 iflag=direct status=none | sha256sum > "$WORK/after"
check 'and the volume is unharmed' cmp "$WORK/before" "$WORK/after"

# changing the key: right, wrong and malformed messages
dmsetup suspend secret
dmsetup message secret 0 key wipe
for message in "key set $next" "key set ${next:2}" "key set ${next:0:126}zz" "key sett $next" "kex set $next" \
		"key set $next more" "key wipe $next" "$next" "key $next"; do
	# shellcheck disable=SC2086 # words
	dmsetup message secret 0 $message > /dev/null 2>&1 || true
done
dmsetup message secret 0 key set "$hex"
dmsetup resume secret
collect "$WORK/message" secret
check 'key set: the old key is not shown' leaks "$hex" "$WORK"/message/*
check 'key set: nor is the new one' leaks "$next" "$WORK"/message/*
unmap secret

# ---- tables that are refused ------------------------------------------------------

map secret "$COFFER_TARGET" "$AES $ring 0 $store 8"
for params in "aes-xts-plain $hex 0 $store 8" "$AES $hex$hex 0 $store 8" "$AES ${hex:0:126} 0 $store 8" \
		"$AES ${hex:0:127}g 0 $store 8" "$AES ${hex:0:64}${hex:0:64} 0 $store 8" \
		"$AES $hex x $store 8" "$AES $hex 0 /dev/nobody 8" "$AES $hex 0 $hex 8" "$AES $hex 0 $store $hex" \
		"$AES $hex 0 $store 99999999" "$AES $hex 0 $store 8 1 nonsense" "$AES $hex 0 $store 8 $hex" \
		"$AES $hex 0 $store 8 1 $hex" "$hex 0 $store 8" "$hex $AES 0 $store 8" "$AES $hex" \
		"$AES :64:logon:$hex 0 $store 8" "$AES :64:$hex:desc 0 $store 8" "$AES :$hex:logon:a:b 0 $store 8"; do
	dmsetup reload secret --table "0 4096 $COFFER_TARGET $params" > /dev/null 2>&1 || true
done
collect "$WORK/refused" secret
unmap secret
check 'refused tables: the key is not in the log' leaks "$hex" "$WORK/refused/dmesg"

# ---- a key from the keyring ---------------------------------------------------------

logon_key coffer:secret "$ring"
word=:64:logon:coffer:secret
map secret "$COFFER_TARGET" "$AES $word 16 $store 8 3 allow_discards sector_size:4096 iv_large_sectors"
dd if=/dev/urandom of="$WORK/data" bs=64k count=4 iflag=fullblock status=none
dd if="$WORK/data" of=/dev/mapper/secret bs=64k oflag=direct status=none
collect "$WORK/ring" secret
check 'keyring key: not shown anywhere' leaks "$ring" "$WORK"/ring/*
table=$(dmsetup table secret)
equal 'keyring key: the table has its description' "$(cut -d' ' -f5 <<< "$table")" "$word"
equal 'keyring key: with and without --showkeys' "$(dmsetup table --showkeys secret)" "$table"
unmap secret
check 'keyring key: the printed table loads again' dmsetup create secret --table "$table"
equal 'keyring key: and prints the same' "$(dmsetup table secret)" "$table"
check 'keyring key: and reads the same' eval \
	"dd if=/dev/mapper/secret bs=64k count=4 iflag=direct status=none | cmp - '$WORK/data'"
dmsetup remove --retry secret
for options in '' ' 1 allow_discards' ' 1 sector_size:1024' \
		' 5 allow_discards same_cpu_crypt submit_from_crypt_cpus no_read_workqueue no_write_workqueue' \
		' 2 sector_size:4096 iv_large_sectors'; do
	map secret "$COFFER_TARGET" "$AES $word 16 $store 8$options" 4096
	table=$(dmsetup table secret)
	unmap secret
	map other crypt "$AES $word 16 $store 8$options" 4096
	equal "the table is dm-crypt's:${options:- no options}" "${table/ $COFFER_TARGET / crypt }" "$(dmsetup table other)"
	unmap other
done
keyctl unlink "$(keyctl search @u logon coffer:secret)" @u > /dev/null

if [ -n "$ima" ] && [ -s "$WORK/hex/ima" ]; then
	check 'IMA measured the table, so its text was searched too' grep -aq dm_table_load "$WORK/hex/ima"
else
	skip 'IMA measured the table' 'this kernel takes no measurement of device-mapper'
fi

# ---- can this check fail? -------------------------------------------------------------

plant=$(hexkey secrets-plant 64)
map planted crypt "$AES $plant 0 $store 8"
collect "$WORK/planted" planted
unmap planted
control 'dm-crypt shows its key, and that is found' 1 "in hex: .*/all-tables:${plant:0:32}" \
	leaks "$plant" "$WORK"/planted/*
control 'its last part by itself too' 1 "in hex: .*/table_--showkeys:${plant:96}" \
	leaks "$(printf '%096d' 7)${plant:96}" "$WORK/planted/table_--showkeys"
echo "some words ${plant:32:32} more words" > /dev/kmsg
mkdir "$WORK/log"
dmesg > "$WORK/log/dmesg"
control 'part of a key in the log is found' 1 "in hex: .*/dmesg:${plant:32:32}" \
	leaks "$plant" "$WORK/log/dmesg"
{ printf 'abc'; unhex "$plant"; } > "$WORK/log/raw"
control 'key bytes in binary are found' 1 "in binary: ${plant:0:32}" \
	leaks "$plant" "$WORK/log/raw"
for what in table status dmesg keys sysfs; do
	check "there was something to search: $what" test -s "$WORK/hex/$what"
done
finish
