#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Everything that device-mapper can do to a mapping, by several processes at once, while
# others read and write through it and compare with a model. Two mappings stay: one on
# a disk that completes in the submission, one on a disk that completes in hard irq. A
# third is created and removed all the time.
#
# COFFER_RACE_SECONDS says how long (10), COFFER_SEED repeats a run as far as the
# scheduler lets it.
#
# Invariant: every table of a mapping that stays puts the same data on the disk, so at
# the end it is what the model says, and dm-crypt reads it.

set -euo pipefail
# shellcheck source=tests/guest/lib.sh
. "$(dirname "$0")/lib.sh"

insmod_coffer
seconds=${COFFER_RACE_SECONDS:-10}
seed=${COFFER_SEED:-$(date +%s)}
note "seed $seed, $seconds s"
pids=()
key=$(hexkey race 64)
sectors=16384

# All of these mean the same data. Small limits for what is done in the submitter, and
# none, so that every way through the queue is taken.
flags=('' '1 no_read_workqueue' '2 no_read_workqueue no_write_workqueue' '1 same_cpu_crypt')
[ "$COFFER_TARGET" != coffer ] ||
	flags+=('1 inline:512' '2 inline:4096 fanout:4' '1 inline:4294967295' '1 fanout:1' '1 handover')

# tables DEVICE: into the array tables
tables()
{
	local f
	tables=()
	for f in "${flags[@]}"; do
		tables+=("$COFFER_TARGET $AES $key 8 $1 16${f:+ $f}")
	done
}

declare -A store
store[race-a]=$(mkbrd)
store[race-b]=$(mkram 20 irqmode=2 completion_nsec=10000)
store[race-c]=$(mkbrd)

# io NAME DEPTH BYTES: reads and writes until told to stop; its end is in a file
io()
{
	local n=0 status=0
	while [ $status = 0 ] && [ ! -e "$WORK/stop" ]; do
		n=$((n + 1))
		"$TOOLS/diffio" run -s $((seed + n)) -n 100 -q "$2" -b "$3" -m "$WORK/$1.model" \
			"/dev/mapper/$1" >> "$WORK/$1.io" 2>&1 || status=$?
	done
	echo "$status $n" > "$WORK/$1.end"
}

for name in race-a race-b; do
	tables "${store[$name]}"
	map $name "$COFFER_TARGET" "${tables[0]#* }" $sectors
	"$TOOLS/diffio" fill -s "$seed" -m "$WORK/$name.model" /dev/mapper/$name
	# the less is on its way, the more often a suspension comes to its end
	if [ $name = race-a ]; then io $name 2 131072 & else io $name 8 32768 & fi
	"$TOOLS/dmrace" -p 6 -t "$seconds" -s "$seed" -k "$key" $name $sectors "${tables[@]}" \
		> "$WORK/$name.race" 2>&1 &
	pids[${#pids[@]}]=$!
done
tables "${store[race-c]}"
_undo 'dmsetup remove --retry race-c'
"$TOOLS/dmrace" -r -p 5 -t "$seconds" -s "$seed" -k "$key" race-c $sectors "${tables[@]}" \
	> "$WORK/race-c.race" 2>&1 &
pids[${#pids[@]}]=$!

# Meanwhile: the module's reference count, /proc and sysfs are read, as a monitor would
while kill -0 "${pids[@]}" 2> /dev/null; do
	cat /proc/modules /sys/block/dm-*/dm/* /sys/block/dm-*/stat /proc/diskstats > /dev/null 2>&1 || true
	sleep 0.5
done
for name in race-a race-b race-c; do
	status=0
	wait "${pids[0]}" || status=$?
	pids=("${pids[@]:1}")
	note "$(cat "$WORK/$name.race")"
	equal "$name: every ioctl has an answer that can be right" "$status" 0
done

touch "$WORK/stop"
for name in race-a race-b; do
	for ((i = 0; i < 600; i++)); do
		[ ! -e "$WORK/$name.end" ] || break
		sleep 0.1
	done
	if [ ! -e "$WORK/$name.end" ]; then
		not_ok "$name: I/O goes on after the race" "$(dmsetup info $name | tr '\n' ' ')"
		continue
	fi
	read -r status n < "$WORK/$name.end"
	note "$name: $n rounds of 100 requests"
	[ "$status" = 0 ] || note "$(tail -n 2 "$WORK/$name.io")"
	equal "$name: no request failed or read wrong data in the race" "$status" 0
	check "$name: requests were made meanwhile" test "$n" -ge 2
	check "$name: the data is what the model says" \
		"$TOOLS/diffio" verify -m "$WORK/$name.model" /dev/mapper/$name
	check "$name: can be removed" unmap $name
	map $name crypt "$AES $key 8 ${store[$name]} 16" $sectors
	check "$name: dm-crypt reads the same" \
		"$TOOLS/diffio" verify -m "$WORK/$name.model" /dev/mapper/$name
	unmap $name
done
equal 'nothing is left of the mapping that came and went' \
	"$(dmsetup info -c --noheadings -o name 2> /dev/null | grep -c race-c || true)" 0
if [ "$COFFER_TARGET" = coffer ]; then
	check 'the module unloads' rmmod dm_coffer
	check 'and loads again' insmod "$COFFER_MODULE"
fi
equal 'no reference is left' "$(cat "/sys/module/$MODULE/refcnt")" 0
finish
