#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The command on a terminal: prompts, echo, Ctrl-C, the recovery key read back, the bar.

set -euo pipefail
# shellcheck source=tests/guest/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/guest/command.sh
. "$(dirname "$0")/command.sh"

insmod_coffer
store=$(mkram 72)
terminal() { timeout -k 5 180 "$TOP/tests/tool/terminal" "$@"; }

check 'no, nonsense and the end of input: nothing is written' terminal "$C" "$store" refusals
check 'Ctrl-C: the terminal is put right, nothing is written' terminal "$C" "$store" interrupts
check 'format: passphrase twice, recovery key read back' terminal "$C" "$store" format
check 'no control characters into a file' terminal "$C" "$store" plain
mkfs.ext4 -q -F -b 4096 "$store"
check 'a bar with rate and time' terminal "$C" "$store" progress

# ---- can these fail? ---------------------------------------------------------

export COFFER_PATIENCE=10

# a command that shows what is typed, and one that loses the echo
cat > "$WORK/loud" <<-END
	#!/bin/bash
	echo "$store 72 MiB"; read -rp 'Type yes to go ahead: '; echo 'New passphrase: '; read -r
END
sed 's/; read -r$/; stty -echo; read -r; echo interrupted; exit 17/; s/^read/trap "" INT QUIT TSTP; read/' "$WORK/loud" > "$WORK/deaf"
chmod +x "$WORK/loud" "$WORK/deaf"
control 'a secret that is shown' 1 'would be shown' terminal "$WORK/loud" "$store" format
sed -i 's/stty -echo; read -r;/stty -echo; trap "echo interrupted; exit 17" INT; read -r;/' "$WORK/deaf"
control 'a terminal that is left without echo' 1 'left without echo|no .interrupted' terminal "$WORK/deaf" "$store" interrupts
finish
