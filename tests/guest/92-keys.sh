#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The secrets of a volume: "coffer key" and "coffer recovery". What we add opens with
# cryptsetup, what cryptsetup adds is shown and can go; the last secret stays.

set -euo pipefail
# shellcheck source=tests/guest/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/guest/command.sh
. "$(dirname "$0")/command.sh"

insmod_coffer
store=$(mkram 20)
fast=(-q --pbkdf pbkdf2 --pbkdf-force-iterations 1000)
quick=(--unlock-time 2)

# lines LINE... -- COMMAND...: the lines are typed, one after the other
lines()
{
	local typed=()
	while [ "$1" != -- ]; do
		typed+=("$1")
		shift
	done
	shift
	printf '%s\n' "${typed[@]}" | "$@"
}
names() { "$C" key list "$store" --json | jq -r '[.secrets[].name] | sort | join(",")'; }
kind() { "$C" key list "$store" --json | jq -r --arg n "$1" '.secrets[] | select(.name == $n).kind'; }
# stock SECRET: does cryptsetup open it
stock() { printf %s "$1" | cryptsetup open --test-passphrase "$store" -; }
closed() { ! stock "$1"; }
tokens() { cryptsetup luksDump --dump-json-metadata "$store" | jq '.tokens | length'; }
copy_current() { "$C" status "$store" --json | jq -e '.volumes[0].header_backup_current == true'; }
header_sum() { dd if="$store" bs=1M count=16 iflag=direct status=none | sha256sum; }

# ---- list, add, test -------------------------------------------------------------------

printf one | cryptsetup luksFormat --type luks2 "${fast[@]}" "$store" -
equal "what cryptsetup made is listed" "$(names)" slot-0
check "test: right" exits 0 "this is slot-0" lines one -- "$C" key test "$store"
check "test: wrong" exits 3 "wrong secret" lines two -- "$C" key test "$store"
before=$(header_sum)
check "remove: the last secret stays" exits 13 "last secret.*nothing would remain" \
	lines one -- "$C" key remove "$store" slot-0
check "add: wrong secret" exits 3 "wrong secret" lines two three -- "$C" key add "$store" anna
check "add: an impossible name" exits 2 "cannot use the name" lines one two -- "$C" key add "$store" slot-7
check "add: no new secret" exits 13 "end of input" lines one -- "$C" key add "$store" anna
check "remove: a name that is not there" exits 4 "no secret called bob; it has slot-0" \
	lines one -- "$C" key remove "$store" bob
equal "what is refused writes nothing" "$(header_sum)" "$before"

check "add" exits 0 "anna opens .* from now on" lines one two -- "$C" key add "$store" anna "${quick[@]}"
equal "add: it is listed" "$(names)" anna,slot-0
check "add: cryptsetup opens with it" stock two
check "add: and with the old one" stock one
check "add: the copy of the header is new" copy_current
check "add: the name is in use" exits 15 "there is a secret of that name" \
	lines one three -- "$C" key add "$store" anna
head -c 64 /dev/urandom > "$WORK/file"
chmod 600 "$WORK/file"
check "add: a key file" lines two -- "$C" key add "$store" stick --new-key-file "$WORK/file" "${quick[@]}"
equal "add: its kind" "$(kind stick)" key-file
check "add: cryptsetup opens with the key file" cryptsetup open --test-passphrase --key-file "$WORK/file" "$store"
check "test: by name" exits 0 "this is stick" "$C" key test "$store" stick --key-file "$WORK/file"
check "test: by another's name" exits 3 "wrong secret" lines one -- "$C" key test "$store" anna

# ---- change ----------------------------------------------------------------------------

check "change: wrong secret" exits 3 "wrong secret" lines three four -- "$C" key change "$store" anna
check "change" exits 0 "anna of .* is changed" lines two four -- "$C" key change "$store" anna "${quick[@]}"
check "change: the new one opens" stock four
check "change: the old one does not" closed two
equal "change: the names stay" "$(names)" anna,slot-0,stick
equal "change: no token is left over" "$(tokens)" 2

# ---- remove ----------------------------------------------------------------------------

