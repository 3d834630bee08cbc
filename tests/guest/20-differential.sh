#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The same writes through dm-crypt on one store and through the target under test
# on another: both stores must be equal byte for byte, and each must read the
# other's. The requests, and the model that reads are compared with, are
# diffio's; a failure prints the seed that repeats it (COFFER_SEED).
#
# Invariant: both mappings have the same table but for the target's name, and the
# first MiB of each store lies outside, to be left alone.

set -euo pipefail
# shellcheck source=tests/guest/lib.sh
. "$(dirname "$0")/lib.sh"

insmod_coffer
seed=${COFFER_SEED:-$(date +%s)}
note "seed $seed"
diffio=$TOOLS/diffio
model=$WORK/model
key64=$(hexkey differential 64) key32=$(hexkey differential 32)
# User-Mode Linux has none
[ ! -e /proc/sys/vm/nr_hugepages ] || echo 16 > /proc/sys/vm/nr_hugepages

# Stores in pairs: what completes in the submission, in softirq, in hard irq; one that
# splits everything; one with large blocks.
declare -A store
store[brd]="$(mkbrd) $(mkbrd)"
store[soft]="$(mkram 12 irqmode=1) $(mkram 12 irqmode=1)"
store[hard]="$(mkram 12 irqmode=2 completion_nsec=20000) $(mkram 12 irqmode=2 completion_nsec=20000)"
store[small]="$(mkram 12 max_sectors=16 virt_boundary=1) $(mkram 12 max_sectors=16 virt_boundary=1)"
store[4kn]="$(mkram 12 blocksize=4096) $(mkram 12 blocksize=4096)"
for pair in "${store[@]}"; do
	for dev in $pair; do
		dd if=/dev/zero of="$dev" bs=1M count=1 oflag=direct status=none
	done
done

# two PAIR KEY IV_OFFSET UNIT LARGE SECTORS [1: swapped]: /dev/mapper/ref is dm-crypt and
# dut the target under test; swapped, each on the other's store
two()
{
	local a b opts='' n=0
	read -r a b <<< "${store[$1]}"
	[ -z "${7:-}" ] || read -r b a <<< "${store[$1]}"
	[ "$4" = 512 ] || { opts+=" sector_size:$4"; n=$((n + 1)); }
	[ "$5" = 0 ] || { opts+=" iv_large_sectors"; n=$((n + 1)); }
	[ $n = 0 ] || opts=" $n$opts"
	none
	map ref crypt "$AES $2 $3 $a 2048$opts" "$6"
	map dut "$COFFER_TARGET" "$AES $2 $3 $b 2048$opts" "$6"
}

none()
{
	! [ -e /dev/mapper/ref ] || unmap ref
	! [ -e /dev/mapper/dut ] || unmap dut
}

# both PAIR KEY IV UNIT LARGE SECTORS DIFFIO-OPTION...: the whole comparison
both()
{
	equal_stores "$@"
	two "${@:1:6}" swapped
	"$diffio" verify -m "$model" /dev/mapper/ref /dev/mapper/dut
	none
}

# ... without reading each store through the other target
equal_stores()
{
	local table=("${@:1:6}") stores
	read -ra stores <<< "${store[$1]}"
	shift 6
	two "${table[@]}"
	rm -f "$model"
	"$diffio" fill -s "$seed" -m "$model" /dev/mapper/ref /dev/mapper/dut
	"$diffio" run -s "$seed" -m "$model" "$@" /dev/mapper/ref /dev/mapper/dut
	"$diffio" verify -m "$model" /dev/mapper/ref /dev/mapper/dut
	none
	"$diffio" same "${stores[@]}"
}

# ---- every data unit, tweak and offset, briefly -----------------------------

n=0
pairs=(brd soft hard)
for unit in 512 1024 2048 4096; do
	for large in 0 1; do
		for iv in 0 8 4294967304; do
			pair=${pairs[n % 3]}
			key=$key64
			[ $((n % 4)) -ne 3 ] || key=$key32
			n=$((n + 1))
			compare=equal_stores
			[ $iv != 0 ] || compare=both
			check "unit $unit$([ $large = 0 ] || echo , large), iv_offset $iv, $((${#key} / 2))-byte key, $pair" \
				$compare "$pair" "$key" $iv $unit $large 4096 -n 30 -b 524288
		done
	done
