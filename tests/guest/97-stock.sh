#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Stock tools on an open volume of ours, without takeover: the target's name is not one that
# libcryptsetup knows. Each works or refuses, and neither mapping, data nor header suffer.
# docs/stock-tools.md is the table of this.

set -euo pipefail
# shellcheck source=tests/guest/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/guest/command.sh
. "$(dirname "$0")/command.sh"

insmod_coffer
store=$(mkram 20)
pw=$WORK/secret
printf one > "$pw"
fast=(-q --pbkdf pbkdf2 --pbkdf-force-iterations 1000 --key-file "$pw")

# What must not change: table, state, and the data; and the header opens
state() { dmsetup table y; dmsetup info -c --noheadings -o suspended,tables_loaded y; sum y; }
unharmed()
{
	[ "$(state)" = "$before" ] || { state; return 1; }
	cryptsetup open --test-passphrase --key-file "$pw" "$store"
}
# refused NAME CODE COMMAND...
refused()
{
	local name=$1 want=$2 status=0
	shift 2
	timeout 60 "$@" > "$WORK/said" 2>&1 < /dev/null || status=$?
	equal "$name: refused" "$status" "$want"
	check "$name: no harm" unharmed
	note "$name: $(tr '\n' ' ' < "$WORK/said")"
}
# works NAME COMMAND...
works()
{
	local name=$1
	shift
	check "$name: works" timeout 60 "$@"
	check "$name: no harm" unharmed
}

changed()
{
	dd if=/dev/zero of=/dev/mapper/y bs=4096 count=1 oflag=direct status=none
	unharmed
}

# the mapping is the same for both: LUKS1 for whoever has the time
types=(luks2)
[ -z "${COFFER_ALL:-}" ] || types+=(luks1)
for type in "${types[@]}"; do
	cryptsetup luksFormat --type "$type" --offset 32768 "${fast[@]}" "$store"
	"$C" open "$store" y --key-file "$pw" > /dev/null
	_undo "dmsetup remove --retry y"
	dd if=/dev/urandom of=/dev/mapper/y bs=1M oflag=direct status=none 2> "$WORK/said" || true
	before=$(state)
	check "$type: control: the state is steady" unharmed
	if [ "$type" = luks2 ]; then
		control "data that changed" 1 ' coffer aes-xts-plain64 ' changed
		before=$(state)
	fi

	refused "$type: cryptsetup status" 1 cryptsetup status y
	refused "$type: cryptsetup close" 4 cryptsetup close y
	refused "$type: cryptsetup close --deferred" 4 cryptsetup close --deferred y
	refused "$type: cryptsetup resize" 4 cryptsetup resize y --size 2048 --key-file "$pw"
	refused "$type: cryptsetup resize --disable-keyring" 4 \
		cryptsetup resize y --size 2048 --key-file "$pw" --disable-keyring
	refused "$type: cryptsetup refresh" 1 cryptsetup refresh y --key-file "$pw"
	refused "$type: cryptsetup luksSuspend" 4 cryptsetup luksSuspend y
	refused "$type: cryptsetup luksResume" 4 cryptsetup luksResume y --key-file "$pw"
	refused "$type: a second cryptsetup open" 5 cryptsetup open "$store" z --key-file "$pw"
	refused "$type: cryptsetup reencrypt" 1 cryptsetup reencrypt "${fast[@]}" "$store"
	refused "$type: cryptsetup reencrypt --active-name" 1 \
		cryptsetup reencrypt --active-name y "${fast[@]}"
	header=(--header "$WORK/header")
	[ "$type" = luks2 ] || header=()
	refused "$type: cryptsetup reencrypt --decrypt" 1 \
		cryptsetup reencrypt --decrypt ${header[@]+"${header[@]}"} "${fast[@]}" "$store"
	refused "$type: cryptsetup luksFormat" 1 cryptsetup luksFormat "${fast[@]}" "$store"
	check "$type: cryptsetup luksFormat: since it is in use" grep -q 'in use' "$WORK/said"
	# exits 0, as for a volume that is not open
	if [ -x /lib/systemd/systemd-cryptsetup ]; then
		works "$type: systemd-cryptsetup detach leaves it open" /lib/systemd/systemd-cryptsetup detach y
	else
		skip "$type: systemd-cryptsetup detach" "it is not installed"
	fi
	works "$type: cryptsetup luksDump" cryptsetup luksDump "$store"
	works "$type: cryptsetup luksAddKey" cryptsetup luksAddKey "${fast[@]}" "$store" "$C" --new-keyfile-size 64
	works "$type: cryptsetup luksRemoveKey" cryptsetup luksRemoveKey -q "$store" "$C" --keyfile-size 64
	works "$type: dmsetup suspend, resume" sh -c "dmsetup suspend y && dmsetup resume y"
	check "$type: coffer close" "$C" close y
	check "$type: cryptsetup opens it then" cryptsetup open "$store" y --key-file "$pw"
	equal "$type: with the same data" "$(sum y)" "$(tail -n 1 <<< "$before")"
	check "$type: cryptsetup close" cryptsetup close y
done

# dmsetup remove is the stock way to close one
"$C" open "$store" y --key-file "$pw" > /dev/null
check "dmsetup remove closes it" dmsetup remove --retry y
check "and it opens again" "$C" open "$store" y --key-file "$pw"
check "and closes" "$C" close y

finish