check "remove: proved by itself" exits 13 "is anna itself" lines four -- "$C" key remove "$store" anna
check "remove: a wrong secret" exits 3 "wrong secret" lines two -- "$C" key remove "$store" anna
check "remove: what cryptsetup added" exits 0 "What else opens .*: (anna, stick|stick, anna)" \
	lines four -- "$C" key remove "$store" slot-0
check "remove: it does not open" closed one
check "remove: the copy of the header is new" copy_current
check "remove: the last one that can be typed" exits 13 "last one that a person can type.*: stick" \
	"$C" key remove "$store" anna --key-file "$WORK/file"
check "remove: with --force" "$C" key remove "$store" anna --key-file "$WORK/file" --force
equal "remove: what remains" "$(names)" stick
check "remove: the very last, by force" exits 13 "nothing would remain" \
	"$C" key remove "$store" stick --key-file "$WORK/file" --force
equal "remove: its token is gone" "$(tokens)" 1

# ---- killed at any moment ----------------------------------------------------------------

# change_killed SECONDS: from the secret in $now to another; afterwards one of them opens
change_killed()
{
	local status=0 next=next$RANDOM
	timeout -s KILL "$1" "$C" key change "$store" --key-file "$WORK/now" "${quick[@]}" \
		--new-passphrase-fd 3 3<<< "$next" > /dev/null 2>&1 || status=$?
	if stock "$next" 2> /dev/null; then
		printf %s "$next" > "$WORK/now"
	else
		cryptsetup open --test-passphrase --key-file "$WORK/now" "$store" || return
	fi
	echo "$status" >> "$WORK/statuses"
}
many_killed()
{
	local ms=60
	while [ $ms -lt 3000 ]; do
		change_killed "$(printf '%d.%03d' $((ms / 1000)) $((ms % 1000)))" || return
		ms=$((ms * $1 / 10))
	done
	cryptsetup luksDump "$store" > /dev/null
}
printf now > "$WORK/now"
chmod 600 "$WORK/now"
lines now -- "$C" key add "$store" now --key-file "$WORK/file" "${quick[@]}" > /dev/null
step=25
[ -z "${COFFER_ALL:-}" ] || step=11
check "change: killed at any moment, the old or the new one opens" many_killed $step
check "change: some were killed, and some came to their end" \
	sh -c "grep -qx 137 $WORK/statuses && grep -qx 0 $WORK/statuses"
# one at a time: those that share a name are told apart by their numbers as long as they do
others() { names | tr , '\n' | grep -v '^stick$' | head -n 1; }
while name=$(others) && [ -n "$name" ]; do
	"$C" key remove "$store" "$name" --key-file "$WORK/file" --force > /dev/null
done
equal "change: what was left over can be removed" "$(names)" stick

# ---- what others enrolled ----------------------------------------------------------------

printf tpm | cryptsetup luksAddKey "${fast[@]}" --key-slot 5 --key-file "$WORK/file" "$store" -

token='{"type":"systemd-tpm2","keyslots":["5"],"tpm2-blob":"AA==","tpm2-pcrs":[7],"tpm2-policy-hash":"00"}'
cryptsetup token import "$store" <<< "$token"
equal "a TPM2 slot is shown" "$(kind tpm2)" tpm2
other() { cryptsetup luksDump --dump-json-metadata "$store" | jq -c '.tokens[] | select(.type == "systemd-tpm2")'; }
before=$(other)
check "add beside it" "$C" key add "$store" anna --key-file "$WORK/file" --new-passphrase-fd 3 \
	"${quick[@]}" 3<<< five
equal "its token stays as it was" "$(other)" "$before"
check "change: not ours" exits 13 "its kind is tpm2" lines tpm six -- "$C" key change "$store" tpm2
check "its keyslot still opens" stock tpm
check "remove it" lines five -- "$C" key remove "$store" tpm2
equal "its token goes with it" "$(other)" ""

# ---- recovery keys -----------------------------------------------------------------------

