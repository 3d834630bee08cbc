#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Run by tests/vm/low-memory in a machine with little memory: /dev/vda for swap, /dev/vdb
# for data, /dev/vdc and vdd two disks that take two segments in a request.
#
# Swap on the target while a program uses more memory than there is and others write
# directly and through the cache: everything must get on, nobody be killed, every page
# come back as it was. A task that hangs for 20 s fails the run through the kernel's log.

set -euo pipefail
# shellcheck source=tests/guest/lib.sh
. "$(dirname "$0")/lib.sh"

insmod_coffer
key=$(hexkey low 64)
seed=${COFFER_SEED:-$(date +%s)}
seconds=${1:-8}
diffio=$TOOLS/diffio hog=$TOOLS/hog model=$WORK/model
note "seed $seed"

total=$(awk '/^MemTotal/ { print int($2 / 1024) }' /proc/meminfo)
note "$total MiB of memory"
check "there is little memory" [ "$total" -lt 200 ]
echo 20 > /proc/sys/kernel/hung_task_timeout_secs
echo 60 > /proc/sys/vm/dirty_ratio

map swap "$COFFER_TARGET" "$AES $key 0 /dev/vda 0 1 sector_size:4096"
map direct "$COFFER_TARGET" "$AES $key 0 /dev/vdb 0" 32768
map cached "$COFFER_TARGET" "$AES $key 0 /dev/vdb 32768 1 sector_size:4096"
mkswap /dev/mapper/swap > /dev/null
swapon /dev/mapper/swap
_undo "swapoff /dev/mapper/swap"

stat() { awk -v what="$1" '$1 == what { print $2 }' /proc/vmstat; }
out=$(stat pswpout) in=$(stat pswpin)

# Each writes its count to a file, so that a standstill can be seen from outside.
directly()
{
	local n=0
	"$diffio" fill -s "$seed" -m "$model" /dev/mapper/direct
	while [ ! -e "$WORK/stop" ]; do
		"$diffio" run -s $((seed + n)) -n 16 -q 8 -b 1048576 -m "$model" /dev/mapper/direct
		echo $((++n)) > "$WORK/directly"
	done
	"$diffio" verify -m "$model" /dev/mapper/direct
}
# 16 MiB that a number tells
stream()
{
	head -c 16777216 /dev/zero |
		openssl enc -aes-128-ctr -nosalt -K "$(printf %032x "$1")" -iv "$(printf %032x 0)"
}
through_cache()
{
	local n=0
	while [ ! -e "$WORK/stop" ]; do
		stream $((++n)) > /dev/mapper/cached
		echo $n > "$WORK/through_cache"
	done
	sync
	echo 3 > /proc/sys/vm/drop_caches
	head -c 16777216 /dev/mapper/cached | sha256sum > "$WORK/sum"
	stream $n | sha256sum | cmp "$WORK/sum"
	# and not as any other round left it
	! stream $((n - 1)) | sha256sum | cmp -s "$WORK/sum"
}
echo 0 > "$WORK/directly"
echo 0 > "$WORK/through_cache"
(set -e; directly) > "$WORK/directly.log" 2>&1 &
direct=$!
(set -e; through_cache) > "$WORK/through_cache.log" 2>&1 &
cached=$!

dmesg -c > /dev/null
"$hog" $((total * 5 / 4)) "$seconds" > "$WORK/hog" 2>&1 &
pid=$!
# the longest that nobody got on at all
last='' since=$SECONDS longest=0
while kill -0 $pid 2> /dev/null; do
	now="$(stat pswpout) $(stat pswpin) $(cat "$WORK/directly" "$WORK/through_cache")"
	[ "$now" = "$last" ] || since=$SECONDS
	last=$now
	[ $((SECONDS - since)) -le $longest ] || longest=$((SECONDS - since))
	sleep 1
done
status=0
wait $pid || status=$?
touch "$WORK/stop"
equal "a quarter more memory than there is: every page as it was" "$status $(grep -v ^checked "$WORK/hog" || true)" "0 "
status=0
wait $direct || status=$?
equal "direct writes meanwhile: the data ($(cat "$WORK/directly") rounds)" "$status" 0
[ $status = 0 ] || note "$(tail -n 3 "$WORK/directly.log")"
status=0
wait $cached || status=$?
equal "writes through the cache meanwhile: the data ($(cat "$WORK/through_cache") rounds)" "$status" 0
[ $status = 0 ] || note "$(tail -n 3 "$WORK/through_cache.log")"
out=$(($(stat pswpout) - out)) in=$(($(stat pswpin) - in))
note "$(cat "$WORK/hog"); swapped out $out pages, in $in; longest standstill $longest s"
check "swap was used" [ $out -gt 20000 -a $in -gt 5000 ]
check "nothing stood still for 10 s" [ $longest -lt 10 ]
check "direct writes got on" [ "$(cat "$WORK/directly")" -gt 2 ]
check "cached writes got on" [ "$(cat "$WORK/through_cache")" -gt 0 ]
dmesg > "$WORK/dmesg"
equal "nobody was killed, no allocation failed" \
	"$(grep -Ec 'oom-kill|Out of memory|page allocation failure|blocked for more' "$WORK/dmesg" || true)" 0
check "swapoff" timeout 60 swapoff /dev/mapper/swap
note "$(dmsetup status swap)"
unmap swap direct cached

# ---- two segments in a request -------------------------------------------------------

for d in vdc vdd; do
	equal "/dev/$d takes two segments" "$(cat /sys/block/$d/queue/max_segments)" 2
done
echo 8 > /proc/sys/vm/nr_hugepages
for unit in 512 4096; do
	twins()
	{
		local len=16384
		map ref crypt "$AES $key 0 /dev/vdc 0 1 sector_size:$unit" $len
		map dut "$COFFER_TARGET" "$AES $key 0 /dev/vdd 0 1 sector_size:$unit" $len
		rm -f "$model"
		"$diffio" fill -s "$seed" -m "$model" /dev/mapper/ref /dev/mapper/dut
		"$diffio" run -s "$seed" -n 40 -b 2097152 -m "$model" /dev/mapper/ref /dev/mapper/dut
		"$diffio" run -s "$seed" -n 80 -q 8 -b 524288 -m "$model" /dev/mapper/ref /dev/mapper/dut
		"$diffio" verify -m "$model" /dev/mapper/ref /dev/mapper/dut
		unmap ref dut
		"$diffio" same /dev/vdc /dev/vdd
	}
	check "two segments, unit $unit: the same as dm-crypt" twins
done
finish
