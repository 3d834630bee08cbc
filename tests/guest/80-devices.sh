#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Unusual devices beneath: what splits every request, has large blocks, odd sizes, sums
# of its own, a write protection, or goes away; and what is commonly stacked below and
# above. Always with data that is checked, and where two of a kind are to be had, with
# dm-crypt on the other one: both stores must be equal byte for byte.

set -euo pipefail
# shellcheck source=tests/guest/lib.sh
. "$(dirname "$0")/lib.sh"

insmod_coffer
seed=${COFFER_SEED:-$(date +%s)}
note "seed $seed"
diffio=$TOOLS/diffio
model=$WORK/model
key=$(hexkey devices 64)
most=10240	# sectors
echo 8 > /proc/sys/vm/nr_hugepages
_undo "echo 0 > /proc/sys/vm/nr_hugepages"

# ---- helpers --------------------------------------------------------------------

# table STORE [UNIT [START]]: parameters of a mapping
table()
{
	local opts=''
	[ "${2:-512}" = 512 ] || opts=" 1 sector_size:$2"
	echo "$AES $key 0 $1 ${3:-0}$opts"
}

none()
{
	local name
	for name in ref dut inner.ref inner.dut; do
		! [ -e /dev/mapper/$name ] || unmap $name
	done
}

# twins A B UNIT SECTORS: dm-crypt on A and the target on B do the same requests, large
# ones and several in flight; then both stores are equal, and each reads the other's. AFTER
# is called, if set, when both are mapped.
twins()
{
	local a=$1 b=$2 unit=$3 sectors=$4
	none
	map ref crypt "$(table "$a" "$unit")" "$sectors"
	map dut "$COFFER_TARGET" "$(table "$b" "$unit")" "$sectors"
	${after:-true}
	rm -f "$model"
	"$diffio" fill -s "$seed" -m "$model" /dev/mapper/ref /dev/mapper/dut
	"$diffio" run -s "$seed" -n 12 -b 4194304 -m "$model" /dev/mapper/ref /dev/mapper/dut
	"$diffio" run -s "$seed" -n 48 -b 524288 -q 8 -m "$model" /dev/mapper/ref /dev/mapper/dut
	none
	"$diffio" same "$a" "$b"
	map dut "$COFFER_TARGET" "$(table "$a" "$unit")" "$sectors"
	"$diffio" verify -m "$model" /dev/mapper/dut
	none
}

# scsi PARAMETER...: the names of as many disks as add_host= says, else of one
scsi()
{
	local hosts=1 p disks
	for p; do
		case $p in
		add_host=*) hosts=${p#*=} ;;
		esac
	done
	modprobe sd_mod
	modprobe scsi_debug per_host_store=1 dev_size_mb=8 delay=0 "$@"
	_undo "rmmod scsi_debug"
	for p in $(seq 100); do
		disks=$(ls -d /sys/bus/pseudo/drivers/scsi_debug/adapter*/host*/target*/*:*/block/* 2> /dev/null || true)
		[ "$(wc -w <<< "$disks")" -lt "$hosts" ] || break
		sleep 0.1
	done
	for p in $disks; do echo "/dev/${p##*/}"; done
}
unscsi() { rmmod scsi_debug; }

# sums DISK UNIT: does the block layer send a sum with each sector to and fro?
sums()
{
	local event=/sys/kernel/tracing/events/scsi/scsi_dispatch_cmd_start
	_undo "echo 0 > $event/enable"
	none
	map dut "$COFFER_TARGET" "$(table "$1" "$2")" "$most"
	: > /sys/kernel/tracing/trace
	echo 1 > $event/enable
	dd if=/dev/zero of=/dev/mapper/dut bs=64k count=4 oflag=direct conv=notrunc status=none
	dd if=/dev/mapper/dut of=/dev/null bs=64k count=4 iflag=direct status=none
	echo 0 > $event/enable
	none
	grep -o 'prot_sgl=[0-9]* prot_op=[A-Z_]*' /sys/kernel/tracing/trace | sort | uniq -c > "$WORK/sums"
	cat "$WORK/sums"
	grep -q 'prot_sgl=[1-9][0-9]* prot_op=SCSI_PROT_WRITE_PASS' "$WORK/sums" &&
		grep -q 'prot_sgl=[1-9][0-9]* prot_op=SCSI_PROT_READ_PASS' "$WORK/sums"
}

