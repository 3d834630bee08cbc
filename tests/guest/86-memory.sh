#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Memory: what writes in flight may hold is capped, a mapping goes on when another one has
# used the cap up, and swap may not have more in flight than device-mapper allows. How it
# fares with little memory is tests/vm/low-memory.

set -euo pipefail
# shellcheck source=tests/guest/lib.sh
. "$(dirname "$0")/lib.sh"

insmod_coffer
rwflags=$TOOLS/rwflags hog=$TOOLS/hog diffio=$TOOLS/diffio
key=$(hexkey memory 64)
value() { sed -n "s/.*\\b$1=\\([0-9]*\\).*/\\1/p" "$2"; }

# ---- the cap --------------------------------------------------------------------

# 2% of memory; the slack is two reserves of 1 MiB and what else goes on
cap=$(($(awk '/^MemTotal/ { print $2 }' /proc/meminfo) / 50))
mib=$((cap * 5 / 2 / 1024))
slack=16384
slow=$(mkram $((mib + 8)) irqmode=2 completion_nsec=1500000000 hw_queue_depth=1024)
fast=$(mkram 4 irqmode=1)
# null_blk has all its memory from here on
dd if=/dev/zero of="$slow" bs=$((mib + 8))M count=1 oflag=direct status=none
map slow "$COFFER_TARGET" "$AES $key 0 $slow 0 1 sector_size:4096"
map fast "$COFFER_TARGET" "$AES $key 0 $fast 0 1 sector_size:4096"
rm -f "$WORK/flooding"

# capped: more than twice the cap in flight, if it could
capped()
{
	timeout 60 "$rwflags" flood -w -n $mib /dev/mapper/slow | tee "$WORK/flood"
	echo "cap $cap KiB"
	[ "$(value memory_kib "$WORK/flood")" -lt $((cap + slack)) ]
}
check "$mib MiB of writes hold no more than 2% of memory" capped
note "$(cat "$WORK/flood"), cap_kib=$cap"
# the measurement has to see the pages that are held
check "and as much as that: the measurement sees them" \
	[ "$(value memory_kib "$WORK/flood")" -gt $((cap / 2)) ]

# ---- a neighbour that has used it up ------------------------------------------------

timeout 60 "$rwflags" flood -w -n $mib /dev/mapper/slow > "$WORK/flood" 2>&1 &
pid=$!
sleep 1.2
goes_on()
{
	local start end
	kill -0 $pid
	start=$(date +%s%N)
	"$diffio" fill -m "$WORK/model" /dev/mapper/fast
	"$diffio" run -n 40 -b 1048576 -m "$WORK/model" /dev/mapper/fast
	"$diffio" verify -m "$WORK/model" /dev/mapper/fast
	end=$(date +%s%N)
	kill -0 $pid
	echo $(((end - start) / 1000000)) > "$WORK/ms"
}
misses() { dmsetup status fast | sed 's/.*cache_misses \([0-9]*\).*/\1/'; }
before=$(misses)
check "another mapping goes on meanwhile" goes_on
[ "$COFFER_TARGET" != coffer ] ||
	check "from its reserve ($(($(misses) - before)) writes, $(cat "$WORK/ms") ms)" [ "$(misses)" -gt "$before" ]
status=0
wait $pid || status=$?
equal "and the slow one ends well" $status 0
unmap slow
freeram "$slow"

# ---- swap ---------------------------------------------------------------------------

cg=$WORK/cgroup
mkdir "$cg"
mount -t cgroup2 none "$cg"
_undo "swapoff /dev/mapper/swap; rmdir $cg/hog; umount $cg"
echo +memory > "$cg/cgroup.subtree_control"
mkdir "$cg/hog"
param=/sys/module/dm_mod/parameters/swap_bios
_undo "echo $(cat $param) > $param"
# in_cgroup LIMIT COMMAND...
in_cgroup()
{
	echo "$1" > "$cg/hog/memory.max"
	shift
	# shellcheck disable=SC2016
	sh -c 'echo $$ > "$1" && shift && exec "$@"' sh "$cg/hog/cgroup.procs" "$@"
}

slow=$(mkram 64 irqmode=2 completion_nsec=1000000 hw_queue_depth=256)
# a request for each page
echo 2 > "/sys/block/${slow#/dev/}/queue/nomerges"
map swap "$COFFER_TARGET" "$AES $key 0 $slow 0 1 sector_size:4096"
# limited SWAP_BIOS: sets most, the most writes in flight below
limited()
{
	echo "$1" > $param
	mkswap /dev/mapper/swap > /dev/null
	swapon /dev/mapper/swap
	in_cgroup 12M timeout 60 "$hog" 15 0.2 "/sys/block/${slow#/dev/}/inflight" | tee "$WORK/hog"
	swapoff /dev/mapper/swap
	most=$(value inflight "$WORK/hog")
}
# a request is still there, on each CPU, when its bio has made room for the next
edge=$((2 + $(nproc)))
few() { limited 2; [ "$most" -gt 0 ] && [ "$most" -le $edge ]; }
check "swap_bios=2: no more than 2 writes to swap in flight" few
note "swap_bios=2: $(cat "$WORK/hog")"
many() { limited 1024; [ "$most" -le $edge ]; }
control "swap_bios=1024 is more" 1 'inflight=[1-9]' many
note "swap_bios=1024: $(cat "$WORK/hog")"
unmap swap fast
freeram "$slow"
control "a page that has changed by one bit is noticed" 1 'is not what it was' "$hog" flip
finish