done

# ---- large and odd requests ---------------------------------------------------

all=20480	# sectors: 10 MiB of the 12, so that the store's end is outside too
check "512, to 4 MiB, brd" both brd "$key64" 0 512 0 $all -n 40
check "4096, to 4 MiB, hard irq" both hard "$key64" 0 4096 0 $all -n 60
check "4096 large, depth 16, softirq" both soft "$key64" 8 4096 1 $all -n 100 -q 16 -b 524288
check "512, depth 8, hard irq" both hard "$key32" 8 512 0 $all -n 80 -q 8 -b 1048576
check "4096, store that takes 8 KiB at a time, virt_boundary" both small "$key64" 0 4096 0 $all -n 60
check "512, store that takes 8 KiB at a time, depth 8" both small "$key64" 0 512 0 $all -n 40 -q 8 -b 262144
check "512, store with blocks of 4096" both 4kn "$key64" 0 512 0 $all -n 40
check "4096 large, store with blocks of 4096" both 4kn "$key64" 8 4096 1 $all -n 40

# ---- memory that is not aligned -----------------------------------------------

unaligned()
{
	two "$1" "$key64" 0 "$2" 0 8192
	rm -f "$model"
	"$diffio" fill -s "$seed" -m "$model" /dev/mapper/ref /dev/mapper/dut
	"$diffio" unaligned -s "$seed" -n 250 -m "$model" /dev/mapper/ref /dev/mapper/dut
	"$diffio" verify -m "$model" /dev/mapper/ref /dev/mapper/dut
	# by the smallest alignment that the target itself says it takes
	"$diffio" run -s "$seed" -n 100 -b 262144 -m "$model" /dev/mapper/dut
	"$diffio" verify -m "$model" /dev/mapper/dut
	none
}
check "unaligned requests, unit 512, brd" unaligned brd 512
check "unaligned requests, unit 4096, softirq" unaligned soft 4096
check "unaligned requests, unit 1024, hard irq" unaligned hard 1024

# ---- can these checks fail? -----------------------------------------------------

read -r a b <<< "${store[soft]}"
check "equal stores to begin with" both soft "$key64" 0 4096 0 8192 -n 10
"$diffio" flip "$b" 3000001
control "one flipped bit on a store is found" 1 'store differs at byte 3000001' "$diffio" same "$a" "$b"
two soft "$key64" 0 4096 0 8192
control "one flipped bit is found through the mapping" 1 'dut: the content differs at byte 19' \
	"$diffio" verify -m "$model" /dev/mapper/dut
check "and only there" "$diffio" verify -m "$model" /dev/mapper/ref
two soft "$key32" 0 4096 0 8192
control "another key is found" 1 'the content differs at byte 0 ' \
	"$diffio" verify -m "$model" /dev/mapper/dut
control "run notices a wrong read" 1 'a read differs' \
	"$diffio" run -s 5 -n 50 -b 4096 -m "$model" /dev/mapper/dut
control "unaligned notices wrong content" 1 'neither old nor new|an unaligned read differs' \
	"$diffio" unaligned -s 5 -n 50 -m "$model" /dev/mapper/ref /dev/mapper/dut
# a mapping with larger blocks refuses what the other takes
none
map ref "$COFFER_TARGET" "$AES $key64 0 $a 2048" 8192
map dut "$COFFER_TARGET" "$AES $key64 0 $b 2048 1 sector_size:4096" 8192
"$diffio" fill -s "$seed" -m "$model" /dev/mapper/ref /dev/mapper/dut
control "unaligned notices a refusal" 1 'refuses .* that /dev/mapper/ref takes' \
	"$diffio" unaligned -s 5 -n 200 -m "$model" /dev/mapper/ref /dev/mapper/dut
none
dd if=/dev/zero of="$a" bs=1M count=12 oflag=direct status=none
dd if=/dev/zero of="$b" bs=1M count=12 oflag=direct status=none
control "stores that nobody wrote to prove nothing" 2 'nothing was written' "$diffio" same "$a" "$b"
[ ! -e /proc/sys/vm/nr_hugepages ] || echo 0 > /proc/sys/vm/nr_hugepages
finish
