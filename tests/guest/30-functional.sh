#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The target as its users meet it: file systems, fio's verification, LUKS volumes
# of stock cryptsetup, flush, FUA and discard, suspend and reload under load,
# resize, read-only, errors from below, accounting. Where dm-crypt's behaviour
# is the measure, it is done on dm-crypt in the same run.

set -euo pipefail
# shellcheck source=tests/guest/lib.sh
. "$(dirname "$0")/lib.sh"

insmod_coffer
key=$(hexkey functional 64)
key2=$(hexkey functional-2 64)
seed=${COFFER_SEED:-$(date +%s)}
note "seed $seed"
T=$COFFER_TARGET

# section NAME: leaves no mapping of an earlier section that failed
section()
{
	local name
	for name in $(dmsetup ls 2> /dev/null | grep -v '^No devices' | cut -f1 | tac); do
		dmsetup resume "$name" 2> /dev/null || true
		dmsetup remove --retry "$name" || true
	done
	note "$1 ($SECONDS s)"
}

kname() { dmsetup info -c --noheadings -o blkdevname "$1"; }
queue() { cat "/sys/block/$(kname "$1")/queue/$2"; }	# MAPPING FILE
refused() { ! "$@" || { echo "'$*' was not refused"; return 1; }; }

dd if=/dev/urandom of="$WORK/random" bs=1M count=4 iflag=fullblock status=none

# ---- file systems -----------------------------------------------------------------

section 'file systems'
disk=$(mkram 160 irqmode=2 completion_nsec=10000)
mkdir -p "$WORK/tree/small" "$WORK/mnt"
dd if=/dev/urandom bs=1M count=12 iflag=fullblock status=none | split -b 299k - "$WORK/tree/part."
for i in {1..150}; do
	printf 'file %s of the tree\n%*s' "$i" $((i * 37)) '' > "$WORK/tree/small/$i"
done
(cd "$WORK/tree" && find . -type f -exec sha256sum {} + > "$WORK/sums")
modprobe -q -a ext4 xfs btrfs || true

tree_is_good() { (cd "$WORK/mnt/$1" && sha256sum --quiet -c "$WORK/sums"); }

fs_make()
{
	case $1 in
	ext4) mkfs.ext4 -q -F "$2" ;;
	xfs) TEST_DIR=1 TEST_DEV=1 QA_CHECK_FS=1 mkfs.xfs -q -f "$2" ;;
	btrfs) mkfs.btrfs -q -f -m single -d single "$2" ;;
	esac
}

fs_fsck()
{
	case $1 in
	ext4) e2fsck -fn "$2" ;;
	xfs) xfs_repair -n "$2" ;;
	btrfs) btrfs check --readonly "$2" ;;
	esac
}

filesystem()
{
	local table="$AES $key 0 $disk 0 $2"
	map fs "$T" "$table"
	fs_make "$1" /dev/mapper/fs
	mount -t "$1" /dev/mapper/fs "$WORK/mnt"
	cp -r "$WORK/tree" "$WORK/mnt/a"
	umount "$WORK/mnt"
	mount -t "$1" /dev/mapper/fs "$WORK/mnt"
	tree_is_good a
	rm -r "$WORK/mnt/a/small"
	cp -r "$WORK/tree" "$WORK/mnt/b"
	cp -r "$WORK/tree/small" "$WORK/mnt/a/small"
	sync -f "$WORK/mnt"
	[ "$1" != btrfs ] || btrfs scrub start -B "$WORK/mnt" | tee /dev/stderr | grep -q 'no errors found'
	umount "$WORK/mnt"
	fs_fsck "$1" /dev/mapper/fs
	unmap fs
	# what we wrote, dm-crypt reads
	map fs crypt "$table" '' --readonly
	mount -t "$1" -o ro /dev/mapper/fs "$WORK/mnt"
	tree_is_good a
	tree_is_good b
	umount "$WORK/mnt"
	unmap fs
}

for fs in xfs btrfs ext4; do
	if ! grep -qw $fs /proc/filesystems; then
		skip "$fs" 'not in this kernel'
		continue
	fi
	options='1 sector_size:4096'
	[ $fs != xfs ] || options=''
	check "$fs on ${options:-512-byte data units}: files, remount, fsck, and dm-crypt reads it" \
		filesystem $fs "$options"
	mountpoint -q "$WORK/mnt" && umount "$WORK/mnt"
	section "$fs done"
