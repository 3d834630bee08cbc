# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# To be sourced from the project's root: what `run` and `insn` share, the plan
# of the runs and facts for the record. Reads VARIANTS, UNITS, COFFER_MODULE.

die() { echo "$(basename "$0"): $*" >&2; exit 1; }

# each_variant "ROUND JOB ENGINE DEPTH" IOS: one line of the plan for each
# variant, with each data unit where it has one.
each_variant()
{
	local variant unit
	for variant in $VARIANTS; do
		case $variant in
		raw | linear) echo "$1 $variant 0 $2" ;;
		*) for unit in $UNITS; do echo "$1 $variant $unit $2"; done ;;
		esac
	done
}

# need_coffer TARGET: bring $COFFER_MODULE up to date, if it is to be measured.
# Leaving coffer out because the module is not there has to be asked for.
need_coffer()
{
	[[ " $VARIANTS " == *" coffer "* ]] || return 0
	if [ -z "${ALLOW_NO_COFFER-}" ]; then
		make --no-print-directory "$1" >&2 || die "the module does not build"
		[ -f "$COFFER_MODULE" ] || die "make $1 left no $COFFER_MODULE"
	elif [ ! -f "$COFFER_MODULE" ]; then
		echo "$(basename "$0"): no $COFFER_MODULE: COFFER IS LEFT OUT" >&2
		VARIANTS=$(tr ' ' '\n' <<< "$VARIANTS" | grep -vx coffer | xargs)
	fi
}

# fresh DIR: empty, so that no older result can pass for a new one
fresh()
{
	rm -rf "$1"
	mkdir -p "$1"
}

commit()
{
	local dirty=
	git diff --quiet HEAD 2> /dev/null || dirty=+
	echo "$(git rev-parse --short -q --verify HEAD || echo none)$dirty"
}

qemu_version()
{
	local qemu=${XDG_CACHE_HOME:-$HOME/.cache}/coffer/qemu/bin/qemu-system-x86_64
	[ -x "$qemu" ] || qemu="qemu-system-x86_64"
	"$qemu" --version | sed -n '1s/^QEMU emulator version //p'
}

iec() { numfmt --from=iec "$1"; }
