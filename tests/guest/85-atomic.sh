#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Atomic writes: what the disk promises not to tear, the mapping must hand down as one
# request, whose limits it must show; and data as always. Kernels before 6.15 do not let
# device-mapper take part.

set -euo pipefail
# shellcheck source=tests/guest/lib.sh
. "$(dirname "$0")/lib.sh"

if [ "$COFFER_KERNEL" = 6.1 ] || [ "$COFFER_KERNEL" = 6.12 ]; then
	skip "atomic writes" "device-mapper in $COFFER_KERNEL has none"
	finish
	exit 0
fi

insmod_coffer
rwflags=$TOOLS/rwflags
tracing=/sys/kernel/tracing
key=$(hexkey atomic 64)

# Up to 2048 blocks of 512 bytes, so 1 MiB at once; no delay
modprobe sd_mod
modprobe scsi_debug dev_size_mb=16 atomic_wr=1 atomic_wr_max_length=4096 ndelay=0 delay=0
_undo "rmmod scsi_debug"
disk=''
for _ in $(seq 50); do
	disk=$(basename "$(ls -d /sys/bus/pseudo/drivers/scsi_debug/adapter0/host*/target*/*:0/block/* 2> /dev/null)" || true)
	[ -z "$disk" ] || [ ! -b "/dev/$disk" ] || break
	sleep 0.1
done
[ -b "/dev/$disk" ]
limit() { cat "/sys/block/$1/queue/atomic_write_$2"; }
dm() { dmsetup info -c --noheadings -o blkdevname "$1"; }

# whole NAME COUNT BYTES OFFSET: writes of BYTES arrive at the disk as COUNT requests of
# BYTES each
_undo "echo 0 > $tracing/events/block/block_rq_issue/enable"
whole()
{
	local n
	: > $tracing/trace
	echo 1 > $tracing/events/block/block_rq_issue/enable
	"$rwflags" atomic -n "$2" -b "$3" -o "$4" "/dev/mapper/$1" || return
	echo 0 > $tracing/events/block/block_rq_issue/enable
	# dev op bytes () sector + sectors: writes to the disk only
	sed -n 's/.*block_rq_issue: \([0-9,]*\) \([A-Z]*\) \([0-9]*\) .*/\1 \2 \3/p' $tracing/trace |
		awk -v dev="$(lsblk -dnro MAJ:MIN "/dev/$disk" | tr : ,)" '$1 == dev && $2 ~ /^W/ { print $3 }' > "$WORK/sizes"
	n=$(grep -cx "$3" "$WORK/sizes" || true)
	echo "$n requests of $3 bytes, all: $(sort "$WORK/sizes" | uniq -c | tr '\n' ' ')"
	[ "$n" = "$2" ] && [ "$(wc -l < "$WORK/sizes")" = "$2" ]
}

note "disk: $(for l in max_bytes unit_min_bytes unit_max_bytes boundary_bytes; do
	printf '%s %s ' $l "$(limit "$disk" $l)"; done)"
for unit in 512 4096; do
	map atomic "$COFFER_TARGET" "$AES $key 0 /dev/$disk 2048 1 sector_size:$unit" 16384
	max=$(limit "$(dm atomic)" unit_max_bytes)
	note "unit $unit: $(for l in max_bytes unit_min_bytes unit_max_bytes boundary_bytes; do
		printf '%s %s ' $l "$(limit "$(dm atomic)" $l)"; done)"
	check "unit $unit: the mapping offers atomic writes" [ "$max" -ge 65536 ]
	check "unit $unit: no more than the disk or a write of ours can be" \
		[ "$max" -le "$(limit "$disk" unit_max_bytes)" -a "$max" -le 1048576 ]
	check "unit $unit: no less than a data unit" \
		[ "$(limit "$(dm atomic)" unit_min_bytes)" -ge $unit ]
	for bytes in 4096 16384 65536 "$max"; do
		check "unit $unit: $bytes bytes arrive whole, data verified" \
			whole atomic 8 "$bytes" 0
	done
	control "unit $unit: more than the limit is refused" 3 'Invalid argument' \
		"$rwflags" atomic -n 1 -b $((max * 2)) /dev/mapper/atomic
	control "unit $unit: not aligned to its size is refused" 3 'Invalid argument' \
		"$rwflags" atomic -n 1 -b 16384 -o 4096 /dev/mapper/atomic
	# the same bytes as dm-crypt reads
	dd if=/dev/mapper/atomic of="$WORK/ours" bs=1M count=4 iflag=direct status=none
	unmap atomic
	map atomic crypt "$AES $key 0 /dev/$disk 2048 1 sector_size:$unit" 16384
	check "unit $unit: dm-crypt reads the same" \
		cmp -n $((4 << 20)) "$WORK/ours" /dev/mapper/atomic
	# with larger blocks than the disk's it offers what the disk then refuses
	[ "$unit" != 512 ] ||
		check "unit $unit: dm-crypt offers no more ($(limit "$(dm atomic)" unit_max_bytes))" \
			[ "$(limit "$(dm atomic)" unit_max_bytes)" -le "$max" ]
	unmap atomic
done

# The checkers: a disk that splits, and a target without atomic writes.
echo 16 > "/sys/block/$disk/queue/max_sectors_kb"
splits()
{
	: > $tracing/trace
	echo 1 > $tracing/events/block/block_rq_issue/enable
	dd if=/dev/zero of=/dev/mapper/atomic bs=65536 count=1 oflag=direct status=none
	echo 0 > $tracing/events/block/block_rq_issue/enable
	grep -c "block_rq_issue: $(lsblk -dnro MAJ:MIN "/dev/$disk" | tr : ,) W" $tracing/trace
}
map atomic linear "/dev/$disk 2048" 16384
equal "control: an ordinary write that is split is seen split" "$(splits)" 4
unmap atomic
modprobe dm_delay
map atomic delay "/dev/$disk 2048 0" 16384
control "a target that does not take part refuses atomic writes" 3 'atomic write' \
	"$rwflags" atomic -n 1 -b 4096 /dev/mapper/atomic
unmap atomic
finish