done

# spoil the store beneath ext4: the checks above must be able to see that
spoiled()
{
	map fs "$T" "$AES $key 0 $disk 0 1 sector_size:4096"
	mount -t ext4 -o ro /dev/mapper/fs "$WORK/mnt"
	tree_is_good a && tree_is_good b
}
dd if=/dev/urandom of="$disk" bs=1M seek=24 count=64 oflag=direct status=none
control 'damage on the store is seen in the files' 1 'FAILED|[Ii]nput/output|did NOT match|Structure needs cleaning' spoiled
mountpoint -q "$WORK/mnt" && umount "$WORK/mnt"
section 'fio'
freeram "$disk"

# ---- fio --------------------------------------------------------------------------------

disk=$(mkram 48 irqmode=2 completion_nsec=10000 submit_queues=2)

verify()	# ENGINE DEPTH FIO-OPTION...
{
	local engine=$1 depth=$2
	shift 2
	fio --name=verify --filename=/dev/mapper/fio --direct=1 --ioengine="$engine" --iodepth="$depth" \
		--rw=randwrite --verify=crc32c --verify_fatal=1 --randseed="$seed" --allrandrepeat=1 \
		--group_reporting --output-format=terse --size=24m "$@"
}

map fio "$T" "$AES $key 0 $disk 2048 1 sector_size:4096"
check 'fio: libaio, depth 32, 4 to 128 KiB, unit 4096' verify libaio 32 --bsrange=4k-128k
check 'fio: io_uring, depth 256, 4 KiB, unit 4096' verify io_uring 256 --bs=4k --size=12m
unmap fio
map fio "$T" "$AES $key 0 $disk 2048"
check 'fio: io_uring, depth 32, 4 to 128 KiB, unit 512' verify io_uring 32 --bsrange=4k-128k
check 'fio: libaio, depth 256, 4 KiB, unit 512' verify libaio 256 --bs=4k --size=8m
check 'fio: 512-byte requests, depth 32' verify libaio 32 --bs=512 --size=1m
check 'fio: 1 MiB requests, depth 8' verify io_uring 8 --bs=1m
check 'fio: two jobs, fixed buffers' verify io_uring 32 --bs=16k --numjobs=2 --size=8m --offset_increment=16m --fixedbufs
check 'fio: content for the control' verify libaio 8 --bs=16k --size=4m
"$TOOLS/diffio" flip "$disk" $((1048576 + 3000000))
control 'fio finds a flipped bit' 1 'verify|bad header|crc32c' \
	verify libaio 8 --bs=16k --size=4m --verify_only
unmap fio

# ---- suspend, reload, and the other target, under load --------------------------------------

section 'reload under load'
cycles()	# TABLE...: while fio runs, one after the other
{
	local n=0 pid status=0 table
	verify libaio 16 --bsrange=4k-64k --size=40m > "$WORK/fio.log" 2>&1 &
	pid=$!
	while kill -0 $pid 2> /dev/null; do
		for table in "$@"; do
			dmsetup reload fio --table "$table"
			dmsetup suspend fio
			dmsetup resume fio
			n=$((n + 1))
		done
	done
	wait $pid || status=$?
	[ $status -eq 0 ] || { tail -n 5 "$WORK/fio.log"; return 1; }
	[ $n -ge 4 ] || { echo "only $n reloads while fio ran"; return 1; }
	echo "$n reloads"
}
size=$(($(sectors "$disk") - 2048))
line="0 $size $T $AES $key 0 $disk 2048 1 sector_size:4096"
map fio "$T" "$AES $key 0 $disk 2048 1 sector_size:4096"
check 'suspend, reload and resume while fio writes and verifies' cycles "$line" "${line/1 sector/2 allow_discards sector}"
note "$(tail -n 1 "$WORK/check.log")"
check 'to dm-crypt and back while fio writes and verifies' cycles "${line/ $T / crypt }" "$line"
unmap fio

# ---- LUKS ------------------------------------------------------------------------------------

section LUKS
freeram "$disk"
disk=$(mkram 40)
printf 'a passphrase' > "$WORK/pass"