# attr DEVICE FILE: beneath its directory in sysfs
attr() { cat "/sys/dev/block/$(mountpoint -x "$1")/$2"; }

# shape A B: what the two mappings say about blocks and alignment is the same
shape()
{
	local f x y
	for f in queue/logical_block_size queue/physical_block_size queue/minimum_io_size \
			queue/optimal_io_size alignment_offset; do
		x=$(attr /dev/mapper/ref $f) y=$(attr /dev/mapper/dut $f)
		[ "$x" = "$y" ] || { echo "$f: dm-crypt $x, $COFFER_TARGET $y"; return 1; }
	done
}

# verified DEVICE FIO-OPTION...: fio's own sums
verified()
{
	timeout -k 5 60 fio --name=v --filename="$1" --direct=1 --rw=randrw --norandommap \
		--serialize_overlap=1 --verify=crc32c --verify_fatal=1 --verify_backlog=64 \
		--thread --randseed="$seed" --output-format=terse "${@:2}" 2>&1
}

# ---- null_blk: where completions come from, and what splits --------------------------

for mode in 0 1 2; do
	delay=()
	[ $mode != 2 ] || delay=(completion_nsec=20000)
	a=$(mkram 8 irqmode=$mode "${delay[@]}") b=$(mkram 8 irqmode=$mode "${delay[@]}")
	check "null_blk irqmode $mode" twins "$a" "$b" 512 $most
	map dut "$COFFER_TARGET" "$(table "$b")"
	check "null_blk irqmode $mode: fio verify, io_uring" verified /dev/mapper/dut \
		--ioengine=io_uring --iodepth=16 --bsrange=512-64k --io_size=4M
	check "null_blk irqmode $mode: fio verify, libaio" verified /dev/mapper/dut \
		--ioengine=libaio --iodepth=16 --bsrange=512-1m --io_size=8M
	unmap dut
	freeram "$a"
	freeram "$b"
done

while read -r name unit attrs; do
	read -ra attrs <<< "$attrs"
	a=$(mkram 8 "${attrs[@]}") b=$(mkram 8 "${attrs[@]}")
	check "null_blk $name, unit $unit" twins "$a" "$b" "$unit" $most
	freeram "$a"
	freeram "$b"
done <<- END
	max_sectors-8 512 max_sectors=8 irqmode=1
	max_sectors-16 4096 max_sectors=16 irqmode=2 completion_nsec=10000
	max_sectors-9 512 max_sectors=9 irqmode=0
	virt_boundary+max_sectors-16 4096 virt_boundary=1 max_sectors=16 irqmode=1
	one-tag 512 hw_queue_depth=1 irqmode=2 completion_nsec=10000
	blocks-4096+max_sectors-8 512 blocksize=4096 max_sectors=8 irqmode=1
	write-cache 512 cache_size=2 irqmode=1
	blocking 4096 blocking=1 irqmode=0
END

# Limits that shrink while a mapping is in use
a=$(mkram 8) b=$(mkram 8)
shrink()
{
	local d
	for d in "$a" "$b"; do echo 4 > "/sys/dev/block/$(mountpoint -x "$d")/queue/max_sectors_kb"; done
}
after=shrink check "max_sectors_kb of 4, set when mapped" twins "$a" "$b" 512 $most
freeram "$a"
freeram "$b"

# ---- SCSI disks ------------------------------------------------------------------------

while read -r name unit params; do
	read -ra params <<< "$params"
	readarray -t d < <(scsi add_host=2 "${params[@]}")
	after=shape check "scsi $name, unit $unit" twins "${d[@]}" "$unit" $most
	case $name in
	DIX*)
		equal "scsi $name: the disk has an integrity format" \
			"$(attr "${d[1]}" integrity/format | cut -c1-7)" T10-DIF
		check "scsi $name: sums go with the data both ways" sums "${d[1]}" "$unit" ;;
	misaligned)
		control "scsi $name: where no sums are, none are seen" 1 'prot_sgl=0' \
			sums "${d[1]}" "$unit" ;;
	blocks-4096)
		map dut "$COFFER_TARGET" "$(table "${d[1]}" "$unit")" $most
		"$diffio" flip "${d[1]}" 5000000
		control "one flipped bit on the store is noticed by the mapping" 1 'the content differs' \
			"$diffio" verify -m "$model" /dev/mapper/dut
		unmap dut
		control "and between the stores" 1 'the store differs' "$diffio" same "${d[@]}" ;;
	esac
	unscsi
