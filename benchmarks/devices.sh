# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# To be sourced, as root, in a guest or on the machine itself: the backing store
# and the variants over it.
#
#   variant        unit        is
#   raw            0           the store itself
#   linear         0           dm-linear: what device-mapper costs without a cipher
#   dm-crypt       512, 4096   dm-crypt as it comes
#   dm-crypt-tuned 512, 4096   dm-crypt with no_read_workqueue no_write_workqueue
#   coffer         512, 4096
#   coffer-inline, coffer-fanout, coffer-handover
#                  512, 4096   coffer with one way forced on bios of any size: convert
#                              where we are, share among two CPUs, give to a worker
#
# All mappings lie over the same sectors of the same store and exist at the same
# time (device-mapper shares the claim of the store among its own mappings).
# An idle mapping costs the others nothing, while a fresh one would measure its
# cold pools and udev's look at it. As a side effect nothing else can mount the
# store while we use it.
#
# Invariants: nothing is written before a mapping holds the claim. What
# was set up here, and only that, is taken down by devices_remove.

prefix=coffer-bench
# 512 bits, two different halves; it protects nothing
bench_key=$(printf '%02x' {0..63})
mapped=()	# names, in order of creation
loaded=()	# modules that were not there before
store_dev=		# block device beneath everything
image_dir='' image_loop=''	# of store_image

devices_die() { echo "devices: $*" >&2; exit 1; }

# module NAME [PARAMETER...]: load it, and remember to unload it
module()
{
	local name=$1
	[ ! -d "/sys/module/$name" ] || return 0
	modprobe "$@" || devices_die "cannot load module $name"
	loaded+=("$name")
}

# A RAM disk: completes inside submission, so it shows the cost of the path and
# nothing else.
store_brd() # BYTES
{
	[ ! -d /sys/module/brd ] || devices_die "brd is in use by others"
	module brd rd_nr=1 rd_size=$(($1 / 1024)) max_part=0
	store_dev=/dev/ram0
}

# A modelled SSD: 80 us an I/O (SSD_NS), completions from a timer interrupt. More ATTRIBUTEs
# of null_blk may follow, as NAME=VALUE.
store_null_blk() # BYTES [ATTRIBUTE...]
{
	local dir=/sys/kernel/config/nullb/$prefix attribute
	module null_blk nr_devices=0
	mkdir "$dir" || devices_die "no configfs for null_blk"
	for attribute in size=$(($1 / 1048576)) memory_backed=1 irqmode=2 \
		completion_nsec="${SSD_NS:-80000}" "${@:2}"; do
		echo "${attribute#*=}" > "$dir/${attribute%%=*}" ||
			devices_die "null_blk does not take $attribute"
	done
	echo 1 > "$dir/power"
	store_dev=/dev/$(
		# up to 6.x nullb<index>, later the name of the directory
		[ -b "/dev/$prefix" ] && echo "$prefix" ||
			echo "nullb$(cat "$dir/index")")
}

# One with an end to its bandwidth, SSD_MBPS megabytes a second.
store_ssd() # BYTES
{
	store_null_blk "$1" "mbps=${SSD_MBPS:?}"
}

# One that can be polled.
store_polled() # BYTES
{
	store_null_blk "$1" poll_queues=1
}

# A file on ext4 on the modelled SSD, or on the device IMAGE_ON, three quarters of it: the store is
# a loop device with direct I/O over it.
store_image() # BYTES
{
	if [ -n "${IMAGE_ON-}" ]; then
		store_dev=$IMAGE_ON
	else
		store_ssd "$1"
	fi
	mkfs.ext4 -q -F "$store_dev" $(($1 / 1024))k || devices_die "no file system for the image"
	image_dir=/run/$prefix-image
	mkdir -p "$image_dir"
	mount "$store_dev" "$image_dir" || devices_die "cannot mount $store_dev"
	SIZE=$(($1 * 3 / 4 / 1048576 * 1048576))
	fallocate -l "$SIZE" "$image_dir/image" || devices_die "no room for the image"
	store_dev=$(losetup --find --show --direct-io=on "$image_dir/image") ||
		devices_die "no loop device"
	image_loop=$store_dev
}

# device_of VARIANT UNIT: the path to measure
device_of()
{
	if [ "$1" = raw ]; then
		echo "$store_dev"
	else
		echo "/dev/mapper/$prefix-$1-$2"
	fi
}

# table VARIANT UNIT SECTORS
table()
{
	local target=crypt opts=()
	case $1 in
	linear) echo "0 $3 linear $store_dev 0"; return ;;
	dm-crypt) ;;
	dm-crypt-tuned) opts+=(no_read_workqueue no_write_workqueue) ;;
	coffer) target=coffer ;;
	coffer-inline) target=coffer opts+=(inline:4294967295) ;;
	coffer-fanout) target=coffer opts+=(inline:1 fanout:2) ;;
	coffer-handover) target=coffer opts+=(inline:1 handover) ;;
	*) devices_die "unknown variant $1" ;;
	esac
	[ "$2" = 512 ] || opts+=("sector_size:$2" iv_large_sectors)
	echo "0 $3 $target aes-xts-plain64 $bench_key 0 $store_dev 0 ${#opts[*]} ${opts[*]}"
}

