#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The cipher must be the CPU's AES instructions, not the generic code that a
# synchronous request silently gets on kernels before 7.0. The driver's name is the first
# word of the status line.

set -euo pipefail
# shellcheck source=tests/guest/lib.sh
. "$(dirname "$0")/lib.sh"

insmod_coffer
store=$(mkram 1)

# What the stock kernel has on a CPU with AES-NI, AVX and perhaps VAES. The emulated
# CPU has them all; 7.x names its drivers without aesni where they are VAES.
case $COFFER_KERNEL in
6.1) want='xts-aes-aesni' ;;
*) want='xts-aes-(aesni-avx|vaes-avx[0-9_]+)' ;;
esac

# fast NAME: is this the driver of the AES instructions?
fast()
{
	grep -Eq "^(__)?$want\$" <<< "$1" || { echo "driver is '$1', want $want"; return 1; }
}

# Nobody has loaded the accelerated driver yet: the machine has, so it is unloaded. What
# uses it, and the generic code in its stead, go first.
unloaded()
{
	local driver
	! grep -q '^dm_coffer ' /proc/modules || rmmod dm_coffer
	rmmod aesni_intel
	if grep 'xts-aes-aesni\|xts-aes-vaes' /proc/crypto; then
		return 1
	fi
	insmod_coffer
	map cipher "$COFFER_TARGET" "$AES $(hexkey cipher 64) 0 $store 0"
	read -r _ _ _ driver _ < <(dmsetup status cipher) || true
	unmap cipher
	fast "${driver:-}"
}
check "the driver of the AES instructions is loaded if it has to be" unloaded

for bytes in 32 64; do
	for unit in 512 4096; do
		map cipher "$COFFER_TARGET" "$AES $(hexkey cipher $bytes) 0 $store 0 1 sector_size:$unit"
		read -r _ _ target driver _ < <(dmsetup status cipher) || true
		equal "$bytes-byte key, unit $unit: the status is our target's" "$target" "$COFFER_TARGET"
		check "$bytes-byte key, unit $unit: AES instructions are used" fast "${driver:-}"
		check "$bytes-byte key, unit $unit: /proc/crypto knows the driver" \
			grep -Eq "^driver +: ${driver:-none}\$" /proc/crypto
		unmap cipher
	done
done
for name in 'xts(ecb-aes-generic)' 'xts(ecb(aes-generic))' 'xts(ecb-aes-aesni)' xts-aes-aesni-x \
		ecb-aes-aesni 'cryptd(__xts-aes-aesni)' ''; do
	control "'$name' is not taken for it" 1 'want' fast "$name"
done
finish