done <<- END
	blocks-4096 4096 sector_size=4096
	misaligned 512 physblk_exp=3 lowest_aligned=7
	odd-optimum 4096 opt_blks=1025 physblk_exp=3
	DIX-1 512 dif=1 dix=1 guard=0
	DIX-3-4096 4096 dif=3 dix=1 guard=1 sector_size=4096
END

# ---- odd sizes ----------------------------------------------------------------------------

# 8197 sectors: a multiple of no data unit but 512, and of no page
for f in a b; do
	head -c $((8197 * 512)) /dev/urandom > "$WORK/file.$f"
done
cp "$WORK/file.a" "$WORK/file.b"
a=$(losetup -f --show "$WORK/file.a") && _undo "losetup -d $a"
b=$(losetup -f --show "$WORK/file.b") && _undo "losetup -d $b"
check "loop of 8197 sectors, unit 512, whole" twins "$a" "$b" 512 8197
check "loop of 8197 sectors, unit 4096, whole units" twins "$a" "$b" 4096 8192
check "loop of 8197 sectors, unit 1024, whole units" twins "$a" "$b" 1024 8196
for unit in 1024 4096; do
	for target in crypt "$COFFER_TARGET"; do
		control "$target: half a data unit of $unit at the end is refused" 1 'Invalid argument' \
			map dut "$target" "$(table "$b" $unit)" 8197
	done
done
control "a mapping larger than the device is refused" 1 'Invalid argument' \
	map dut "$COFFER_TARGET" "$(table "$b")" 8198

# through the page cache, whose last page ends beyond the device
tails()
{
	none
	map ref crypt "$(table "$a")"
	map dut "$COFFER_TARGET" "$(table "$b")"
	dd if=/dev/urandom of="$WORK/tail" bs=512 count=8197 status=none
	for d in ref dut; do
		dd if="$WORK/tail" of=/dev/mapper/$d bs=3000 conv=notrunc,fsync status=none
		echo 1 > /proc/sys/vm/drop_caches
		cmp "$WORK/tail" /dev/mapper/$d
		# the last sector by itself
		dd if=/dev/zero of=/dev/mapper/$d bs=512 seek=8196 count=1 oflag=direct conv=notrunc status=none
		dd if=/dev/mapper/$d bs=512 skip=8196 iflag=direct status=none | cmp -n 512 - /dev/zero
	done
	none
	cmp "$a" "$b"
}
check "loop of 8197 sectors, through the page cache, last sector" tails
losetup -d "$a"
losetup -d "$b"

# A loop device with direct I/O to a file system: its file's blocks are 4096 bytes.
a=$(mkram 40)
mkfs.ext4 -q -F "$a"
mkdir "$WORK/fs"
mount "$a" "$WORK/fs"
_undo "umount $WORK/fs"
truncate -s 16M "$WORK/fs/a" "$WORK/fs/b"
d=("$(losetup -f --show --direct-io=on "$WORK/fs/a")" "$(losetup -f --show --direct-io=on "$WORK/fs/b")")
_undo "losetup -d ${d[0]}; losetup -d ${d[1]}"
check "loop with direct I/O on ext4, unit 4096" twins "${d[@]}" 4096 $most
check "loop with direct I/O on ext4, unit 512" twins "${d[@]}" 512 $most
losetup -d "${d[0]}"
losetup -d "${d[1]}"
umount "$WORK/fs"
freeram "$a"

# ---- stacks ----------------------------------------------------------------------------------

