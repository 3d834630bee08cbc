#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The command coffer: enable and disable, a file system of 160 MiB there and back, cut off
# on the way. Checksums of all files are right at the end of each. Long: with COFFER_ALL.

set -euo pipefail
# shellcheck source=tests/guest/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/guest/command.sh
. "$(dirname "$0")/command.sh"
only_in_check_all

insmod_coffer
modprobe ext4
mkdir -p "$WORK/m"
store=$(mkram 160)
disk=$WORK/store.before

cof() { printf 'correct horse\n' | "$C" "$@"; }
# files_right DEVICE
files_right()
{
	mount "$1" "$WORK/m" || return
	(cd "$WORK/m" && sha256sum -c --quiet "$WORK/sums")
	local status=$?
	umount "$WORK/m" && return $status
}
opened_right()
{
	cof open "$store" conv || return
	files_right /dev/mapper/conv
	local status=$?
	"$C" close conv && return $status
}

mkfs.ext4 -q -b 4096 "$store"
mount "$store" "$WORK/m"
for i in $(seq 1 20); do head -c 2000000 /dev/urandom > "$WORK/m/f$i"; done
(cd "$WORK/m" && sha256sum f*) > "$WORK/sums"
umount "$WORK/m"
check "control: the checksums are right before" files_right "$store"
(cd "$WORK" && sed 's/^...../00000/' sums > sums.bad)
control "a changed file is noticed" 1 FAILED sh -c "mount $store $WORK/m; cd $WORK/m; sha256sum -c --quiet $WORK/sums.bad; s=\$?; cd /; umount $WORK/m; exit \$s"

# ---- refusals, before anything is written -------------------------------------------------

sha256sum < "$store" > "$disk"
check "needs a yes" exits 13 "confirmed on a terminal" cof enable "$store"
check "unknown content" exits 13 "no known file system" cof enable "$(mkram 80)" --yes
check "resume of what is not converted" exits 14 "not an encrypted volume" cof resume "$store"
check "disable of what is not encrypted" exits 14 "not an encrypted volume" cof disable "$store" --yes
equal "nothing was written" "$(sha256sum < "$store")" "$(cat "$disk")"

# ---- there, killed three times ---------------------------------------------------------------

killed()
{
	local pid
	"$@" < "$WORK/secret" > "$WORK/said" 2>&1 &
	pid=$!
	sleep "$delay"
	kill -9 $pid 2> /dev/null || true
	wait $pid 2> /dev/null || true
}
printf 'correct horse\n' > "$WORK/secret"
delay=9
killed "$C" enable "$store" --yes --unlock-time 50 --no-recovery
for delay in 3 5; do
	if cryptsetup isLuks "$store"; then killed "$C" resume "$store"; fi
done
if cryptsetup isLuks "$store"; then
	"$C" status "$store" --json > "$WORK/json" || true
	check "status tells how far it is" jq -e '.volumes[0].conversion.what == "encrypting"' "$WORK/json"
	check "goes on after three kills" cof resume "$store"
else
	check "begins again when it had not begun" cof enable "$store" --yes --unlock-time 50 --no-recovery
fi
check "the files are right" opened_right
check "cryptsetup opens it" sh -c "printf 'correct horse' | cryptsetup open $store x - && cryptsetup close x"
check "no journal is left" sh -c "! ls /var/lib/coffer/convert/* 2> /dev/null"
check "nothing reads as the file system any more" sh -c "! blkid -p $store | grep -q ext4"

# ---- and back, killed once --------------------------------------------------------------------

delay=4
killed "$C" disable "$store" --yes
check "disable goes on after a kill" cof disable "$store" --yes
check "the files are right again" files_right "$store"
check "no journal is left" sh -c "! ls /var/lib/coffer/convert/* 2> /dev/null"
check "the file system fills the device again" \
	sh -c "[ \$(dumpe2fs -h $store 2> /dev/null | sed -n 's/^Block count: *//p') = 40960 ]"

# ---- mounted -------------------------------------------------------------------------------------

mount "$store" "$WORK/m"
(while [ -e "$WORK/m/f1" ] || [ ! -e "$WORK/stop" ]; do
	date > "$WORK/m/log" 2> /dev/null || true
	[ -e "$WORK/stop" ] && break
	sleep 0.2
done) &
writer=$!
check "a mounted file system, in use" cof enable "$store" --yes --unlock-time 50 --no-recovery
touch "$WORK/stop"
wait $writer || true
check "it is mounted on the open volume" sh -c "grep -q '^/dev/mapper/.* $WORK/m ' /proc/mounts"
check "its files are right" sh -c "cd $WORK/m && sha256sum -c --quiet $WORK/sums"
umount "$WORK/m"
check "close" "$C" close --all
check "and right when it is opened again" opened_right

finish