luks()	# TYPE SECTOR_SIZE
{
	local offset vk options='' format=()
	[ "$1" = luks1 ] || format=(--pbkdf pbkdf2 --sector-size "$2")
	cryptsetup luksFormat --batch-mode --type "$1" "${format[@]}" --pbkdf-force-iterations 1000 \
		--cipher aes-xts-plain64 --key-size 512 --key-file "$WORK/pass" "$disk"
	cryptsetup luksOpen --key-file "$WORK/pass" "$disk" luks
	put "$WORK/random" /dev/mapper/luks 0 4194304
	offset=$(dmsetup table luks | awk '{ print $8 }')
	cryptsetup close luks
	rm -f "$WORK/vk"
	cryptsetup luksDump --batch-mode --dump-volume-key --volume-key-file "$WORK/vk" --key-file "$WORK/pass" "$disk" > /dev/null
	vk=$(od -An -v -tx1 "$WORK/vk" | tr -d ' \n')
	[ ${#vk} -eq 128 ] || { echo "volume key of ${#vk} digits"; return 1; }
	[ "$2" = 512 ] || options=" 1 sector_size:$2"
	map ours "$T" "$AES $vk 0 $disk $offset$options"
	is "$WORK/random" /dev/mapper/ours 0 4194304 || { echo 'we read something else'; return 1; }
	tail -c 1048576 "$WORK/random" > "$WORK/more"
	put "$WORK/more" /dev/mapper/ours 1048576 1048576
	unmap ours
	cryptsetup luksOpen --key-file "$WORK/pass" "$disk" luks
	is "$WORK/more" /dev/mapper/luks 1048576 1048576 || { echo 'cryptsetup reads something else'; return 1; }
	is "$WORK/random" /dev/mapper/luks 0 1048576
	cryptsetup close luks
}
check 'LUKS2, 4096: what cryptsetup wrote we read, and the reverse' luks luks2 4096
section 'LUKS2, 512'
check 'LUKS2, 512: what cryptsetup wrote we read, and the reverse' luks luks2 512
section 'LUKS1'
check 'LUKS1: what cryptsetup wrote we read, and the reverse' luks luks1 512

# ---- flush, FUA, discard ---------------------------------------------------------------------------

section 'flush, FUA, discard'
freeram "$disk"
disk=$(mkram 16 discard=1)
log=$(mkram 32)
modprobe dm-log-writes

logged()	# TARGET OUT: a fixed sequence through TARGET, and what arrived below
{
	local m=/dev/mapper/logged i
	dd if=/dev/zero of="$log" bs=1M count=1 oflag=direct status=none
	map below log-writes "$disk $log" "$(sectors "$disk")"
	map logged "$1" "$AES $key 0 /dev/mapper/below 2048 2 allow_discards sector_size:4096" $(($(sectors "$disk") - 2048))
	for i in 5 3 9; do
		put "$WORK/random" $m $((i * 4096)) 4096
	done
	dd if="$WORK/random" of=$m bs=4k seek=20 count=3 oflag=direct,dsync conv=notrunc status=none
	dd if="$WORK/random" of=$m bs=8k seek=30 count=2 oflag=direct conv=notrunc,fsync status=none
	blkdiscard -o 262144 -l 131072 $m
	put "$WORK/random" $m 0 65536
	dmsetup message below 0 mark end-of-test
	unmap logged below
	"$TOOLS/logwrites" "$log" > "$2"
	grep -q '^mark end-of-test' "$2"
}
check 'flush and FUA: log of what dm-crypt sends' logged crypt "$WORK/log.crypt"
check 'flush and FUA: log of what we send' logged "$T" "$WORK/log.ours"
check 'flush and FUA: the same requests, flags and bytes in the same order' diff "$WORK/log.crypt" "$WORK/log.ours"
check 'flush and FUA: there were flushes' grep -Eq '^[0-9]+ [0-9]+ F' "$WORK/log.ours"
check 'flush and FUA: there was FUA' grep -Eq '^[0-9]+ [0-9]+ F?U' "$WORK/log.ours"
check 'flush and FUA: there was a discard' grep -Eq '^[0-9]+ [0-9]+ D' "$WORK/log.ours"
sed '0,/ F\?U/s/ F\?U / - /' "$WORK/log.ours" > "$WORK/log.lost"
control 'a FUA that is lost is seen' 1 '^[<>] [0-9]+ [0-9]+ -' diff "$WORK/log.crypt" "$WORK/log.lost"

section 'discard'
discard()	# the middle MiB of three
{
	local m=/dev/mapper/discard i
	map discard "$T" "$AES $key 0 $disk 0 $1"
	for i in 0 1 2; do put "$WORK/random" $m $((i * 1048576)) 1048576; done
	get "$disk" 1048576 1048576 > "$WORK/cipher"
	case $1 in
	*allow_discards*)
		blkdiscard -o 1048576 -l 1048576 $m
		is /dev/zero "$disk" 1048576 1048576 || { echo 'not discarded'; return 1; }
		[ "$(queue discard discard_max_bytes)" -gt 0 ] ;;
	*)
		refused blkdiscard -o 1048576 -l 1048576 $m
		is "$WORK/cipher" "$disk" 1048576 1048576 || { echo 'discarded all the same'; return 1; }
		[ "$(queue discard discard_max_bytes)" -eq 0 ] ;;
	esac
	for i in 0 2; do
		is "$WORK/random" $m $((i * 1048576)) 1048576 || { echo "MiB $i is gone"; return 1; }
	done
	unmap discard
}
check 'discard: passed on with allow_discards' discard '1 allow_discards'
check 'discard: the same with data units of 4096' discard '2 allow_discards sector_size:4096'
section 'no discard'
check 'discard: refused without allow_discards' discard ''