# the target twice, on dm-crypt twice
a=$(mkram 8 irqmode=1) b=$(mkram 8 irqmode=2 completion_nsec=20000)
twice()
{
	none
	map inner.ref crypt "$AES $(hexkey inner 64) 7 $a 0"
	map inner.dut "$COFFER_TARGET" "$AES $(hexkey inner 64) 7 $b 0"
	map ref crypt "$(table /dev/mapper/inner.ref 4096)"
	map dut "$COFFER_TARGET" "$(table /dev/mapper/inner.dut 4096)"
	rm -f "$model"
	"$diffio" fill -s "$seed" -m "$model" /dev/mapper/ref /dev/mapper/dut
	"$diffio" run -s "$seed" -n 64 -q 4 -b 1048576 -m "$model" /dev/mapper/ref /dev/mapper/dut
	"$diffio" verify -m "$model" /dev/mapper/ref /dev/mapper/dut
	none
	"$diffio" same "$a" "$b"
}
check "the target on the target" twice

if command -v mdadm > /dev/null; then
	c=$(mkram 10 irqmode=1) e=$(mkram 10 irqmode=1)
	raid() { mdadm "$@" > "$WORK/mdadm" 2>&1 || { cat "$WORK/mdadm"; return 1; }; }
	raid --create /dev/md71 --run --assume-clean --metadata=1.2 --bitmap=none --level=1 \
		--raid-devices=2 "$c" "$e"
	_undo "mdadm --stop /dev/md71"
	len=$(($(sectors /dev/md71) & ~7))
	on_raid()
	{
		none
		map dut "$COFFER_TARGET" "$(table /dev/md71 4096)" "$len"
		rm -f "$model"
		"$diffio" fill -s "$seed" -m "$model" /dev/mapper/dut
		"$diffio" run -s "$seed" -n 64 -q 8 -b 524288 -m "$model" /dev/mapper/dut
		"$diffio" verify -m "$model" /dev/mapper/dut
	}
	check "on RAID 1" on_raid
	echo check > /sys/block/md71/md/sync_action
	mdadm --wait /dev/md71 || true
	equal "on RAID 1: both halves are equal" "$(cat /sys/block/md71/md/mismatch_cnt)" 0
	degraded()
	{
		raid /dev/md71 --fail "$c"
		raid /dev/md71 --remove "$c"
		"$diffio" run -s "$seed" -n 48 -q 8 -b 524288 -m "$model" /dev/mapper/dut
		"$diffio" verify -m "$model" /dev/mapper/dut
	}
	check "on RAID 1 that lost a half" degraded
	unmap dut
	raid --stop /dev/md71
	raid --zero-superblock "$c" "$e"

	# and members that are mappings
	map inner.ref crypt "$(table "$c" 4096)"
	map inner.dut "$COFFER_TARGET" "$(table "$e" 4096)"
	raid --create /dev/md71 --run --assume-clean --metadata=1.2 --bitmap=none --level=1 \
		--raid-devices=2 /dev/mapper/inner.ref /dev/mapper/inner.dut
	under_raid()
	{
		rm -f "$model"
		"$diffio" fill -s "$seed" -m "$model" /dev/md71
		"$diffio" run -s "$seed" -n 64 -q 8 -b 524288 -m "$model" /dev/md71
		"$diffio" verify -m "$model" /dev/md71
	}
	check "under RAID 1, with dm-crypt as the other half" under_raid
	echo check > /sys/block/md71/md/sync_action
	mdadm --wait /dev/md71 || true
	equal "under RAID 1: both halves are equal" "$(cat /sys/block/md71/md/mismatch_cnt)" 0
	raid --stop /dev/md71
	none
	freeram "$c"
	freeram "$e"
else
	skip "RAID 1" "no mdadm"
fi

