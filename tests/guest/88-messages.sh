#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The messages "key wipe" and "key set": only while suspended; no resume without a key; a
# key that is refused leaves the old one in place; the right one brings the data back.
# What the data should read as is what dm-crypt reads beneath the same key.

set -euo pipefail
# shellcheck source=tests/guest/lib.sh
. "$(dirname "$0")/lib.sh"

insmod_coffer
right=$(hexkey messages 64) wrong=$(hexkey another 64)
half=$(hexkey half 32)
store=$(mkram 8)
_undo "keyctl clear @u"

msg() { dmsetup message dut 0 "$@"; }
suspended() { dmsetup info -c --noheadings -o suspended dut | grep -qi "^${1:-suspended}"; }
# the words of the kernel since the last `since`. Not by a mark in the log: the kernel
# drops those that come too fast.
since() { dmesg -C; }
words() { dmesg; }
# unsaid PATTERN: not in them, in any case of letters
unsaid() { words > "$WORK/words" && ! grep -Ei "$1" "$WORK/words"; }
said_once() { words > "$WORK/words" && [ "$(grep -c "$1" "$WORK/words")" = 1 ]; }

# data FILE: what the mapping reads, without any cache
data() { timeout 20 dd if=/dev/mapper/dut bs=1M count=1 iflag=direct status=none of="$WORK/$1"; }
reads() { data got && cmp "$WORK/got" "$WORK/$1"; }

# fresh KEY: mapped, active, the reference data on it
fresh()
{
	! [ -e /dev/mapper/dut ] || unmap dut
	map dut "$COFFER_TARGET" "$AES $1 0 $store 0"
}

dd if=/dev/urandom of="$WORK/plain" bs=1M count=1 status=none
map dut crypt "$AES $right 0 $store 0"
dd if="$WORK/plain" of=/dev/mapper/dut bs=1M oflag=direct status=none
unmap dut
map dut crypt "$AES $wrong 0 $store 0"
data garbage
unmap dut
# equal data under another key would make every comparison below worthless
control "another key reads other data" 1 'differ' cmp "$WORK/plain" "$WORK/garbage"

# ---- active: refused -----------------------------------------------------------

fresh "$right"
for m in "key wipe" "key set $wrong" "key set :64:logon:coffer:none"; do
	since
	# shellcheck disable=SC2086
	control "active: '${m:0:8}' is refused" 1 'Invalid argument' msg $m
	[ "$COFFER_TARGET" != coffer ] || check "active: '${m:0:8}': the kernel says why" \
		grep -q 'coffer: .*only be changed while suspended' <(words)
	check "active: after '${m:0:8}' the data is there" reads plain
done

# ---- words that are no message ---------------------------------------------------

# what dm itself answers (@cancel_deferred_remove and so on) begins with @
for state in active suspended; do
	[ $state = active ] || dmsetup suspend dut
	while read -r m; do
		since
		# shellcheck disable=SC2086
		control "$state: '${m:0:20}' is refused" 1 'Invalid argument' msg $m
		check "$state: '${m:0:20}': no key in the log" unsaid "${wrong:0:24}"
	done <<- END
		wipe
		key
		key wipe now
		key set
		key set $wrong $wrong
		key put $wrong
		keys wipe
		key wip
		set key $wrong
		$wrong
	END
done
dmsetup resume dut
check "after them all the data is there" reads plain

# ---- suspended: wipe ---------------------------------------------------------------

dmsetup suspend dut
check "wipe" msg key wipe
since
control "no resume without a key" 1 'Resource temporarily unavailable' dmsetup resume dut
[ "$COFFER_TARGET" != coffer ] || check "no resume without a key: the kernel says why" \
	grep -q 'coffer: .*not resumed: no key is set' <(words)
check "no resume without a key: still suspended" suspended
[ "$COFFER_TARGET" != coffer ] || check "status says that the key is wiped" \
	grep -q ' key_wiped ' <(dmsetup status dut)
check "the table still has the key's size and nothing else" \
	grep -Eq " $AES [x0]{128} 0 " <(dmsetup table --showkeys dut)
check "wipe again" msg key wipe
check "the right key again" msg key set "$right"
check "resume" dmsetup resume dut
check "the data is there" reads plain
[ "$COFFER_TARGET" != coffer ] || check "status says that the key is set" \
	grep -q ' key_set ' <(dmsetup status dut)

# words are taken in any case, as dm-crypt's are
dmsetup suspend dut
check "KEY Wipe" msg KEY Wipe
check "Key SET" msg Key SET "$right"
dmsetup resume dut
check "the data is there, KEY and all" reads plain

# another key of the right size is as good as any: the kernel cannot know
dmsetup suspend dut
check "another key" msg key set "$wrong"
dmsetup resume dut
check "another key reads what dm-crypt reads with it" reads garbage
dmsetup suspend dut
msg key set "$right"
dmsetup resume dut
check "and back" reads plain

