#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# "coffer adopt" and "coffer release": volumes go from dm-crypt to dm-coffer and back while
# they are read and written. A key that cannot be checked is never used.

set -euo pipefail
# shellcheck source=tests/guest/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/guest/command.sh
. "$(dirname "$0")/command.sh"
only_in_check_all

insmod_coffer
modprobe -q loop
loops=$(nr_loops)
img=$WORK/box.img
key=$(hexkey adopt 64)
store=$(mkram 32)
right image create "$img" --size 40M --no-recovery --unlock-time 50 > /dev/null
_undo "dmsetup remove --retry box"

# ---- adopt, release ----------------------------------------------------------------

check "open on dm-crypt, to be adopted" right open --driver dm-crypt "$img" box
load box
control "adopt: no secret" 13 'no secret' alone adopt box
control "adopt: wrong secret" 3 'wrong secret' wrong adopt box
equal "adopt: refused: the target" "$(target_of box)" crypt
check "adopt: refused: nothing is left loaded" active_only box

# a logon key of the right name cannot be read, so it is not to be trusted
uuid=$(cryptsetup luksUUID "$img")
logon_key "cryptsetup:$uuid-d0" "$(hexkey someone 64)"
control "adopt: a key that nobody can check is not used" 13 'no secret' alone adopt box
keyctl clear @u
equal "adopt: and the target stays" "$(target_of box)" crypt

check "adopt: right secret" right adopt box
equal "adopt: the target" "$(target_of box)" coffer
control "adopt: again" 15 'already' right adopt box
for n in 1 2 3; do
	check "release, $n" right release box
	equal "release, $n: the target" "$(target_of box)" crypt
	check "adopt, $n" right adopt "/dev/mapper/box"
	equal "adopt, $n: the target" "$(target_of box)" coffer
done
check "adopt, release: I/O goes on" busy
calm "adopt, release: I/O was right all the time"
check "adopt, release: no key in a keyring" no_keys
check "adopted: resize needs no secret" alone resize box --size 20M --force
coffer close box

# killed at any moment, the more often towards the end, where tables are swapped
check "open, to be killed" right open --driver dm-crypt "$img" box
before=$(sum box)
began=${EPOCHREALTIME/./}
right adopt box > /dev/null
took=$(((${EPOCHREALTIME/./} - began) / 1000))
states=()
for n in {1..15}; do
	verb=adopt
	[ "$(target_of box)" = crypt ] || verb=release
	"$COFFER" $verb box < "$pw" > /dev/null 2>&1 &
	late=$((took * (70 + RANDOM % 40) / 100))
	sleep "$((late / 1000)).$(printf %03d $((late % 1000)))"
	kill -9 $! 2> /dev/null || true
	status=0
	wait $! || status=$?
	running box || { states+=("suspended after $verb"); break; }
	states+=("$status:$(target_of box)")
done
note "$took ms; after each kill: ${states[*]}"
check "killed: some were" grep -q 137: <<< "${states[*]}"
check "killed: never suspended" running box
equal "killed: the data" "$(sum box)" "$before"
dmsetup clear box
coffer close box

# a key in dm-crypt's table: no secret, and no way back without a header
map plain crypt "$AES $key 0 $store 0 1 allow_discards"
before=$(sum plain)
check "adopt: the key in the table" alone adopt plain
equal "adopt: the key in the table: the target" "$(target_of plain)" coffer
equal "adopt: the key in the table: the data" "$(sum plain)" "$before"
check "adopt: options stay" grep -q ' 1 allow_discards$' <(dmsetup table plain)
check "adopt: the key is not shown" grep -Eq " $AES x{128} " <(dmsetup table --showkeys plain)
control "release: a hidden key without a header" 14 'no header' alone release plain
equal "release: refused: the target" "$(target_of plain)" coffer
equal "release: refused: the data" "$(sum plain)" "$before"
unmap plain

# options of ours stay here
check "options: open" right open "$img" box
dmsetup table box | sed 's/ [0-9] [a-z].*sector_size:4096$/ 3 sector_size:4096 inline:4096 fanout:1/' > "$WORK/table"
dmsetup load box "$WORK/table"
dmsetup resume box
check "options: ours are there" grep -q fanout:1 <(dmsetup table box)
check "options: release" right release box
check "options: what dm-crypt knows stays" grep -q ' 1 sector_size:4096$' <(dmsetup table box)
coffer close box

# a key of type user can be read, and is checked
printf 'correct horse' > "$WORK/keyfile"
volume_key=$(cryptsetup luksDump --dump-volume-key -q --key-file "$WORK/keyfile" "$img" |
	sed -n '/MK dump:/,$ { s/MK dump://; s/[^0-9a-f]//g; p }' | tr -d '\n')
equal "the volume key has 64 bytes" ${#volume_key} 128
check "user key: loop device" losetup -f "$img"
loop=$(losetup -j "$img" | cut -d: -f1)
_undo "losetup -d $loop"
logon_key coffer:live "$volume_key" user
map box crypt "$AES :64:user:coffer:live 0 $loop 32768 1 sector_size:4096" '' \
	--uuid "CRYPT-LUKS2-${uuid//-/}-box"
before=$(sum box)
logon_key coffer:live "$(hexkey someone 64)" user
control "user key: a wrong one is not used" 13 'no secret' alone adopt box
logon_key coffer:live "$volume_key" user
check "user key: the right one is" alone adopt box
equal "user key: the target" "$(target_of box)" coffer
equal "user key: the data" "$(sum box)" "$before"
unmap box
keyctl clear @u
losetup -d "$loop"

# ---- all, and what cannot be moved -----------------------------------------------------

old=$(mkram 8) other=$(mkram 8)
map cbc crypt "aes-cbc-essiv:sha256 $(hexkey cbc 32) 0 $old 0"
map plain crypt "$AES $key 0 $other 0"
check "all: open" right open --driver dm-crypt "$img" box
control "adopt: another cipher is refused by name" 14 'cipher is aes-cbc-essiv:sha256' alone adopt cbc
check "adopt --all" right adopt --all
equal "adopt --all: one" "$(target_of box)" coffer
equal "adopt --all: two" "$(target_of plain)" coffer
equal "adopt --all: another cipher stays" "$(target_of cbc)" crypt
check "adopt --all: again, nothing to do" alone adopt --all
control "release --all: one of them cannot" 14 'plain has no header' right release --all
equal "release --all: the other is released" "$(target_of box)" crypt
right adopt --all --json > "$WORK/json" 2> /dev/null || true
equal "adopt --all: JSON" "$(jq -c .adopted "$WORK/json")" '["box"]'
unmap cbc plain
coffer close box

# LUKS1 as cryptsetup opens it: the key stands in the table
check "luks1: format" cryptsetup luksFormat -q --type luks1 --pbkdf-force-iterations 1000 "$store" "$WORK/keyfile"
check "luks1: open" cryptsetup open --key-file "$WORK/keyfile" "$store" old
_undo "dmsetup remove --retry old"
before=$(sum old)
check "luks1: adopt without a secret" alone adopt old
equal "luks1: the data" "$(sum old)" "$before"
check "luks1: release by the secret" coffer release --key-file "$WORK/keyfile" old
equal "luks1: release: the target" "$(target_of old)" crypt
equal "luks1: release: the data" "$(sum old)" "$before"
check "luks1: lock" alone lock old
check "luks1: unlock" coffer unlock --key-file "$WORK/keyfile" old
equal "luks1: unlock: the data" "$(sum old)" "$before"
check "luks1: cryptsetup closes it" cryptsetup close old
equal "no loop device is left" "$(nr_loops)" "$loops"
finish
