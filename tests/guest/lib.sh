# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash disable=SC2034 # variables for the scripts
#
# What the test scripts share: report lines, devices, mappings, and their
# removal when a script ends however it ends.
#
# A script sources this, does its checks and calls `finish` as its last
# command; one that does not get there has failed, whatever its exit status.
# Results go to stdout and to $RESULTS, one line each:
#   ok - NAME | not ok - NAME: WHY | skip - NAME: WHY
#
# COFFER_TARGET is the target under test: coffer, or crypt, so that dm-crypt can
# stand in for it (the tests themselves are tested that way).

: "${COFFER_TARGET:=coffer}"
: "${COFFER_OUT:=/tmp}"
: "${COFFER_KERNEL:=$(uname -r | cut -d. -f1-2)}"
: "${RESULTS:=$COFFER_OUT/results}"
export DM_DISABLE_UDEV=1 COFFER_TARGET COFFER_OUT COFFER_KERNEL RESULTS

TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
TOOLS=$TOP/build/tools
SCRIPT=$(basename "${0%.sh}")
WORK=$(mktemp -d "${TMPDIR:-/tmp}/$SCRIPT.XXXXXX")
: > "$WORK/undo"

# ---- report --------------------------------------------------------------

exec {_results}>> "$RESULTS"
_line() { printf '%s\n' "$1"; printf '%s\n' "$1" >&$_results; }
ok() { _line "ok - $SCRIPT: $1"; }
not_ok() { _line "not ok - $SCRIPT: $1: ${2:-}"; }
skip() { _line "skip - $SCRIPT: $1: ${2:-}"; }
note() { printf '# %s\n' "$*"; }

# check NAME COMMAND...: ok if the command exits 0
check()
{
	local name=$1 status=0
	shift
	# not in a condition: errexit has to work inside a function that is checked
	set +e
	(set -e; "$@") > "$WORK/check.log" 2>&1
	status=$?
	set -e
	if [ $status -eq 0 ]; then
		ok "$name"
	else
		not_ok "$name" "exit $status: $(tail -n 4 "$WORK/check.log" | tr '\n' ' ')"
	fi
}

# control NAME STATUS PATTERN COMMAND...: a negative control. The checker must exit
# with STATUS and say PATTERN, or it cannot be trusted.
control()
{
	local name="control: $1" want=$2 pattern=$3 status=0
	shift 3
	set +e
	(set -e; "$@") > "$WORK/check.log" 2>&1
	status=$?
	set -e
	if [ $status -ne "$want" ]; then
		not_ok "$name" "exit $status, not $want: $(tail -n 2 "$WORK/check.log" | tr '\n' ' ')"
	elif ! grep -Eq -- "$pattern" "$WORK/check.log"; then
		not_ok "$name" "failed for another reason: $(tail -n 2 "$WORK/check.log" | tr '\n' ' ')"
	else
		ok "$name"
	fi
}

# equal NAME GOT WANT
equal()
{
	if [ "$2" = "$3" ]; then
		ok "$1"
	else
		not_ok "$1" "got '$2', want '$3'"
	fi
}

finish() { echo finished > "$WORK/finished"; }

# ---- cleaning up -----------------------------------------------------------

# A file, not an array: mkram and map also run in subshells.
_undo() { printf '%s\n' "$1" >> "$WORK/undo"; }

_cleanup()
{
	local status=$? cmd
	set +e
	cd /
	# what stands there more than once is undone where it was done last
	tac "$WORK/undo" | awk '!seen[$0]++' > "$WORK/undo.now"
	while read -r cmd; do
		eval "$cmd" > /dev/null 2>&1
	done < "$WORK/undo.now"
	[ -e "$WORK/finished" ] || [ $status -ne 0 ] || status=99
	rm -rf "$WORK"
	exit $status
}
trap _cleanup EXIT

# ---- modules and devices ---------------------------------------------------

insmod_coffer()
{
	modprobe dm_crypt
	[ "$COFFER_TARGET" = coffer ] || return 0
	grep -q '^dm_coffer ' /proc/modules || insmod "$COFFER_MODULE"
}

# The module that the target under test lives in, as in /sys/module
case $COFFER_TARGET in
coffer) MODULE=dm_coffer ;;
*) MODULE=dm_crypt ;;
esac

