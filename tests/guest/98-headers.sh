#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Headers: "coffer backup", "coffer repair", "coffer erase". Each copy is damaged with dd and
# comes back from the nearest one; what belongs to another disk is refused.

set -euo pipefail
# shellcheck source=tests/guest/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/guest/command.sh
. "$(dirname "$0")/command.sh"

insmod_coffer
store=$(mkram 20)
other=$(mkram 20)
fast=(-q --pbkdf pbkdf2 --pbkdf-force-iterations 1000)

stock() { printf one | cryptsetup open --test-passphrase "$1" -; }
closed() { ! stock "$1"; }
make() { printf one | cryptsetup luksFormat --type "$1" "${fast[@]}" "$2" -; }
# damage DEVICE BYTE COUNT
damage() { head -c "$3" /dev/urandom | dd of="$1" bs=4096 seek="$2" oflag=direct,seek_bytes iflag=fullblock status=none; }
header() { dd if="$1" bs=1M count=16 iflag=direct status=none | sha256sum; }
copies=/var/lib/coffer/headers

# ---- backup ----------------------------------------------------------------------------

make luks2 "$store"
make luks2 "$other"
uuid=$(cryptsetup luksUUID "$store")
check "backup: the automatic one" exits 0 "$copies/$uuid.luks" "$C" backup "$store"
equal "backup: nobody else reads it" "$(stat -c %a "$copies/$uuid.luks")" 600
check "backup: into a file" "$C" backup "$store" "$WORK/copy"
check "backup: the file is a header" cryptsetup isLuks --type luks2 "$WORK/copy"
check "backup: the file is there" exits 15 "it exists" "$C" backup "$store" "$WORK/copy"
"$C" backup "$other" "$WORK/other" > /dev/null
"$C" backup "$store" "$WORK/json.copy" --json > "$WORK/json"
equal "backup: as JSON" "$(jq -r .uuid "$WORK/json")" "$uuid"
whole=$(header "$store")

# ---- repair ----------------------------------------------------------------------------

check "repair: nothing to do" exits 0 "is whole" "$C" repair "$store"
equal "repair: nothing done" "$(header "$store")" "$whole"
damage "$store" 0 4096
check "repair: the first copy" exits 0 "first copy .*was damaged.*from the second" "$C" repair "$store"
check "repair: it opens" stock "$store"
check "repair: it is whole" exits 0 "is whole" "$C" repair "$store"
damage "$store" 16384 4096
check "repair: the second copy" exits 0 "second copy .*was damaged.*from the first" "$C" repair "$store"
check "repair: it is whole again" exits 0 "is whole" "$C" repair "$store"
damage "$store" 4096 4096
check "repair: the first copy's other part" exits 0 "first copy .*was damaged" "$C" repair "$store"

# what names the volume is left: the automatic copy
whole=$(header "$store")
damage "$store" 4096 4096
damage "$store" 20480 4096
check "open: says what to do" exits 9 "coffer repair" "$C" open "$store" y --key-file /dev/null
check "repair: another disk's copy" exits 13 "header of another disk" "$C" repair "$store" --from "$WORK/other"
check "repair: a file that is none" exits 9 "not a whole copy" "$C" repair "$store" --from "$0"
check "repair: no file" exits 4 "cannot read" "$C" repair "$store" --from "$WORK/none"
check "repair: both copies" exits 0 "from the automatic copy $copies/$uuid.luks" "$C" repair "$store"
check "repair: it opens, too" stock "$store"
equal "repair: byte for byte" "$(header "$store")" "$whole"
damage "$store" 4096 4096
damage "$store" 20480 4096
mv "$copies/$uuid.luks" "$WORK/automatic"
check "repair: no copy" exits 9 "there is no $copies/$uuid.luks" "$C" repair "$store"
check "repair: from a file" exits 0 "from the copy $WORK/copy" "$C" repair "$store" --from "$WORK/copy"
check "repair: and there is an automatic copy" cmp "$copies/$uuid.luks" "$WORK/copy"