# load_target VARIANT: the module behind it. Coffer is the file $COFFER_MODULE.
load_target()
{
	case $1 in
	dm-crypt*) module dm_crypt ;;
	coffer*)
		[ ! -d /sys/module/dm_coffer ] || return 0
		insmod "$COFFER_MODULE" || devices_die "cannot load $COFFER_MODULE"
		loaded+=(dm_coffer)
		;;
	esac
}

# devices_map VARIANT UNIT BYTES [--readonly]
devices_map()
{
	local name=$prefix-$1-$2
	[ "$1" != raw ] || return 0
	load_target "$1"
	table "$1" "$2" $(($3 / 512)) | dmsetup create "$name" "${@:4}" ||
		devices_die "cannot map $1 with data unit $2 over $store_dev"
	mapped+=("$name")
}

# Give every block of the store a content, through a mapping, which holds the claim.
devices_precondition() # BYTES
{
	local name=$prefix-fill
	echo "0 $(($1 / 512)) linear $store_dev 0" | dmsetup create "$name" ||
		devices_die "$store_dev is in use"
	mapped+=("$name")
	[ -b "/dev/mapper/$name" ] || devices_die "$name is not a block device"
	fio --name=precondition --filename="/dev/mapper/$name" --size="$1" \
		--rw=write --bs=1M --direct=1 --allow_file_create=0 --thread \
		--output=/dev/null || devices_die "preconditioning failed"
	dmsetup remove --retry "$name"
	unset 'mapped[-1]'
}

# cipher_of VARIANT UNIT: the name of the cipher driver that serves it
cipher_of()
{
	case $1 in
	coffer*)
		dmsetup status "$prefix-$1-$2" | grep -o '[a-z0-9_()-]*xts[a-z0-9_()-]*' |
			head -n 1 ;;
	dm-crypt*)
		# it asks for xts(aes) and gets what has the highest priority
		awk -v RS= -F'\n' '
		{
			split("", f)
			for (i = 1; i <= NF; i++)
				if (split($i, kv, / *: */) == 2)
					f[kv[1]] = kv[2]
		}
		f["name"] == "xts(aes)" && f["internal"] == "no" &&
				f["priority"] + 0 >= best {
			best = f["priority"] + 0
			driver = f["driver"]
		}
		END { print driver }' /proc/crypto ;;
	esac
}

# devices_open VARIANTS: STORE (brd, null_blk, ssd, polled, image or a device) of SIZE bytes, and all
# VARIANTS, lines of "variant unit", over it. Nothing is written where READONLY is set. SIZE
# becomes what there is to use.
devices_open()
{
	local variant unit
	module dm_mod
	modprobe -q aesni_intel || :
	case $STORE in
	brd | null_blk | ssd | polled | image) "store_$STORE" "$SIZE" ;;
	*) store_dev=$STORE ;;
	esac
	[ -b "$store_dev" ] || devices_die "$store_dev is not a block device"

	[ -n "${READONLY-}" ] || devices_precondition "$SIZE"
	while read -r variant unit; do
		devices_map "$variant" "$unit" "$SIZE" ${READONLY:+--readonly}
		[ -b "$(device_of "$variant" "$unit")" ] ||
			devices_die "$(device_of "$variant" "$unit") is not a block device"
	done <<< "$1"
	! command -v udevadm > /dev/null || udevadm settle || :
}

read_or() { cat "$1" 2> /dev/null || echo "$2"; }

# devices_facts VARIANTS: for the record, lines of KEY=VALUE
devices_facts()
{
	local variant unit queue
	queue=/sys/class/block/$(basename "$store_dev")/queue
	echo "kernel=$(uname -r)"
	echo "cpu=$(sed -n 's/^model name[[:space:]]*: //p' /proc/cpuinfo | head -n 1)"
	echo "cpus=$(nproc)"
	echo "governor=$(read_or /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor none)"
	echo "clocksource=$(cat /sys/devices/system/clocksource/clocksource0/current_clocksource)"
	echo "fio=$(fio --version)"
	echo "store=$STORE${SSD_MBPS:+ of $SSD_MBPS MB/s}${SSD_NS:+ and $SSD_NS ns an I/O}, $((SIZE / 1048576)) MiB, $(
		[ -n "${READONLY-}" ] && echo "as found" || echo preconditioned)"
	echo "scheduler=$(read_or "$queue/scheduler" none)"
	while read -r variant unit; do
		[ "$unit" = 0 ] ||
			echo "cipher $variant $unit=$(cipher_of "$variant" "$unit")"
	done <<< "$1"
	case " ${loaded[*]} " in
	*" dm_coffer "*) echo "coffer module=sha256 $(
		sha256sum "$COFFER_MODULE" | cut -c 1-16)" ;;
	*) [ ! -d /sys/module/dm_coffer ] ||
		echo "coffer module=was loaded before, not by us" ;;
	esac
}

devices_remove()
{
	local i
	for ((i = ${#mapped[*]} - 1; i >= 0; i--)); do
		dmsetup remove --retry "${mapped[i]}" || :
	done
	[ -z "$image_loop" ] || losetup -d "$image_loop" || :
	if [ -n "$image_dir" ]; then
		umount "$image_dir" || :
		rmdir "$image_dir" || :
	fi
	[ ! -d "/sys/kernel/config/nullb/$prefix" ] ||
		rmdir "/sys/kernel/config/nullb/$prefix" || :
	for ((i = ${#loaded[*]} - 1; i >= 0; i--)); do
		# dm_crypt may have found another user by now
		rmmod "${loaded[i]}" || :
	done
	mapped=() loaded=() image_dir='' image_loop=''
}