# ---- I/O waits ---------------------------------------------------------------------

dmsetup suspend dut
msg key wipe
data late &
reader=$!
dd if="$WORK/plain" of=/dev/mapper/dut bs=1M seek=4 count=1 oflag=direct conv=notrunc status=none &
writer=$!
sleep 1
check "suspended: a read waits" kill -0 $reader
check "suspended: a write waits" kill -0 $writer
dd if="$store" bs=1M skip=4 count=1 iflag=direct status=none of="$WORK/unwritten"
check "suspended: nothing was written" cmp -n 1048576 "$WORK/unwritten" /dev/zero
msg key set "$right"
dmsetup resume dut
status=0
wait $reader || status=$?
equal "resumed: the read ends" $status 0
wait $writer || status=$?
equal "resumed: the write ends" $status 0
check "resumed: the read is right" cmp "$WORK/late" "$WORK/plain"
check "resumed: the write is right" cmp -n 1048576 \
	<(dd if=/dev/mapper/dut bs=1M skip=4 count=1 iflag=direct status=none) "$WORK/plain"

# ---- keys that are refused -----------------------------------------------------------

logon_key coffer:short "$(hexkey short 32)"
logon_key coffer:equal "$half$half"
logon_key coffer:right "$right"
logon_key coffer:gone "$right"
keyctl unlink "$(keyctl search @u logon coffer:gone)" @u > /dev/null
refused=(
	"another size:$half"
	"no size of a key:${right:0:126}"
	"odd digits:${right:0:127}"
	"too long:${right}00"
	"empty:-"
	"not hex:${right:0:127}g"
	"blank in front:x${right:1}"
	"a key from the table:$(printf 'x%.0s' {1..128})"
	"equal halves:$half$half"
	"no such key::64:logon:coffer:none"
	"a key that is gone::64:logon:coffer:gone"
	"a key of another size::64:logon:coffer:short"
	"a smaller key::32:logon:coffer:short"
	"equal halves in the keyring::64:logon:coffer:equal"
	"another type::64:user:coffer:right"
	"no type::64:coffer:right"
	"unknown type::64:asymmetric:coffer:right"
	"no size::logon:coffer:right"
	"size 0::0:logon:coffer:right"
	"no description::64:logon:"
	"size and junk::64k:logon:coffer:right"
)
for r in "${refused[@]}"; do
	name=${r%%:*} value=${r#*:}
	dmsetup suspend dut
	since
	control "set, $name: refused" 1 'Invalid argument|Required key not available|not available|expired|revoked' \
		msg key set "$value"
	[ "$COFFER_TARGET" != coffer ] || check "set, $name: the kernel says why, once" \
		said_once 'coffer: .*key not set: [A-Z]'
	check "set, $name: no key in the log" unsaid "${right:0:24}|${half:0:24}"
	check "set, $name: resumes with the old key" dmsetup resume dut
	check "set, $name: the old key's data" reads plain
done

# after a wipe there is no old key to go back to
dmsetup suspend dut
msg key wipe
for value in "$half" "$half$half" "${right:0:127}g" :64:logon:coffer:none; do
	control "wiped, then '${value:0:8}...': refused" 1 'Invalid argument|not available' msg key set "$value"
	control "wiped, then '${value:0:8}...': no resume" 1 'temporarily unavailable' dmsetup resume dut
done
check "wiped, refused, then the right key" msg key set "$right"
dmsetup resume dut
check "wiped, refused, then the right key: the data" reads plain
unmap dut

# ---- keys in the keyring ----------------------------------------------------------------

fresh ":64:logon:coffer:right"
check "keyring key: the data" reads plain
line=$(dmsetup table dut)
check "keyring key: the table shows its description" \
	grep -q ' :64:logon:coffer:right 0 ' <<< "$line"
unmap dut
check "keyring key: the table loads again" dmsetup create dut --table "$line"
check "keyring key: and reads the data" reads plain
dmsetup suspend dut
msg key wipe
check "keyring key: set again after a wipe" msg key set :64:logon:coffer:right
dmsetup resume dut
check "keyring key: the data after wipe and set" reads plain
dmsetup suspend dut
check "from a keyring key to a hex key" msg key set "$right"
dmsetup resume dut
check "from a keyring key to a hex key: the data" reads plain
check "from a keyring key to a hex key: the table shows neither" \
	grep -Eq " $AES [x0]{128} 0 " <(dmsetup table --showkeys dut)
dmsetup suspend dut
logon_key coffer:user "$right" user
check "to a key of type user" msg key set :64:user:coffer:user
dmsetup resume dut
check "to a key of type user: the data" reads plain
check "to a key of type user: the table" grep -q ' :64:user:coffer:user 0 ' <(dmsetup table dut)

# the mapping has no need of the keyring once it is there
keyctl unlink "$(keyctl search @u user coffer:user)" @u > /dev/null
dmsetup suspend dut
dmsetup resume dut
check "the key may leave the keyring: the data" reads plain
dmsetup suspend dut
msg key wipe
control "but cannot be set again then" 1 'not available' msg key set :64:user:coffer:user
msg key set "$right"
dmsetup resume dut
unmap dut
keyctl unlink "$(keyctl search @u logon coffer:right)" @u > /dev/null
control "nor does the table load again" 1 'not available' dmsetup create dut --table "$line"
equal "which leaves no device" "$(dmsetup ls | grep -c '^dut' || true)" 0

# ---- a table beside the active one --------------------------------------------------------

fresh "$right"
dmsetup suspend dut
msg key wipe
# a new table has a key of its own: this is how cryptsetup changes one
check "wiped, then a new table" dmsetup load dut --table "0 16384 $COFFER_TARGET $AES $right 0 $store 0"
check "wiped, then a new table: resumes" dmsetup resume dut
check "wiped, then a new table: the data" reads plain
unmap dut

# ---- a new table that names a key which has left the keyring ------------------------------

# dm-crypt refuses them all
if [ "$COFFER_TARGET" = coffer ]; then
	gone() { keyctl unlink "$(keyctl search @u logon "$1")" @u > /dev/null; }
	# half the size, so that a swap can be told
	new() { dmsetup load dut --table "0 8192 coffer $AES $1 0 $store 0"; }
	missing() { control "$1" 1 'Required key not available' new "$2"; }
	swap() { dmsetup suspend dut; dmsetup resume dut; }
	logon_key coffer:first "$right"
	fresh ":64:logon:coffer:first"
	gone coffer:first

	check "the key of the active table: loads" new :64:logon:coffer:first
	check "the key of the active table: resumes" swap
	equal "the key of the active table: the new size" "$(sectors /dev/mapper/dut)" 8192
	check "the key of the active table: the data" reads plain
	# the table before it is gone, and with it nothing of the key
	check "and once more" new :64:logon:coffer:first
	swap
	check "and once more: the data" reads plain

	missing "another description is not inherited" :64:logon:coffer:second
	missing "nor a longer one" :64:logon:coffer:first1
	missing "nor another size" :32:logon:coffer:first
	missing "nor another type" :64:user:coffer:first
	control "another mapping inherits nothing" 1 'Required key not available' \
		dmsetup create dut2 --table "0 8192 coffer $AES :64:logon:coffer:first 0 $store 8192"
	control "nor does x for a hex key" 1 'Invalid argument' new "$(printf 'x%.0s' {1..128})"
	check "after them the data" reads plain

	# one key for both tables
	check "a table waits" new :64:logon:coffer:first
	dmsetup suspend dut
	msg key wipe
	control "the key of both is wiped: no resume" 1 'temporarily unavailable' dmsetup resume dut
	missing "a wiped key is not inherited" :64:logon:coffer:first
	logon_key coffer:first "$right"
	msg key set :64:logon:coffer:first
	gone coffer:first
	check "the key set again, for a table that never ran: resumes" dmsetup resume dut
	check "the key set again: the data" reads plain
	dmsetup suspend dut
	new :64:logon:coffer:first
	msg key set "$wrong"
	dmsetup resume dut
	check "a table waits, another key: it has that one" reads garbage
	missing "and not what it was loaded with" :64:logon:coffer:first
	unmap dut

	# a key in the keyring is read, whatever the active table has
	logon_key coffer:first "$right"
	fresh ":64:logon:coffer:first"
	logon_key coffer:first "$wrong"
	new :64:logon:coffer:first
	swap
	check "the key of the keyring comes first" reads garbage
	# right key loaded but never active, wrong one active: the active one counts
	logon_key coffer:first "$right"
	new :64:logon:coffer:first
	gone coffer:first
	new :64:logon:coffer:first
	swap
	check "a table that was never active hands nothing on" reads garbage
	unmap dut

	# two segments, each with a key of its own under one name: which one is not to be guessed
	logon_key coffer:first "$right"
	dmsetup create dut << END
0 4096 coffer $AES :64:logon:coffer:first 0 $store 0
4096 4096 coffer $AES :64:logon:coffer:first 4096 $store 4096
END
	gone coffer:first
	missing "two keys of one name: none is inherited" :64:logon:coffer:first
	check "two keys of one name: the data" reads plain
	unmap dut
	missing_after() { dmsetup create dut --table "0 8192 coffer $AES :64:logon:coffer:first 0 $store 0"; }
	control "with the mapping its key is gone" 1 'Required key not available' missing_after
fi
finish
