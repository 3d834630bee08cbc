# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# What the scripts that test the command share. Sourced after lib.sh; ends the script where
# another target is under test, or the command is not built.

COFFER=$TOP/build/userspace/coffer
C=$COFFER
if [ "$COFFER_TARGET" != coffer ] || [ ! -x "$C" ]; then
	skip "all" "build/userspace/coffer is not built, or another target is tested"
	finish
	exit 0
fi
mkdir -p /run/cryptsetup

# for what takes minutes under emulation: ends the script, but in make check-all
only_in_check_all()
{
	[ -z "${COFFER_ALL:-}" ] || return 0
	skip "all" "several minutes under emulation; make check-all runs it"
	finish
	exit 0
}

# exits CODE PATTERN COMMAND...: for `check`; the command's words match PATTERN
exits()
{
	local want=$1 pattern=$2 status=0
	shift 2
	"$@" > "$WORK/said" 2>&1 || status=$?
	cat "$WORK/said"
	[ $status = "$want" ] || { echo "exit $status, not $want"; return 1; }
	grep -Eq -- "$pattern" "$WORK/said" || { echo "no '$pattern'"; return 1; }
}

coffer() { "$COFFER" "$@"; }
# with the right secret, a wrong one, and with nobody to ask
pw=$WORK/passphrase
echo 'correct horse' > "$pw"
right() { coffer "$@" < "$pw"; }
wrong() { echo 'correct house' | coffer "$@"; }
alone() { coffer "$@" < /dev/null; }

# Mappings, by name
size_of() { sectors "/dev/mapper/$1"; }
target_of() { dmsetup table "$1" | cut -d' ' -f3; }
running() { ! dmsetup info "$1" | grep -q SUSPENDED; }
stopped() { ! running "$1"; }
active_only() { [ "$(dmsetup info -c --noheadings -o tables_loaded "$1")" = Live ]; }
sum() { timeout 60 dd if="/dev/mapper/$1" bs=1M iflag=direct status=none | sha256sum; }
no_keys() { ! grep -E 'logon.*cryptsetup:' /proc/keys; }
nr_loops() { losetup -l --noheadings | wc -l; }

# load NAME: writes and reads that are verified, in the background, until calm; busy: they
# run. calm NAME reports whether they were right, and must be called by the script itself, whose
# child they are.
load()
{
	rm -f "$WORK/calm"
	while [ ! -e "$WORK/calm" ]; do
		fio --name=load --filename="/dev/mapper/$1" --rw=randwrite --bs=16k --size=8m --direct=1 \
			--ioengine=libaio --iodepth=8 --verify=crc32c --verify_backlog=64 \
			--verify_fatal=1 --time_based --runtime=3 > "$WORK/fio.log" 2>&1 || exit
	done &
	load=$!
	sleep 1
}
busy() { kill -0 "$load"; }
calm()
{
	local status=0
	touch "$WORK/calm"
	wait "$load" || status=$?
	equal "$1" "exit $status, $(grep -c 'err= 0' "$WORK/fio.log") good" 'exit 0, 1 good'
}