# mkram SIZE_MIB [ATTRIBUTE=VALUE...]: a null_blk device that keeps its data in memory.
# Attributes are null_blk's: blocksize, discard, max_sectors, virt_boundary,
# irqmode (1 completes in softirq, 2 in a timer's hard irq), cache_size, ...
mkram()
{
	local mib=$1 n=0 dir attr dev
	shift
	modprobe -q configfs
	[ -d /sys/module/null_blk ] || modprobe null_blk nr_devices=0
	[ -d /sys/kernel/config/nullb ] || mount -t configfs none /sys/kernel/config
	while ! mkdir "/sys/kernel/config/nullb/coffer$n" 2> /dev/null; do
		n=$((n + 1))
		[ $n -lt 100 ] || { echo "mkram: no null_blk" >&2; return 1; }
	done
	dir=/sys/kernel/config/nullb/coffer$n
	_undo "rmdir $dir"
	echo "$mib" > $dir/size
	echo 1 > $dir/memory_backed
	for attr in "$@"; do
		if [ ! -e "$dir/${attr%%=*}" ]; then
			echo "mkram: this null_blk knows no ${attr%%=*}" >&2
			return 1
		fi
		echo "${attr#*=}" > "$dir/${attr%%=*}"
	done
	echo 1 > $dir/power
	_undo "echo 0 > $dir/power"
	dev=/dev/coffer$n		# newer kernels: the directory's name
	[ -b "$dev" ] || dev=/dev/nullb$(cat $dir/index)
	[ -b "$dev" ] || { echo "mkram: no $dev" >&2; return 1; }
	echo "$dev"
}

freeram()
{
	local dir n
	n=${1#/dev/coffer}
	[ "$n" != "$1" ] || n=$(grep -lx "${1#/dev/nullb}" /sys/kernel/config/nullb/coffer*/index |
		sed 's/.*coffer\([0-9]*\).*/\1/')
	dir=/sys/kernel/config/nullb/coffer$n
	echo 0 > "$dir/power"
	rmdir "$dir"
}

# mkbrd: one of four RAM disks of 20 MiB; brd completes I/O inside the submission.
# Their content lasts from script to script.
mkbrd()
{
	local n=0
	[ -d /sys/module/brd ] || modprobe brd rd_nr=4 rd_size=20480
	while ! mkdir "$WORK/../brd.$n" 2> /dev/null; do
		n=$((n + 1))
		[ $n -lt 4 ] || { echo "mkbrd: all in use" >&2; return 1; }
	done
	_undo "rmdir $WORK/../brd.$n"
	[ -b /dev/ram$n ] || { echo "mkbrd: no /dev/ram$n" >&2; return 1; }
	echo /dev/ram$n
}

# The size of a block device in sectors
sectors()
{
	local n file=/sys/class/block/${1##*/}/size
	if [ -e "$file" ]; then
		read -r n < "$file"
		echo "$n"
	else
		blockdev --getsz "$1"
	fi
}

# Direct I/O of a file's content: put FILE DEVICE OFFSET [BYTES]; is likewise, and fails
# unless it stands there. Offsets in bytes.
put() { "$TOOLS/diffio" put "$2" "$3" "$1" ${4:+"$4"}; }
is() { "$TOOLS/diffio" is "$2" "$3" "$1" ${4:+"$4"}; }
# and the bytes themselves: get DEVICE OFFSET BYTES
get() { dd if="$1" bs="$3" skip="$2" count=1 iflag=direct,skip_bytes,fullblock status=none; }

# map NAME TARGET 'CIPHER KEY IV_OFFSET DEVICE START [OPTIONS]' [SECTORS] [dmsetup option...]:
# without SECTORS, from START to the end of DEVICE
map()
{
	local name=$1 target=$2 params=$3 len=${4:-} f
	shift $(($# < 4 ? 3 : 4))
	if [ -z "$len" ]; then
		read -ra f <<< "$params"
		len=$(($(sectors "${f[3]}") - f[4]))
	fi
	# said here, since errexit is off where somebody asks for the status
	dmsetup create "$name" "$@" --table "0 $len $target $params" || return
	_undo "dmsetup remove --retry $name"
}

unmap()
{
	local name
	for name in "$@"; do
		dmsetup remove --retry "$name"
	done
}

# hexkey SEED BYTES: a key that is the same in every run
hexkey() { printf '%s' "$1" | sha512sum | cut -c1-$(($2 * 2)); }

# unhex HEX: the bytes
unhex()
{
	local i text=''
	for ((i = 0; i < ${#1}; i += 2)); do text+="\\x${1:i:2}"; done
	printf '%b' "$text"
}

# logon_key DESCRIPTION HEX [TYPE]: into the user keyring, as raw bytes
logon_key() { unhex "$2" | keyctl padd "${3:-logon}" "$1" @u > /dev/null; }

AES=aes-xts-plain64