if command -v lvm > /dev/null; then
	lv()
	{
		LVM_SUPPRESS_FD_WARNINGS=1 lvm "$@" --config 'devices { use_devicesfile=0 filter=["a|/dev/(nullb|coffer|mapper/inner)|","r|.*|"]
				types=["nullb", 16] }
			activation { udev_sync=0 udev_rules=0 monitoring=0 } global { event_activation=0 }
			backup { backup=0 archive=0 }' > "$WORK/lvm" 2>&1 || { cat "$WORK/lvm"; return 1; }
	}
	# extents of 64 KiB, dealt out over two disks
	lv vgcreate -s 64k vg71 "$a" "$b"
	_undo "lvm vgchange -an vg71"
	lv lvcreate -y -Wn -n one -L 6m -i 2 -I 4k vg71
	lv lvcreate -y -Wn -n two -L 6m -i 2 -I 4k vg71
	check "on LVM, striped by 4 KiB" twins /dev/vg71/one /dev/vg71/two 512 12288
	lv vgremove -f vg71
	lv pvremove "$a" "$b"

	map inner.dut "$COFFER_TARGET" "$(table "$a" 4096)"
	lv vgcreate -s 64k vg71 /dev/mapper/inner.dut
	lv lvcreate -y -Wn -n one -L 6m vg71
	under_lvm()
	{
		rm -f "$model"
		"$diffio" fill -s "$seed" -m "$model" /dev/vg71/one
		"$diffio" run -s "$seed" -n 64 -q 8 -b 524288 -m "$model" /dev/vg71/one
		"$diffio" verify -m "$model" /dev/vg71/one
		lv vgchange -an vg71
		unmap inner.dut
		map inner.ref crypt "$(table "$a" 4096)"
		lv vgchange -ay vg71
		"$diffio" verify -m "$model" /dev/vg71/one
		lv vgchange -an vg71
	}
	check "under LVM, and dm-crypt takes over the volume group" under_lvm
	none
else
	skip "LVM" "no lvm2"
fi
freeram "$a"
freeram "$b"

# Swap on the mapping, with a program that needs more than it may have
a=$(mkram 80 irqmode=1)
map dut "$COFFER_TARGET" "$(table "$a" 4096)"
swapping()
{
	local cg=$WORK/cgroup
	mkswap /dev/mapper/dut > /dev/null
	swapon /dev/mapper/dut
	mkdir -p "$cg"
	mount -t cgroup2 none "$cg"
	echo +memory > "$cg/cgroup.subtree_control"
	mkdir -p "$cg/hog"
	echo 24M > "$cg/hog/memory.max"
	sh -c 'echo $$ > "$1" && exec "$2" 64 2' sh "$cg/hog/cgroup.procs" "$TOOLS/hog"
	grep -E '^(pswpin|pswpout) ' /proc/vmstat
	swapoff /dev/mapper/dut
	rmdir "$cg/hog"
	umount "$cg"
}
_undo "swapoff /dev/mapper/dut; umount $WORK/cgroup"
before=$(awk '/^pswpout/ { print $2 }' /proc/vmstat)
check "under swap: every page comes back as it was" swapping
out=$(($(awk '/^pswpout/ { print $2 }' /proc/vmstat) - before))
check "under swap: it was used ($out pages out)" [ $out -gt 10000 ]
unmap dut

# ---- read-only ---------------------------------------------------------------------------------

map dut "$COFFER_TARGET" "$(table "$a" 4096)" "$most"
"$diffio" fill -s "$seed" -m "$model" /dev/mapper/dut
unmap dut
blockdev --setro "$a"
# read_only TARGET DEVICE [OPTION]: can be mapped with it, reads, and cannot be written to
read_only()
{
	map dut "$1" "$(table "$2" 4096)" "$most" "${3:---readonly}"
	[ "$(blockdev --getro /dev/mapper/dut)" = 1 ] || { echo "the mapping is writable"; return 1; }
	dd if=/dev/mapper/dut bs=1M iflag=direct status=none of="$WORK/read.$1"
	! dd if=/dev/zero of=/dev/mapper/dut bs=4096 count=1 oflag=direct conv=notrunc 2> "$WORK/err" ||
		{ echo "written to"; return 1; }
	grep -Eq 'Operation not permitted|Read-only|Input/output' "$WORK/err" || { cat "$WORK/err"; return 1; }
	unmap dut
}
dd if="$a" of="$WORK/before" bs=1M count=8 iflag=direct status=none
check "read-only device: mapped, read, not written" read_only "$COFFER_TARGET" "$a"
check "read-only device: the content is right" cmp "$WORK/read.$COFFER_TARGET" "$model"
# without --readonly, whatever dm-crypt is allowed
tries()
{
	none
	if map dut "$1" "$(table "$a" 4096)" "$most" > "$WORK/err" 2>&1; then
		echo "mapped, read-only $(blockdev --getro /dev/mapper/dut)"
		unmap dut
	else
		sed -n 's/.*failed: /refused: /p' "$WORK/err"
	fi
}
answer=$(tries crypt)
equal "read-only device, a writable mapping: as dm-crypt, $answer" "$(tries "$COFFER_TARGET")" "$answer"
check "read-only device: the store is what it was" cmp -n $((8 << 20)) "$WORK/before" "$a"
blockdev --setrw "$a"
control "a mapping that is not read-only is noticed" 1 'is writable' \
	read_only "$COFFER_TARGET" "$a" --verifyudev