section 'zeroes'
zeroout()
{
	local m=/dev/mapper/zero
	map zero "$T" "$AES $key 0 $disk 0 $1"
	put "$WORK/random" $m 0 4194304
	blkdiscard -z -o 1048576 -l 2097152 $m
	is /dev/zero $m 1048576 2097152 || { echo 'not zero through the mapping'; return 1; }
	is "$WORK/random" $m 0 1048576
	get $m 3145728 1048576 > "$WORK/last"
	tail -c 1048576 "$WORK/random" | cmp - "$WORK/last"
	if is /dev/zero "$disk" 1048576 2097152; then
		echo 'zeroes were not encrypted'
		return 1
	fi
	[ "$(queue zero write_zeroes_max_bytes)" -eq 0 ]
	unmap zero
}
check 'BLKZEROOUT: reads back as zeroes, which are encrypted below' zeroout ''
section 'zeroes, with discards'
check 'BLKZEROOUT: the same with discards allowed' zeroout '2 allow_discards sector_size:4096'

# ---- limits ---------------------------------------------------------------------------------------------

section 'queue limits'
limits()	# DM-CRYPT'S-STORE OUR-STORE OPTIONS: compare all of queue/
{
	local f theirs ours bad=0 dir compared=0
	map a crypt "$AES $key 0 $1 0 $3"
	map b "$T" "$AES $key 0 $2 0 $3"
	dir=/sys/block/$(kname b)/queue
	for f in "/sys/block/$(kname a)/queue"/*; do
		case ${f##*/} in
		# what we allow and dm-crypt does not: polling, and larger requests in one piece
		io_poll | io_poll_delay | nr_requests | scheduler | max_sectors_kb | max_hw_sectors_kb) continue ;;
		max_segments | max_segment_size | atomic_write_*) continue ;;
		esac
		# some cannot be read on a device without requests
		if ! [ -f "$f" ] || ! read -r theirs < "$f"; then continue; fi
		ours=none
		[ ! -e "$dir/${f##*/}" ] || read -r ours < "$dir/${f##*/}" || true
		compared=$((compared + 1))
		[ "$theirs" = "$ours" ] || { echo "${f##*/}: dm-crypt $theirs, $T $ours"; bad=1; }
	done
	unmap b a
	[ $compared -gt 15 ] || { echo "only $compared limits"; return 1; }
	return $bad
}
big=$(mkram 16 blocksize=4096)
cached=$(mkram 16 cache_size=4)
small=$(mkram 16 max_sectors=16 virt_boundary=1)
for options in '' '1 allow_discards' '1 sector_size:4096' '2 sector_size:1024 allow_discards'; do
	check "limits are dm-crypt's: $options" limits "$disk" "$disk" "$options"
done
check "limits are dm-crypt's: blocks of 4096 below" limits "$big" "$big" ''
check "limits are dm-crypt's: write cache below" limits "$cached" "$cached" '1 sector_size:4096'
check "limits are dm-crypt's: small requests below" limits "$small" "$small" ''
section 'limits, control'
control 'another limit would be seen' 1 'logical_block_size: dm-crypt 512, .* 4096' limits "$disk" "$big" ''

# ---- status -------------------------------------------------------------------------------------------------

