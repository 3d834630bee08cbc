#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Polled I/O: the submitter asks the device until it is done, and no interrupt tells it.
# A null_blk with poll queues completes such a request to a poller only, else it times
# out: so an I/O that ends well and in time was polled through the mapping. That it went
# to a poll queue at all is counted by a probe on null_blk's poll function.

set -euo pipefail
# shellcheck source=tests/guest/lib.sh
. "$(dirname "$0")/lib.sh"

insmod_coffer
tracing=/sys/kernel/tracing
key=$(hexkey polled 64)

# short time-outs, so that what nobody polls for fails soon
polling() # ATTRIBUTE...
{
	local dev
	dev=$(mkram 16 poll_queues=1 max_sectors=2048 "$@")
	echo 1000 > "/sys/block/${dev#/dev/}/queue/io_timeout"
	echo "$dev"
}

# how many requests pollers have completed since polls was last called
_undo "echo > $tracing/kprobe_events"
_undo "echo 0 > $tracing/events/kprobes/coffer_poll/enable"
# shellcheck disable=SC2016
echo 'r:coffer_poll null_poll completed=$retval:u32' > $tracing/kprobe_events
echo 'completed > 0' > $tracing/events/kprobes/coffer_poll/filter
echo 1 > $tracing/events/kprobes/coffer_poll/enable
polls()
{
	sed -n 's/.* completed=\([0-9]*\).*/\1/p' $tracing/trace | awk '{ n += $1 } END { print n + 0 }'
	: > $tracing/trace
}

# run DEVICE HIPRI FIO-OPTION...: sets ios (requests), polled (of them) and usec (median)
run()
{
	local dev=$1 hipri=$2 status
	shift 2
	polls > /dev/null
	timeout -k 5 60 fio --name=polled --filename="$dev" --direct=1 --ioengine=io_uring \
		--hipri="$hipri" --size=16M --thread --output-format=json --output="$WORK/fio" \
		"$@" > "$WORK/fio.err" 2>&1 || { status=$?; cat "$WORK/fio.err"; return $status; }
	# fio puts a warning in front
	sed -i -n '/^{/,$p' "$WORK/fio"
	polled=$(polls)
	ios=$(jq '.jobs[0] | .read.total_ios + .write.total_ios' "$WORK/fio")
	usec=$(jq '.jobs[0] | [.read, .write] | map(select(.total_ios > 0) | .lat_ns.mean) |
		max / 1000 | floor' "$WORK/fio")
}

# completes DEVICE HIPRI FIO-OPTION...: without error, and polled if it should be
completes()
{
	run "$@"
	echo "$polled of $ios requests polled"
	case $2 in
	1) [ "$polled" -ge "$ios" ] ;;
	0) [ "$polled" = 0 ] ;;
	esac
}

soft=$(polling irqmode=1)
timer=$(polling irqmode=2 completion_nsec=10000)
none=$(mkram 16 poll_queues=0)
map soft "$COFFER_TARGET" "$AES $key 0 $soft 0 1 sector_size:4096"
map timer "$COFFER_TARGET" "$AES $key 0 $timer 0"
map none "$COFFER_TARGET" "$AES $key 0 $none 0"

dm() { dmsetup info -c --noheadings -o blkdevname "$1"; }
for name in soft timer; do
	equal "$name: the mapping offers polling" "$(cat "/sys/block/$(dm $name)/queue/io_poll")" 1
done
equal "a device without poll queues: no polling" "$(cat "/sys/block/$(dm none)/queue/io_poll")" 0

verify=(--verify=crc32c --verify_fatal=1)
check "raw: polled" completes "$soft" 1 --bs=4k --rw=randrw --iodepth=4 --io_size=4M "${verify[@]}"
for name in soft timer; do
	check "$name, 4K depth 1: polled, data verified" completes /dev/mapper/$name 1 \
		--bs=4k --rw=randrw --number_ios=600 "${verify[@]}"
	check "$name, 4K depth 8: polled, data verified" completes /dev/mapper/$name 1 \
		--bs=4k --rw=randrw --iodepth=8 --io_size=6M "${verify[@]}"
	check "$name, 4K to 64K: polled, data verified" completes /dev/mapper/$name 1 \
		--bsrange=4k-60k --blockalign=4k --rw=randrw --norandommap --serialize_overlap=1 --verify_backlog=64 \
		--iodepth=4 --io_size=16M "${verify[@]}"
	# Larger ones are refused, as on dm-linear: the block layer does not split for pollers.
	# shared between CPUs: reads are polled, a write that another CPU sends on is not
	check "$name, 256K depth 2: completes, data verified" \
		run /dev/mapper/$name 1 --bs=256k --rw=randrw --iodepth=2 --io_size=16M "${verify[@]}"
	check "$name, 256K reads depth 2: polled" completes /dev/mapper/$name 1 \
		--bs=256k --rw=read --iodepth=2
done
# the checker, told that there was polling
unpolled()
{
	run /dev/mapper/soft 0 --bs=4k --rw=randread --number_ios=50
	echo "$polled of $ios requests polled"
	[ "$polled" -ge "$ios" ]
}
control "without hipri nothing is polled" 1 '^0 of [1-9]' unpolled
ends() { run "$@" || [ $? -ne 124 ]; }
check "a device without poll queues: hipri is refused or done without, and does not hang" \
	ends /dev/mapper/none 1 --bs=4k --rw=randread --number_ios=20

# What it is good for; a figure, not a check.
for name in soft timer; do
	line=''
	for hipri in 0 1; do
		for rw in randread randwrite; do
			if run /dev/mapper/$name $hipri --bs=4k --rw=$rw --number_ios=1000; then
				line+=" $rw $([ $hipri = 1 ] && echo polled || echo interrupt) $usec us,"
			fi
		done
	done
	note "$name, 4K depth 1:${line%,}"
done
unmap soft timer none

# dm-crypt, for the record, on a device of its own: nobody polls for its clones, so they
# end when they time out.
crypt=$(polling irqmode=1)
map ref crypt "$AES $key 0 $crypt 0 1 sector_size:4096"
if run /dev/mapper/ref 1 --bs=4k --rw=randread --number_ios=4; then
	note "dm-crypt with hipri: $polled of $ios polled"
else
	note "dm-crypt with hipri: $(tr '\n' ' ' < "$WORK/fio.err" | cut -c1-200)"
fi
unmap ref
finish