none
freeram "$a"

readarray -t d < <(scsi wp=1)
a=${d[0]}
answer=$(tries crypt)
equal "write-protected disk, a writable mapping: as dm-crypt, $answer" "$(tries "$COFFER_TARGET")" "$answer"
check "write-protected disk: mapped read-only" read_only "$COFFER_TARGET" "$a"
check "write-protected disk: with dm-crypt" read_only crypt "$a"
check "write-protected disk: both read the same" cmp "$WORK/read.crypt" "$WORK/read.$COFFER_TARGET"
none
unscsi

# ---- a disk that goes away -----------------------------------------------------------------------

readarray -t d < <(scsi)
disk=${d[0]}
map dut "$COFFER_TARGET" "$(table "$disk")"
check "before it goes: data" verified /dev/mapper/dut --ioengine=libaio --iodepth=8 --bsrange=4k-256k --io_size=8M
timeout -k 5 60 fio --name=gone --filename=/dev/mapper/dut --direct=1 --rw=randrw --ioengine=libaio \
	--iodepth=8 --bsrange=4k-256k --time_based --runtime=40 --thread --output="$WORK/gone" > /dev/null 2>&1 &
pid=$!
sleep 1
echo 1 > "/sys/block/${disk#/dev/}/device/delete"
status=0
wait $pid || status=$?
check "gone: whoever does I/O is told at once ($status)" [ $status -ne 0 -a $status -ne 124 -a $status -ne 137 ]
check "gone: it was an I/O error" grep -Eq 'Input/output error|No such device' "$WORK/gone"
check "gone: status" timeout 10 dmsetup status dut
check "gone: table" grep -q " $COFFER_TARGET " <(timeout 10 dmsetup table dut)
[ "$COFFER_TARGET" != coffer ] ||
	check "gone: errors are counted" grep -q 'errors [1-9]' <(timeout 10 dmsetup status dut)
fails() { ! timeout 10 dd "$@" 2> "$WORK/err" && grep -Eq 'Input/output|No such device' "$WORK/err"; }
check "gone: direct read" fails if=/dev/mapper/dut of=/dev/null bs=4k count=1 iflag=direct
check "gone: direct write" fails if=/dev/zero of=/dev/mapper/dut bs=1M count=1 oflag=direct conv=notrunc
check "gone: read through the cache" fails if=/dev/mapper/dut of=/dev/null bs=4k skip=9 count=1
check "gone: write through the cache and fsync" fails if=/dev/zero of=/dev/mapper/dut bs=64k count=9 conv=notrunc,fsync
check "gone: suspend" timeout 10 dmsetup suspend dut
check "gone: resume" timeout 10 dmsetup resume dut
check "gone: the mapping can be removed" timeout 10 dmsetup remove dut
check "gone: so can the disk's driver" unscsi

# ---- zoned ------------------------------------------------------------------------------------------

a=$(mkram 64 zoned=1 zone_size=4)
equal "zoned: it is" "$(attr "$a" queue/zoned)" host-managed
dmesg -C
control "zoned: refused" 1 'Invalid argument' map dut "$COFFER_TARGET" "$(table "$a")" 8192
dmesg | grep -i 'coffer: .*zoned' > "$WORK/words" || true
equal "zoned: refused in one line" "$(wc -l < "$WORK/words")" 1
check "zoned: which says so, and what can" grep -q 'Zoned devices are not supported, see dm-crypt' "$WORK/words"
none
# the same device is good enough for dm-crypt, so it was not refused for another reason
zoned_crypt() { map dut crypt "$(table "$a")" 131072 && unmap dut; }
check "zoned: dm-crypt takes it" zoned_crypt
freeram "$a"
finish