section 'status and accounting'
counter()	# the number after a word of the status line
{
	dmsetup status stat | tr ' ' '\n' | grep -Ex -A1 "$1" | sed -n 2p
}

accounting()
{
	local m=/dev/mapper/stat before after
	read -ra before < "/sys/block/$(kname stat)/stat"
	dd if="$WORK/random" of=$m bs=4M count=1 oflag=direct iflag=fullblock conv=notrunc status=none
	dd if="$WORK/random" of=$m bs=68k count=7 seek=20 oflag=direct conv=notrunc status=none
	dd if=$m of=/dev/null bs=2M count=3 iflag=direct status=none
	dd if=$m of=/dev/null bs=4k count=9 iflag=direct status=none
	read -ra after < "/sys/block/$(kname stat)/stat"
	read_sectors=$((after[2] - before[2]))
	written_sectors=$((after[6] - before[6]))
	echo "read $read_sectors written $written_sectors"
	[ $read_sectors -eq $(((3 * 2097152 + 9 * 4096) / 512)) ] &&
		[ $written_sectors -eq $(((4194304 + 7 * 69632) / 512)) ]
}
map stat "$T" "$AES $key 0 $disk 0"
check 'sectors in /sys/block/*/stat are those that were read and written' accounting
unmap stat
map stat "$T" "$AES $key 0 $small 0"
check 'the same on a store that splits everything' accounting
if [ "$T" = coffer ]; then
	read -r _ _ name driver rest < <(dmsetup status stat) || true
	equal 'status: target name' "$name" coffer
	check 'status: cipher driver first' grep -Eq 'xts.*aes' <<< "$driver"
	check "status: then the key's state, names and numbers" \
		grep -Eqx 'key_(set|wiped)( [a-z_]+ [0-9]+)+' <<< "$rest"
	r=$(counter read) w=$(counter 'writ(e|ten)')
	check 'bytes read and written again, for the counters' accounting
	equal 'status: bytes read' $(($(counter read) - r)) $((3 * 2097152 + 9 * 4096))
	equal 'status: bytes written' $(($(counter 'writ(e|ten)') - w)) $((4194304 + 7 * 69632))
	equal 'status: no errors' "$(counter errors)" 0
else
	skip 'status: counters' 'dm-crypt has none'
fi
unmap stat
map stat "$T" "$AES $key2 24 $disk 16 4 allow_discards sector_size:4096 iv_large_sectors no_read_workqueue" 4096
line=$(dmsetup table stat)
line=${line/ $key2 / KEY }
line=${line/ $(printf 'x%.0s' {1..128}) / KEY }
line=${line/ $(printf '0%.0s' {1..128}) / KEY }
number=$(lsblk -dno MAJ:MIN "$disk" | tr -d ' ')
equal 'table: all that was given is in it' "$line" \
	"0 4096 $T $AES KEY 24 $number 16 4 allow_discards no_read_workqueue sector_size:4096 iv_large_sectors"

# ---- read-only, resize, module ------------------------------------------------------------------------------------

section 'read-only'
readonly_mapping()
{
	map ro "$T" "$AES $key 0 $disk 0"
	put "$WORK/random" /dev/mapper/ro 0 65536
	unmap ro
	map ro "$T" "$AES $key 0 $disk 0" '' --readonly
	is "$WORK/random" /dev/mapper/ro 0 65536
	refused put /dev/zero /dev/mapper/ro 0 4096
	refused blkdiscard -z -o 0 -l 4096 /dev/mapper/ro
	is "$WORK/random" /dev/mapper/ro 0 65536
	unmap ro
}
check 'read-only mapping: reads, and refuses to write' readonly_mapping

