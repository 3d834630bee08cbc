#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# NOWAIT: io_uring hands a request that a device might sleep on to a thread of its own.
# Ours never sleeps on one, so none may be handed over; and where memory or the device
# are short, the caller must be told EAGAIN at once.
#
# dm-crypt, which does not know NOWAIT, is the control of the counting; the same
# requests without NOWAIT, which do wait, are the control of the shortage.

set -euo pipefail
# shellcheck source=tests/guest/lib.sh
. "$(dirname "$0")/lib.sh"

insmod_coffer
rwflags=$TOOLS/rwflags
tracing=/sys/kernel/tracing
key=$(hexkey nowait 64)

# ---- io_uring without a detour -------------------------------------------------

# Both signs of a detour: the kernel's trace point for it, and the threads.
_undo "echo 0 > $tracing/events/io_uring/io_uring_queue_async_work/enable"
echo 2048 > $tracing/buffer_size_kb
detours() { grep -c 'io_uring_queue_async_work:' $tracing/trace || true; }

# ring DEVICE FIO-OPTION...: sets requests, detoured and threads
ring()
{
	local dev=$1 pid seen=''
	shift
	: > $tracing/trace
	echo 1 > $tracing/events/io_uring/io_uring_queue_async_work/enable
	fio --name=ring --filename="$dev" --direct=1 --ioengine=io_uring --size=16M \
		--thread --output-format=terse --terse-version=3 --output="$WORK/fio" \
		"$@" > "$WORK/fio.err" 2>&1 &
	pid=$!
	while kill -0 $pid 2> /dev/null; do
		seen+=$(grep -hs '^iou-wrk' /proc/$pid/task/*/comm || true)
	done
	wait $pid || { cat "$WORK/fio.err" "$WORK/fio"; return 1; }
	echo 0 > $tracing/events/io_uring/io_uring_queue_async_work/enable
	detoured=$(detours)
	threads=$(grep -o 'iou-wrk' <<< "$seen" | wc -l || true)
}

# none NAME DEVICE FIO-OPTION...: data verified, nothing detoured
none()
{
	local dev=$1
	shift
	ring "$dev" "$@"
	echo "detoured $detoured, threads seen $threads"
	[ "$detoured" = 0 ] && [ "$threads" = 0 ]
}

# The block layer says EAGAIN to what it would have to split: take no more than fits one
# request below, by size or by the number of pages.
most=262144
fast=$(mkram 16 irqmode=1 max_sectors=2048)
soft=$(mkram 16 irqmode=1 max_sectors=2048)
timer=$(mkram 16 irqmode=2 completion_nsec=20000 max_sectors=2048)
brd=$(mkbrd)
map fast "$COFFER_TARGET" "$AES $key 0 $fast 0 1 sector_size:4096"
map timer "$COFFER_TARGET" "$AES $key 0 $timer 0"
map brd "$COFFER_TARGET" "$AES $key 0 $brd 0 1 sector_size:4096" "$(($(sectors "$brd") < 32768 ? $(sectors "$brd") : 32768))"
map ref crypt "$AES $key 0 $soft 0 1 sector_size:4096"

verified=(--rw=randrw --verify=crc32c --verify_fatal=1 --io_size=4M)
check "raw, 4K: nothing leaves the submitter" none "$soft" --bs=4k --iodepth=4 "${verified[@]}"
for dev in fast timer brd; do
	check "$dev, 4K depth 16: nothing leaves the submitter" \
		none /dev/mapper/$dev --bs=4k --iodepth=16 "${verified[@]}"
	check "$dev, 256K depth 2: nothing leaves the submitter" \
		none /dev/mapper/$dev --bs=$((most / 1024))k --iodepth=2 "${verified[@]}"
done
control "dm-crypt's requests do leave it" 1 'detoured [1-9].*threads seen [1-9]' \
	none /dev/mapper/ref --bs=4k --iodepth=4 "${verified[@]}"
unmap ref

# ---- RWF_NOWAIT ----------------------------------------------------------------

# value WORD: of rwflags' report
value() { sed -n "s/.*\\b$1=\\([0-9]*\\).*/\\1/p" "$WORK/report"; }

for dev in fast timer brd; do
	check "$dev: preadv2 and pwritev2 with RWF_NOWAIT" \
		"$rwflags" nowait -n 300 -b $most /dev/mapper/$dev
	cp "$WORK/check.log" "$WORK/report"
	# it is short of nothing here: next to none may be refused
	check "$dev: RWF_NOWAIT does the work ($(value again) of 300 said EAGAIN)" \
		[ "$(value again)" -lt 30 ]
done
unmap fast timer brd
freeram "$soft"
map ref crypt "$AES $key 0 $fast 0"
control "dm-crypt does not know RWF_NOWAIT" 3 'not supported' \
	"$rwflags" nowait -n 10 /dev/mapper/ref
unmap ref

# ---- EAGAIN rather than sleep -----------------------------------------------------

# A device that takes 1.5 s for everything, so that whoever waits is found out.
slow=1500
# flooded WANTED DEVICE RWFLAGS-OPTION...: did the submission wait for the device? An
# emulated machine may stand still for as long when its host is busy, but not three times.
flooded()
{
	local wanted=$1 try tries=${tries:-3}
	shift
	for ((try = 1; try <= tries; try++)); do
		timeout 40 "$rwflags" flood "$@" | tee "$WORK/report"
		! as_wanted "$wanted" || break
	done
	as_wanted "$wanted"
}
as_wanted()
{
	case $1 in
	eagain) [ "$(value longest_ms)" -lt $((slow / 2)) ] && [ "$(value again)" -gt 0 ] &&
			[ "$(value again)" -lt "$(value requests)" ] ;;
	waits) [ "$(value submit_ms)" -ge $((slow * 9 / 10)) ] && [ "$(value again)" = 0 ] ;;
	esac
}

# Short of memory: more data in flight than bounce pages may hold (2% of memory).
mib=$(($(awk '/^MemTotal/ { print $2 }' /proc/meminfo) * 3 / 102400))
tail=$(mkram $((mib + 8)) irqmode=2 completion_nsec=$((slow * 1000000)) hw_queue_depth=1024)
map slow "$COFFER_TARGET" "$AES $key 0 $tail 0 1 sector_size:4096"
check "no bounce pages left: EAGAIN at once, $mib MiB" flooded eagain -n $mib /dev/mapper/slow
note "$(cat "$WORK/report")"
control "the same without NOWAIT waits" 0 'submit_ms' flooded waits -w -n $mib /dev/mapper/slow
note "$(cat "$WORK/report")"
tries=1 control "waiting is not taken for EAGAIN" 1 'again=0' flooded eagain -w -n $mib /dev/mapper/slow
unmap slow
freeram "$tail"

# Short of tags: the device below says EAGAIN for our clone.
tail=$(mkram 8 irqmode=2 completion_nsec=$((slow * 1000000)) hw_queue_depth=4)
map slow "$COFFER_TARGET" "$AES $key 0 $tail 0"
check "no tags left below: EAGAIN at once" flooded eagain -n 64 -b 4096 /dev/mapper/slow
note "$(cat "$WORK/report")"
unmap slow
finish
