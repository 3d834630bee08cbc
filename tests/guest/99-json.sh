#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# "--json": what each verb of the command prints, where it succeeds and where it fails, is
# what docs/coffer.schema.json says.

set -euo pipefail
# shellcheck source=tests/guest/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/guest/command.sh
. "$(dirname "$0")/command.sh"

insmod_coffer
printed=$WORK/printed
schema() { "$TOP/tests/tool/schema" "$@" 2> /dev/null; }

# json CODE WORD...: the lines on stdin are typed
json()
{
	local want=$1 status=0
	shift
	"$C" "$@" --json > "$WORK/json" 2> "$WORK/said" || status=$?
	cat "$WORK/json" >> "$printed"
	[ $status = "$want" ] || { echo "exit $status, not $want"; cat "$WORK/said" "$WORK/json"; return 1; }
}
# does LINES CODE WORD...: a check; LINES are separated by commas
does()
{
	local lines=${1//,/$'\n'}
	shift
	check "${*//$WORK\//}" json "$@" <<< "$lines"
}
quick=(--unlock-time 2)
store=$(mkram 40)

# ---- an image, and a volume from its first to its last day --------------------------------

does horse 0 image create "$WORK/image" --size 24M "${quick[@]}" --no-recovery
does '' 0 image resize "$WORK/image" --size 28M
does horse 0 format "$store" --yes "${quick[@]}" --label vault
key=$(jq -r .recovery_key "$WORK/json")
does horse 0 open "$store" vault
_undo "dmsetup remove --retry vault"
does '' 0 status
does '' 0 lock vault
does '' 0 status vault
does horse 0 unlock vault
does horse 0 release vault
does horse 0 adopt vault
does horse 0 resize vault
does '' 0 close vault
does '' 0 status "$store"
does '' 0 key list "$store"
does horse,cart 0 key add "$store" travel "${quick[@]}"
does cart 0 key test "$store"
does cart,coach 0 key change "$store" travel "${quick[@]}"
does horse 0 key remove "$store" travel
does "$key" 0 recovery check "$store"
does horse 0 recovery new "$store"
does horse 0 recovery remove "$store"
does '' 0 backup "$store" "$WORK/copy"
does '' 0 repair "$store"
dd if=/dev/zero of="$store" bs=4096 count=1 oflag=direct conv=notrunc status=none
does '' 0 repair "$store" --yes
does '' 0 erase "$store" --yes

# ---- in place ----------------------------------------------------------------------------

other=$(mkram 72)
mkfs.ext4 -q -b 4096 "$other"
does horse 0 enable "$other" --yes "${quick[@]}"
# slow enough to be paused
"$C" disable "$other" --yes --max-rate 1M --json > "$WORK/disable" 2> "$WORK/disable.said" <<< horse &
running=$!
pauses() { for _ in {1..30}; do json 0 pause "$other" && return; sleep 0.3; done; return 1; }
check 'pause' pauses < /dev/null
does '' 0 status "$other"
check 'status tells of the decryption' jq -e '.volumes[0].conversion | .what == "decrypting" and .running' "$WORK/json"
check 'status of all does, too' sh -c "$C status --json | jq -e '.volumes[] | select(.device == \"$other\") | .conversion.what == \"decrypting\"'"
does horse 0 resume "$other" --max-rate 500M
status=0
wait $running || status=$?
cat "$WORK/disable" >> "$printed"
equal 'disable' $status 0

# ---- the machine, and failures ---------------------------------------------------------------

does '' 0 takeover status
does '' 0 doctor
does '' 4 status /dev/nothere
does '' 14 open "$(mkram 1)"
does '' 2 open
does '' 13 format "$store"

# bench takes a minute and takeover wants modules of its own: 95-takeover-tool.sh
others='bench,takeover on,takeover off'
check 'all of it is what the schema says' schema -c "$C" -x "$others" "$printed"
check 'progress is in it' grep -q '"progress"' "$printed"

# ---- can this fail? -----------------------------------------------------------------------

jq -c 'del(.ok)' "$WORK/json" > "$WORK/wrong"
control 'a member that is missing' 1 "'ok' is a required" schema "$WORK/wrong"
jq -c '.secret_key = "x"' "$WORK/json" > "$WORK/wrong"
control 'a member that nobody knows' 1 'secret_key' schema "$WORK/wrong"
jq -c '.error.code = "2"' "$WORK/json" > "$WORK/wrong"
control 'a member of another type' 1 'is not of type' schema "$WORK/wrong"
control 'a verb that was not tried' 1 'bench was not tried' schema -c "$C" "$printed"
finish