said() { grep -o 'Recovery key: .*' | cut -d' ' -f3; }
check "recovery check: there is none" exits 4 "has no recovery key" lines five -- "$C" recovery check "$store"
check "recovery new: wrong secret" exits 3 "wrong secret" lines two -- "$C" recovery new "$store"
first=$(lines five -- "$C" recovery new "$store" | said)
equal "recovery new: its kind" "$(kind recovery)" recovery
check "recovery new: cryptsetup opens with it" stock "$first"
check "recovery check" exits 0 "This recovery key opens" lines "$first" -- "$C" recovery check "$store"
check "recovery check: typed another way" exits 0 "This recovery key opens" \
	lines "$(tr -d - <<< "${first^^}")" -- "$C" recovery check "$store"
check "recovery check: another secret" exits 13 "no recovery key: it is anna" lines five -- "$C" recovery check "$store"
check "recovery check: a wrong one" exits 3 "wrong secret" lines "${first%?}x" -- "$C" recovery check "$store"
check "recovery new: cannot be shown" exits 16 "cannot show" \
	sh -c "echo five | $C recovery new $store > /dev/full"
check "recovery new: then the old one works" stock "$first"
equal "recovery new: and is the only one" "$(names)" anna,recovery,stick
# by the old one itself; read back on a terminal, and not
# (script's own exit status is not to be relied on while it is typed to)
typed() { script -qc "$C recovery new $store --key-file $WORK/file; echo status \$?" /dev/null; }
check "recovery new: not read back" exits 0 "not confirmed" typed < <(for _ in {1..9}; do sleep 1; echo wrong; done)
check "recovery new: not read back: the exit status" grep -q 'status 13' "$WORK/said"
check "recovery new: then the old one works, too" stock "$first"
equal "recovery new: and is the only one, too" "$(names)" anna,recovery,stick
second=$(lines "$first" -- "$C" recovery new "$store" | said)
check "recovery new: the new one opens" stock "$second"
check "recovery new: the old one does not" closed "$first"
equal "recovery new: one replaces the other" "$(names)" anna,recovery,stick
check "recovery new: as JSON" sh -c "echo five | $C recovery new $store --json > $WORK/json"
third=$(jq -r .recovery_key "$WORK/json")
equal "recovery new: JSON says what went" "$(jq .replaced "$WORK/json")" 1
check "recovery remove: proved by itself" exits 13 "is recovery itself" lines "$third" -- "$C" recovery remove "$store"
check "recovery remove" lines five -- "$C" recovery remove "$store"
check "recovery remove: it does not open" closed "$third"
check "recovery remove: the copy of the header is new" copy_current
printf zzzz | cryptsetup luksAddKey "${fast[@]}" --key-slot 6 --key-file "$WORK/file" "$store" -
cryptsetup token import "$store" <<< '{"type":"systemd-recovery","keyslots":["6"]}'
check "a recovery key of systemd's is one" exits 0 "This recovery key opens" lines zzzz -- "$C" recovery check "$store"
check "recovery new: leaves it alone" lines five -- "$C" recovery new "$store"
check "recovery new: it still opens" stock zzzz
check "recovery remove: which" exits 2 "several recovery keys: " lines five -- "$C" recovery remove "$store"

# ---- LUKS1 -----------------------------------------------------------------------------

printf one | cryptsetup luksFormat --type luks1 "${fast[@]}" "$store" -
check "LUKS1: add" lines one two -- "$C" key add "$store" "${quick[@]}"
check "LUKS1: a name" exits 14 "no room for names" lines one three -- "$C" key add "$store" anna
equal "LUKS1: list" "$(names)" slot-0,slot-1
check "LUKS1: change" lines two three -- "$C" key change "$store" slot-1 "${quick[@]}"
check "LUKS1: cryptsetup opens" stock three
check "LUKS1: the old one does not" closed two
check "LUKS1: remove" lines three -- "$C" key remove "$store" slot-0
check "LUKS1: it does not open" closed one
first=$(lines three -- "$C" recovery new "$store" 2> "$WORK/said" | said)
check "LUKS1: a recovery key" exits 0 "This recovery key opens" lines "$first" -- "$C" recovery check "$store"
check "LUKS1: it is removed by its name" lines three -- "$C" key remove "$store" slot-0
check "LUKS1: the last stays" exits 13 "nothing would remain" lines three -- "$C" key remove "$store" "$(names)"

finish
