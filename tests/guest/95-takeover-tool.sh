#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# "coffer takeover": what it asks for first, what the kernel then loads for unmodified
# cryptsetup, and that every way in which dm-coffer can be missing leads to dm-crypt. And
# the two commands that look at the machine: bench and doctor.
#
# Invariant: modprobe itself is tested, called by the kernel, not what the file says.

set -euo pipefail
# shellcheck source=tests/guest/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/guest/command.sh
. "$(dirname "$0")/command.sh"
only_in_check_all

conf=/etc/modprobe.d/coffer.conf
release=$(uname -r)
modules=/lib/modules/$release

loaded() { grep -q "^$1 " /proc/modules; }
absent() { ! loaded "$1"; }
unload()
{
	! loaded dm_coffer || rmmod dm_coffer
	! loaded dm_crypt || rmmod dm_crypt
}
# A tree of modules that is ours to change and small: to depmod all of them takes minutes here
copy_modules()
{
	local m path
	mkdir -p "$WORK/modules"
	cp "$modules"/modules.{builtin,builtin.modinfo,order} "$WORK/modules/"
	for m in dm-mod dm-crypt brd loop null_blk aesni-intel xts cbc essiv algif_hash algif_skcipher; do
		while read -r _ path _; do
			case $path in "$modules"/*)
				install -D -m 644 "$path" "$WORK/modules/${path#"$modules/"}" ;;
			esac
		done < <(modprobe --show-depends $m 2> /dev/null)
	done
	mount --bind "$WORK/modules" "$modules"
	_undo "umount $modules"
	depmod
}
copy_modules
install_module() { install -D -m 644 "$COFFER_MODULE" "$modules/updates/dm-coffer.ko"; depmod; }
remove_module() { rm -f "$modules/updates/dm-coffer.ko"; depmod; }
_undo unload
_undo "rm -f $conf /etc/crypttab"
[ ! -e /etc/crypttab ] || mv /etc/crypttab "$WORK/"
rm -f $conf

json() { coffer "$@" --json 2> /dev/null | tee -a "$WORK/printed"; }
field() { json "$1" "$2" | jq -r ".$3"; }
printf 'correct horse' > "$pw"
store=$(mkram 20)
cryptsetup luksFormat -q --type luks2 --pbkdf pbkdf2 --pbkdf-force-iterations 1000 "$store" "$pw"
# carrier: which module the kernel gives to cryptsetup
carrier()
{
	cryptsetup open --key-file "$pw" "$store" one || return
	if dmsetup status one | grep -q ' crypt .* key_set '; then echo coffer; else echo dm-crypt; fi
	cryptsetup close one
}

# ---- before ----------------------------------------------------------------------

unload
install_module
equal "nothing is configured" "$(field takeover status configured)" false
equal "cryptsetup is on dm-crypt" "$(carrier)" dm-crypt

map cbc crypt "aes-cbc-essiv:sha256 $(hexkey cbc 32) 0 $store 0"
control "on: an active mapping that cannot be moved is named" 13 'cbc: its cipher is aes-cbc-essiv:sha256' \
	coffer takeover on
check "on: refused: no file" test ! -e $conf
equal "status names it" "$(json takeover status | jq -c .unfit)" '["cbc: its cipher is aes-cbc-essiv:sha256"]'
unmap cbc

old=$(mkram 20)
cryptsetup luksFormat -q --type luks2 --cipher aes-cbc-essiv:sha256 --key-size 256 --pbkdf pbkdf2 \
	--pbkdf-force-iterations 1000 "$old" "$pw"
entry() { echo "$1" > /etc/crypttab; }
for line in "old $old none luks" "old $old none luks,discard" "old UUID=$(cryptsetup luksUUID "$old")"; do
	entry "$line"
	control "on: crypttab, '${line:0:16}': named" 13 'old in /etc/crypttab: .*aes-cbc-essiv:sha256' coffer takeover on
done
for options in tcrypt plain plain,cipher=aes-cbc-essiv:sha256,size=256 swap; do
	entry "old $old /dev/urandom $options"
	control "on: crypttab, $options: refused" 13 'old in /etc/crypttab' coffer takeover on
done
entry "#old $old none luks"
printf 'good %s none luks\nswap %s /dev/urandom swap,cipher=aes-xts-plain64,size=512\n' "$store" "$old" >> /etc/crypttab
equal "crypttab: what fits" "$(json takeover status | jq -c '[.unfit, .unknown]')" '[[],[]]'
check "on, with what fits" coffer takeover on
check "off" coffer takeover off
entry "gone /dev/nothere none luks"
check "on: a device that is not there is noted" sh -c "'$COFFER' takeover on 2>&1 | grep -q 'not checked: gone in /etc/crypttab'"
check "off again" coffer takeover off
rm /etc/crypttab
remove_module
unload
control "on: no module for this kernel" 12 'no module' coffer takeover on
check "on: no module: no file" test ! -e $conf
install_module

# ---- on ----------------------------------------------------------------------------

check "on" coffer takeover on
equal "on: in force at once" "$(field takeover status in_force)" true
equal "on: readable by all" "$(stat -c %a $conf)" 644
equal "on: cryptsetup is on coffer" "$(carrier)" coffer
unload
equal "on: the kernel loads it" "$(carrier)" coffer
cryptsetup open --key-file "$pw" "$store" one
_undo "dmsetup remove --retry one"
check "on: resize of what cryptsetup opened, no secret" coffer resize one --size 2M --force
equal "on: resize: the size" "$(size_of one)" 4096
check "on: resize: back" coffer resize one
cryptsetup close one
check "on: dm-crypt is not there" absent dm_crypt
check "on: again" coffer takeover on
control "open on dm-crypt: refused, says why" 12 'has taken over its name' \
	coffer open --driver dm-crypt --key-file "$pw" "$store" one
unload
check "on: modprobe dm-crypt" modprobe dm-crypt
check "on: modprobe dm-crypt: loads ours" loaded dm_coffer

# ---- every way to miss it leads to dm-crypt -------------------------------------------

unload
remove_module
equal "no module: dm-crypt" "$(carrier)" dm-crypt
unload
install_module
truncate -s 10000 "$modules/updates/dm-coffer.ko"
equal "a damaged module: dm-crypt" "$(carrier)" dm-crypt
unload
cp "$(modinfo -n brd)" "$modules/updates/dm-coffer.ko"
equal "another module of that name: dm-crypt" "$(carrier)" dm-crypt
unload
rmmod brd
install_module
insmod "$COFFER_MODULE"
equal "loaded by hand, without takeover: dm-crypt" "$(carrier)" dm-crypt
unload
# an initramfs may have no shell but this, and no programs
command=$(sed -n 's/^install dm-crypt //p' $conf)
for shell in dash 'busybox sh'; do
	read -ra words <<< "$shell"
	if ! words[0]=$(command -v "${words[0]}"); then
		skip "the command in $shell" "not installed"
		continue
	fi
	unload
	check "the command in $shell" env -i PATH=/nowhere "${words[@]}" -c "$command"
	check "the command in $shell: loads ours" loaded dm_coffer
done
unload

# ---- off, and files of others ------------------------------------------------------------

check "off" coffer takeover off
check "off: no file" test ! -e $conf
equal "off: dm-crypt" "$(carrier)" dm-crypt
check "off: twice" coffer takeover off
echo '# mine' > $conf
control "on: a foreign file" 15 'somebody else wrote it' coffer takeover on
control "off: a foreign file" 15 'somebody else wrote it' coffer takeover off
equal "a foreign file stays" "$(cat $conf)" '# mine'
rm $conf

check "in use: open" cryptsetup open --key-file "$pw" "$store" one
check "in use: on" coffer takeover on
equal "in use: not before the next boot" "$(field takeover status in_force)" false
equal "in use: configured" "$(field takeover status configured)" true
check "in use: the volume runs" dd if=/dev/mapper/one of=/dev/null bs=1M count=1 iflag=direct status=none
cryptsetup close one
coffer takeover off > /dev/null
unload

# ---- bench -----------------------------------------------------------------------------------

loops=$(nr_loops)
clean()
{
	if dmsetup ls | grep bench; then return 1; fi
	[ "$(nr_loops)" = "$loops" ] || { losetup -l; return 1; }
	absent dm_coffer || { echo "dm-coffer is loaded"; return 1; }
	absent dm_crypt || { echo "dm-crypt is loaded"; return 1; }
	[ "${1:-}" = brd ] || absent brd || { echo "brd is loaded"; return 1; }
}
json bench > "$WORK/all" || true
# lines of progress, then the result
jq -s 'last' "$WORK/all" > "$WORK/bench"
equal "bench: all of them" "$(jq '.results | length' "$WORK/bench")" 28
equal "bench: nothing is zero" "$(jq '[.results[] | select(.nanoseconds <= 0 or .bytes_per_second <= 0)] | length' "$WORK/bench")" 0
equal "bench: each driver with both data units" \
	"$(jq -c '[.results[] | select(.driver != "none") | [.driver, .data_unit]] | unique' "$WORK/bench")" \
	'[["coffer",512],["coffer",4096],["dm-crypt",512],["dm-crypt",4096]]'
# with encryption no request is faster than without: else something else was measured
time_of() { jq "[.results[] | select(.driver == \"$1\" and .data_unit == $2 and .block == 131072 and .operation == \"$3\")][0].nanoseconds" "$WORK/bench"; }
for op in read write; do
	for driver in coffer dm-crypt; do
		check "bench: 128K $op: $driver takes longer than none" \
			test "$(time_of $driver 4096 $op)" -gt "$(time_of none 512 $op)"
	done
done
equal "bench: on brd" "$(jq -r .disk "$WORK/bench")" brd
check "bench: names the cipher" grep -q 'aes' <(jq -r .cipher_driver "$WORK/bench")
check "bench: progress is told" test "$(wc -l < "$WORK/all")" -gt 3
check "bench: leaves nothing" clean
"$COFFER" bench > "$WORK/text" 2> /dev/null &
pid=$!
sleep 4
kill -INT $pid
status=0
wait $pid || status=$?
equal "bench: Ctrl-C" $status 17
check "bench: Ctrl-C: leaves nothing" clean
if command -v script > /dev/null; then
	script -qec "$COFFER bench" "$WORK/typescript" > /dev/null < /dev/null
	check "bench: a bar on a terminal" grep -q 'Measuring \[###' "$WORK/typescript"
	check "bench: a table" grep -Eq '^coffer, 4096 bytes +[0-9]+ +[0-9]+ +[0-9]+ +[0-9]+' "$WORK/typescript"
else
	skip "bench: a bar on a terminal" "no script(1)"
fi

modprobe brd rd_nr=1 rd_size=8192
dd if=/dev/urandom of=/dev/ram0 bs=1M count=8 status=none
before=$(sha256sum /dev/ram0)
json bench | jq -s last > "$WORK/bench"
equal "bench: brd is somebody's: a loop device" "$(jq -r .disk "$WORK/bench")" "loop device on a file in memory"
equal "bench: brd is somebody's: its content" "$(sha256sum /dev/ram0)" "$before"
check "bench: loop device: leaves nothing" clean brd
rmmod brd
remove_module
json bench | jq -s last > "$WORK/bench"
equal "bench: without our module" "$(jq -c '[.results[].driver] | unique' "$WORK/bench")" '["dm-crypt","none"]'
install_module
coffer takeover on > /dev/null
json bench | jq -s last > "$WORK/bench"
equal "bench: under takeover" "$(jq -c '[.results[].driver] | unique' "$WORK/bench")" '["coffer","none"]'
coffer takeover off > /dev/null
unload

# ---- doctor ------------------------------------------------------------------------------------

doctor() { coffer doctor > "$WORK/doctor" 2>&1; }
has() { grep -Eq -- "$1" "$WORK/doctor" || { cat "$WORK/doctor"; return 1; }; }
has_not() { ! grep -E -- "$1" "$WORK/doctor"; }
modinfo -F signer dm-crypt > /dev/null
rm -f /boot/vmlinuz-* /boot/initrd.img-*
check "doctor: a healthy machine" doctor
check "doctor: versions" has "^ok +versions: kernel ${release%%+*}.*, cryptsetup [0-9]"
check "doctor: processor" has '^(ok +processor: .*\(aes|warning +processor: .*without)'
check "doctor: module" has '^ok +module: dm-coffer is installed'
check "doctor: no warning, no failure" has '^0 failures, 0 warnings'
check "doctor: loads nothing" absent dm_coffer
insmod "$COFFER_MODULE"
doctor
check "doctor: the module is loaded" has '^ok +module: dm-coffer is loaded, target version [0-9]'
check "doctor: which cipher" has '^(ok|warning) +cipher: '
rmmod dm_coffer
remove_module
check "doctor: no module is no failure" doctor
check "doctor: no module is a warning" has '^warning +module: dm-coffer is not installed'
install_module
printf 'gone /dev/nothere none luks\n' > /etc/crypttab
control "doctor: a device that is not there" 1 'would keep a volume from opening' coffer doctor
doctor || true
check "doctor: it is named" has '^failure +crypttab: the device of gone is not there'
printf 'gone /dev/nothere none luks,noauto\n' > /etc/crypttab
check "doctor: one that need not be there" doctor
check "doctor: one that need not be there is a warning" has '^warning +crypttab: the device of gone'
printf 'old %s /etc/nokey luks\n' "$old" > /etc/crypttab
doctor || true
check "doctor: a key file that is not there" has '^failure +crypttab: the key file of old is not there: /etc/nokey'
printf 'old %s none luks\n' "$old" > /etc/crypttab
check "doctor: another cipher, no takeover" doctor
check "takeover on by force" coffer takeover on --force
control "doctor: another cipher, takeover" 1 'would keep' coffer doctor
doctor || true
check "doctor: it is named, and what to do" has '^failure +takeover: dm-coffer cannot open old in /etc/crypttab'
rm /etc/crypttab

touch /boot/vmlinuz-0.0-other "/boot/vmlinuz-$release"
doctor || true
check "doctor: a kernel without the module" has '^warning +next boot: kernel 0.0-other is installed, and has no dm-coffer'
check "doctor: not the one that has it" has_not "kernel $release is installed, and has no"
if command -v lsinitramfs > /dev/null; then
	initramfs()
	{
		rm -rf "$WORK/root"
		mkdir -p "$WORK/root/etc/modprobe.d" "$WORK/root/usr/lib/modules"
		for f in "$@"; do touch "$WORK/root/$f"; done
		(cd "$WORK/root" && find . | cpio -o -H newc --quiet) > "/boot/initrd.img-$release"
	}
	initramfs usr/lib/modules/other.ko
	doctor || true
	check "doctor: takeover, and an initramfs without the module" has '^warning +initramfs: .*has no dm-coffer'
	initramfs usr/lib/modules/dm-coffer.ko
	doctor || true
	check "doctor: an initramfs without the file" has '^warning +initramfs: .*is older than'
	initramfs usr/lib/modules/dm-coffer.ko etc/modprobe.d/coffer.conf
	doctor || true
	check "doctor: an initramfs with both" has '^ok +initramfs: .*has dm-coffer and takes over'
	touch -d '+1 hour' $conf
	doctor || true
	check "doctor: an initramfs that is too old" has '^warning +initramfs: .*is older than'
else
	skip "doctor: initramfs" "no lsinitramfs"
fi
coffer takeover off > /dev/null
equal "doctor: JSON" "$(json doctor | jq -r '.findings[0].topic, .ok' | tr '\n' ' ')" 'versions true '
check "what they printed is what the schema says" sh -c "$TOP/tests/tool/schema $WORK/printed 2> /dev/null"
finish