# nothing is left that names it
damage "$store" 0 1048576
before=$(header "$store")
check "repair: which volume was it" exits 9 "nothing is left" "$C" repair "$store"
check "repair: is it the right one" exits 13 "has to be confirmed" "$C" repair "$store" --from "$WORK/copy"
equal "repair: what is refused writes nothing" "$(header "$store")" "$before"
check "repair: yes" "$C" repair "$store" --from "$WORK/copy" --yes
check "repair: yes: it opens" stock "$store"

# keyslots are no part of the check: a header that is whole is replaced when asked
damage "$store" 32768 262144
check "a damaged keyslot" closed "$store"
check "repair: a whole header is not replaced unasked" exits 13 "has to be confirmed" \
	"$C" repair "$store" --from "$WORK/copy"
check "repair: nor by another disk's" exits 13 "another disk" "$C" repair "$store" --from "$WORK/other" --yes
check "repair: a keyslot" "$C" repair "$store" --from "$WORK/copy" --yes
check "repair: a keyslot: it opens" stock "$store"

# in use
printf one | "$C" open "$store" y > /dev/null
_undo "dmsetup remove --retry y"
damage "$store" 0 1048576
check "repair: open: another disk's" exits 13 "another disk" "$C" repair y --from "$WORK/other" --yes
check "repair: open: the mapping says which" exits 0 "automatic copy" "$C" repair y --yes
check "repair: open: the volume works" dd if=/dev/mapper/y of=/dev/null bs=4096 count=1 iflag=direct
check "erase: open" exits 5 "it is open as y" "$C" erase "$store" --yes
"$C" close y > /dev/null
check "repair: open: it opens" stock "$store"

# while a conversion has its header elsewhere
damage "$store" 0 1048576
mkdir -p /var/lib/coffer/convert
printf '{"device":"%s","size":"%d","stage":"decrypt"}\n' "$store" $((20 << 20)) \
	> "/var/lib/coffer/convert/$uuid.json"
check "repair: a conversion has not ended" exits 5 "conversion has not ended" "$C" repair "$store" --from "$WORK/copy" --yes
check "erase: a conversion has not ended" exits 5 "conversion has not ended" "$C" erase "$store" --yes
rm -r /var/lib/coffer/convert
"$C" repair "$store" --from "$WORK/copy" --yes > /dev/null

# LUKS1 has one copy
make luks1 "$other"
"$C" backup "$other" > /dev/null
damage "$other" 512 3584
check "LUKS1: is it damaged" closed "$other"
damage "$other" 8192 4096
dd if=/dev/zero of="$other" bs=1 count=8 seek=40 conv=notrunc status=none
check "LUKS1: repair" exits 0 "automatic copy" "$C" repair "$other"
check "LUKS1: it opens" stock "$other"

# ---- erase -----------------------------------------------------------------------------

before=$(header "$store")
check "erase: asks" exits 13 "has to be confirmed" "$C" erase "$store"
equal "erase: and writes nothing" "$(header "$store")" "$before"
typed() { script -qc "$C erase $store; echo status \$?" /dev/null < <(sleep 2; echo "$1"; sleep 2); }
check "erase: asked, no" exits 0 "Everything on .*20 MiB.*unreadable" typed no
check "erase: no: the exit status" grep -q 'status 13' "$WORK/said"
equal "erase: no: nothing is written" "$(header "$store")" "$before"
check "erase" exits 0 "elsewhere still opens" "$C" erase "$store" --yes
equal "erase: no header is left" "$(dd if="$store" bs=1M count=16 iflag=direct status=none | tr -d '\0' | wc -c)" 0
check "erase: nor the automatic copy" test ! -e "$copies/$uuid.luks"
check "erase: it does not open" exits 14 "not an encrypted volume" "$C" open "$store" y --key-file /dev/null
check "erase: what is not encrypted" exits 14 "not an encrypted volume" "$C" erase "$store" --yes
check "erase: another volume is as it was" stock "$other"
check "erase: a copy elsewhere still opens the disk" "$C" repair "$store" --from "$WORK/copy" --yes
check "erase: which is to be known" stock "$store"
damage "$store" 4096 4096
damage "$store" 20480 4096
check "erase: a damaged header" "$C" erase "$store" --yes
check "erase: LUKS1" "$C" erase "$other" --yes
check "erase: LUKS1: it does not open" closed "$other"

finish
