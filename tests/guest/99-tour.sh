#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The README's tour of the command, line by line as it stands there, by somebody who has nothing
# but the README. What is typed at a prompt is the passphrase.

set -euo pipefail
# shellcheck source=tests/guest/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/guest/command.sh
. "$(dirname "$0")/command.sh"

insmod_coffer

# the indented lines below a heading, without comments
tour() # HEADING < README
{
	awk -v heading="## $1" '$0 == heading { on = 1; next } on && /^## / { exit } on && /^    / {
		sub(/^    /, ""); sub(/ +# .*/, ""); print }'
}
# sudo and make are not in the machine; what make makes is there
sudo() { [ "$1" = make ] || "$@"; }
coffer() { timeout -k 5 120 "$TOP/tests/tool/terminal" run "$TOP/build/userspace/coffer" "$@"; }
walk() # NAME: the lines on stdin
{
	local line said
	said=$WORK/said
	while read -r line <&3; do
		# shellcheck disable=SC2016 # a name of the reader's
		if eval "$line" > "$said" 2>&1 < /dev/null; then
			ok "$1: $line"
		else
			not_ok "$1: $line" "$(tr '\n' ' ' < "$said")"
		fi
		cat "$said" >> "$WORK/all"
	done
}
cd "$TOP"
tour 'The command, on an image file in five minutes' < README.md > "$WORK/tour"
check 'the README has the tour' test "$(grep -c coffer "$WORK/tour")" -ge 5
cd "$WORK"
grep -v '^alias coffer=' "$WORK/tour" > "$WORK/lines"
check 'it says how to call the command' test "$(wc -l < "$WORK/lines")" = $(($(wc -l < "$WORK/tour") - 1))
_undo "dmsetup remove --retry vault_crypt"
walk tour 3< "$WORK/lines"
check 'it showed a recovery key' grep -Eq '([a-z]{6}-){5}[a-z]{6}' "$WORK/all"
check 'it showed the volume' grep -q 'vault_crypt: .*open' "$WORK/all"
check 'nothing stays open' sh -c '! dmsetup ls | grep vault'
equal 'nor a loop device' "$(losetup -l --noheadings | wc -l)" 0

# ---- can this fail? ------------------------------------------------------------------
(
	not_ok() { echo "not ok - $1"; }
	echo 'coffer open nothere.img' > "$WORK/lines"
	walk control 3< "$WORK/lines"
) > "$WORK/control"
check 'control: a line that does not work is noticed' grep -qx 'not ok - control: coffer open nothere.img' "$WORK/control"
finish