section 'resize'
resize()
{
	local m=/dev/mapper/grow end=$((8192 * 512))
	map grow "$T" "$AES $key 0 $disk 0 1 sector_size:4096" 8192
	put "$WORK/random" $m 0 4194304
	refused put "$WORK/random" $m $end 4096
	dmsetup reload grow --table "0 16384 $T $AES $key 0 $disk 0 1 sector_size:4096"
	dmsetup suspend grow
	dmsetup resume grow
	[ "$(sectors $m)" = 16384 ] || { echo "$(sectors $m) sectors after growing"; return 1; }
	is "$WORK/random" $m 0 4194304
	put "$WORK/random" $m $end 1048576
	is "$WORK/random" $m $end 1048576
	# to a length that is not whole data units: refused, and the old table goes on
	refused dmsetup reload grow --table "0 16385 $T $AES $key 0 $disk 0 1 sector_size:4096"
	refused dmsetup reload grow --table "0 99999992 $T $AES $key 0 $disk 0 1 sector_size:4096"
	[ "$(dmsetup info -c --noheadings -o suspended grow)" = Active ] || { echo 'left suspended'; return 1; }
	is "$WORK/random" $m 0 4194304
	dmsetup reload grow --table "0 8192 $T $AES $key 0 $disk 0 1 sector_size:4096"
	dmsetup suspend grow
	dmsetup resume grow
	[ "$(sectors $m)" = 8192 ] || { echo "$(sectors $m) sectors after shrinking"; return 1; }
	refused put "$WORK/random" $m $end 4096
	is "$WORK/random" $m 0 4194304
	unmap grow
}
check 'resize by reload: grows, refuses, shrinks' resize

section 'names'
renamed()
{
	map one "$T" "$AES $key 0 $disk 0" 8192
	dmsetup rename one two
	_undo 'dmsetup remove --retry two'
	map one "$T" "$AES $key2 0 $disk 8192" 8192
	put "$WORK/random" /dev/mapper/one 0 65536
	put "$WORK/random" /dev/mapper/two 0 65536
	is "$WORK/random" /dev/mapper/one 0 65536
	is "$WORK/random" /dev/mapper/two 0 65536
	unmap one two
}
check 'a renamed mapping, and a new one with its old name' renamed
module_stays()
{
	map held "$T" "$AES $key 0 $disk 0"
	refused rmmod "$MODULE"
	[ "$(cat "/sys/module/$MODULE/refcnt")" -gt 0 ] || { echo 'not counted'; return 1; }
	unmap held
	[ "$(cat "/sys/module/$MODULE/refcnt")" -eq 0 ] || { echo 'still counted'; return 1; }
}
check 'the module does not go while a mapping is there' module_stays

# ---- errors from below -------------------------------------------------------------------------------------------------

section 'errors from below'
# sectors 1024 to 1031 of the device below fail
broken="0 1024 linear $disk 0
1024 8 error
1032 3064 linear $disk 1032"
errors()	# TARGET: which requests fail, one line each
{
	local m=/dev/mapper/above at
	dmsetup create below --table "0 4096 linear $disk 0"
	_undo 'dmsetup remove --retry below'
	map above "$1" "$AES $key 0 /dev/mapper/below 0 1 sector_size:4096" 4096
	put "$WORK/random" $m 0 2097152
	dmsetup reload below <<< "$broken"
	dmsetup suspend below
	dmsetup resume below
	for at in 0 516096 520192 524288 528384 532480; do
		for what in read write; do
			if [ $what = read ]; then
				get $m $at 4096 > "$WORK/got" 2> /dev/null && echo "$what $at fine" || echo "$what $at fails"
			else
				dd if="$WORK/random" of=$m bs=4096 count=1 iflag=skip_bytes skip=$at seek=$at \
					oflag=direct,seek_bytes conv=notrunc status=none 2> /dev/null &&
					echo "$what $at fine" || echo "$what $at fails"
			fi
		done
	done
	get $m 0 1048576 > /dev/null 2>&1 && echo 'large read fine' || echo 'large read fails'
	put "$WORK/random" $m 0 1048576 2> /dev/null && echo 'large write fine' || echo 'large write fails'
	dmsetup reload below --table "0 4096 linear $disk 0"
	dmsetup suspend below
	dmsetup resume below
	get $m 1048576 1048576 > "$WORK/got"
	dd if="$WORK/random" bs=1M skip=1 count=1 status=none | cmp - "$WORK/got" || echo 'the rest is damaged'
	unmap above below
}
check 'errors: the requests that dm-crypt fails' errors crypt
sed -n '/fails\|fine\|damaged/p' "$WORK/check.log" > "$WORK/errors.crypt"
section 'errors, ours'
check 'errors: the requests that we fail' errors "$T"
sed -n '/fails\|fine\|damaged/p' "$WORK/check.log" > "$WORK/errors.ours"
check 'errors: the same ones' diff "$WORK/errors.crypt" "$WORK/errors.ours"
equal 'errors: the bad block and what covers it' "$(grep fails "$WORK/errors.ours" | tr '\n' ',')" \
	'read 524288 fails,write 524288 fails,large read fails,large write fails,'

section 'end'
finish
