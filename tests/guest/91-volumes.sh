#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The command coffer: format, open, close, status. What it makes cryptsetup opens, and the
# other way round; what it refuses it refuses with its own exit code and without a write.

set -euo pipefail
# shellcheck source=tests/guest/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/guest/command.sh
. "$(dirname "$0")/command.sh"

insmod_coffer
modprobe loop
mkdir -p "$WORK/m"
store=$(mkram 40)
secret=$WORK/secret
printf 'correct horse' > "$secret"
chmod 600 "$secret"
fast=(--pbkdf pbkdf2 --pbkdf-force-iterations 1000)

json() { jq -e "$1" > /dev/null < "$WORK/json"; }
cof() { printf 'correct horse\n' | "$C" "$@"; }
sum() { sha256sum < "$1"; }
# nothing of the volume key is left with a process or in a keyring
no_keys() { ! grep -E 'cryptsetup:|coffer:' /proc/keys; }

# ---- both directions ------------------------------------------------------------------

check "format" cof format "$store" --yes --unlock-time 10 --label home
check "what it says is on the disk" cryptsetup isLuks --type luks2 "$store"
check "open" cof open "$store"
check "the name is the label" test -b /dev/mapper/home
check "no key stays in a keyring" no_keys
check "the table has no key, and names the target" \
	sh -c "dmsetup table home | grep -q ' coffer aes-xts-plain64 :64:logon:cryptsetup:'"
dd if=/dev/urandom of="$WORK/data" bs=1M count=4 status=none
check "write" dd if="$WORK/data" of=/dev/mapper/home bs=1M oflag=direct status=none
check "close" "$C" close home
check "it is closed" test ! -e /dev/mapper/home
check "cryptsetup opens it" sh -c "printf 'correct horse' | cryptsetup open $store x -"
_undo "dmsetup remove --retry x"
check "with the same data" cmp -n 4194304 /dev/mapper/x "$WORK/data"
check "status sees it, on dm-crypt" sh -c "$C status $store --json > $WORK/json"
check "as JSON" json '.volumes[0].driver == "dm-crypt" and .volumes[0].name == "x" and .volumes[0].luks == 2'
check "close closes what cryptsetup opened" "$C" close "$store"

for kind in luks1:512 luks2:512 luks2:4096; do
	unit=${kind#*:} args=()
	[ "${kind%:*}" = luks1 ] || args=(--sector-size "$unit")
	printf 'correct horse' | cryptsetup luksFormat -q --type "${kind%:*}" "${fast[@]}" \
		${args[@]+"${args[@]}"} "$store" -
	printf 'correct horse' | cryptsetup open "$store" x -
	dd if="$WORK/data" of=/dev/mapper/x bs=1M oflag=direct status=none
	cryptsetup close x
	check "$kind of cryptsetup's opens" cof open "$store" y
	check "$kind: the data is right" cmp -n 4194304 /dev/mapper/y "$WORK/data"
	check "$kind: on our driver" sh -c "dmsetup table y | grep -q ' coffer '"
	check "$kind: close" "$C" close y
done

cof format "$store" --yes --unlock-time 10 --no-recovery --label home > /dev/null 2>&1
cryptsetup token import --token-id 9 "$store" \
	<<< '{"type":"somebody-elses","keyslots":["0"],"secret":"1234"}'
before=$(cryptsetup token export --token-id 9 "$store")
cof open "$store" y > /dev/null 2>&1 && "$C" close y > /dev/null
equal "tokens of others stay as they are" "$(cryptsetup token export --token-id 9 "$store")" "$before"

# ---- ways to name it, key files, read-only ----------------------------------------------

uuid=$(cryptsetup luksUUID "$store")
check "a key file" "$C" open "$store" y --key-file "$secret"
# /dev/dm-N is udev's to make, which is not here
mknod "$WORK/dm" b "$(dmsetup info -c --noheadings -o major y)" "$(dmsetup info -c --noheadings -o minor y)"
for name in y /dev/mapper/y "$store" "UUID=$uuid" "$WORK/dm"; do
	"$C" status "$name" --json > "$WORK/json" 2>&1 || true
	check "found as ${name%%=*}" json '.volumes[0].name == "y"'
done
mkfs.ext4 -q /dev/mapper/y
mount /dev/mapper/y "$WORK/m"
_undo "umount $WORK/m"
"$C" status "$WORK/m" --json > "$WORK/json" 2>&1 || true
check "found by its mount point" json '.volumes[0].name == "y"'
check "a mounted volume is not closed, and is named" \
	exits 5 "cannot close y: mounted at $WORK/m" "$C" close y
(cd "$WORK/m" && exec sleep 60) &
sleeper=$!
sleep 0.3
check "so is the process" exits 5 "process sleep \\($sleeper\\)" "$C" close y
kill $sleeper
wait $sleeper 2> /dev/null || true
check "format refuses a mounted device" exits 5 "open as y" cof format "$store" --yes
check "a second open is refused" exits 15 "open already, as y" cof open "$store" z
check "close --deferred waits" exits 0 "will be closed" "$C" close y --deferred
umount "$WORK/m"
check "and closes with the last user" sh -c "for i in 1 2 3 4 5; do test ! -e /dev/mapper/y && exit; dmsetup mknodes; sleep 1; done; ! dmsetup info y"
check "read-only" cof open "$store" y --read-only
check "read-only is read-only" sh -c "! dd if=/dev/zero of=/dev/mapper/y bs=4096 count=1 oflag=direct"
check "close --all" "$C" close --all
check "--all closed all" sh -c "! dmsetup info y"

# ---- detached header, image file ----------------------------------------------------------

check "format with a detached header" cof format "$store" --yes --unlock-time 10 --no-recovery \
	--header "$WORK/header"
check "opens with it" cof open "$store" y --header "$WORK/header"
check "the data begins at 0" sh -c "dmsetup table y | grep -q ' 0 2 \\| 0 1 sector_size:4096\\| 0 2 allow'"
check "close" "$C" close y
check "cryptsetup opens it with that header" \
	sh -c "printf 'correct horse' | cryptsetup open --header $WORK/header $store x - && cryptsetup close x"
truncate -s 40M "$WORK/image.img"
check "format an image file" cof format "$WORK/image.img" --yes --unlock-time 10 --no-recovery
check "open it" cof open "$WORK/image.img"
check "under the file's name" test -b /dev/mapper/image_crypt
check "close it by its file" "$C" close "$WORK/image.img"
equal "no loop device is left" "$(losetup -a)" ""

# ---- refusals -----------------------------------------------------------------------------

printf 'correct horse' | cryptsetup luksFormat -q --type luks2 "${fast[@]}" "$store" -
before=$(sum "$store")
check "wrong secret" exits 3 "cannot unlock .*: wrong secret" sh -c "echo wrong | $C open $store y"
check "no secret" exits 13 "no secret was given" sh -c "$C open $store y < /dev/null"
keys=$(cat /proc/sys/kernel/keys/root_maxkeys)
_undo "echo $keys > /proc/sys/kernel/keys/root_maxkeys"
echo 1 > /proc/sys/kernel/keys/root_maxkeys
check "a keyring that takes no key" exits 7 "keyring" cof open "$store" y
echo "$keys" > /proc/sys/kernel/keys/root_maxkeys
check "and nothing is open" sh -c "! dmsetup info y"
check "no such device" exits 4 "cannot find /dev/nothing" "$C" open /dev/nothing
check "no such volume" exits 4 "no volume or device is called nothing" "$C" close nothing
check "no key file" exits 8 "cannot open key file" "$C" open "$store" y --key-file "$WORK/none"
printf 'correct horse\n' > "$WORK/newline"
check "a newline in a key file is named" exits 3 "newline at its end" \
	"$C" open "$store" y --key-file "$WORK/newline"
check "a name that is no name" exits 2 'open a volume as "a/b"' cof open "$store" a/b
check "format needs a yes" exits 13 "confirmed on a terminal" cof format "$store"
check "an unknown option" exits 2 "there is no option --bogus" "$C" open --bogus
check "an option of another verb" exits 2 "takes no --size" "$C" open "$store" --size 5M
check "a data unit that is none" exits 2 "512, 1024, 2048 or 4096" cof format "$store" --yes --data-unit 1000
check "not root" exits 11 "needs root" setpriv --reuid 65534 --clear-groups "$C" open "$store"
equal "nothing of that wrote a byte" "$(sum "$store")" "$before"
truncate -s 10M "$WORK/small.img"
before=$(sum "$WORK/small.img")
check "too small, with the minimum" exits 10 "the smallest volume needs 17 MiB" \
	cof format "$WORK/small.img" --yes
equal "too small: nothing was written" "$(sum "$WORK/small.img")" "$before"
equal "too small: no loop device is left" "$(losetup -a)" ""
check "not encrypted" exits 14 "not an encrypted volume" cof open "$WORK/small.img"
printf 'correct horse' | cryptsetup luksFormat -q --type luks2 -c aes-cbc-essiv:sha256 -s 256 "${fast[@]}" "$store" -
check "another cipher is named, and cryptsetup" exits 14 "aes-cbc-essiv:sha256.*|cryptsetup open" cof open "$store" y
if mkdir /sys/fs/cgroup/coffer-test 2> /dev/null || { mount -t cgroup2 none /sys/fs/cgroup && mkdir /sys/fs/cgroup/coffer-test; } 2> /dev/null; then
	_undo "rmdir /sys/fs/cgroup/coffer-test"
	cof format "$store" --yes --unlock-time 200 --no-recovery > /dev/null 2>&1
	if { echo +memory > /sys/fs/cgroup/cgroup.subtree_control; echo 20M > /sys/fs/cgroup/coffer-test/memory.max; } 2> /dev/null; then
		check "too little memory for Argon2, with figures" exits 6 "needs [0-9.]+ MiB, [0-9.]+ [MK]iB available" \
			sh -c "echo \$\$ > /sys/fs/cgroup/coffer-test/cgroup.procs; echo 'correct horse' | exec $C open $store y"
	else
		skip "too little memory for Argon2" "this guest has no memory controller"
	fi
else
	skip "too little memory for Argon2" "this guest has no cgroup2"
fi

# the header: one copy damaged mends itself, both are an error of their own
cof format "$store" --yes --unlock-time 10 --no-recovery > /dev/null 2>&1
dd if=/dev/urandom of="$store" bs=4096 count=1 oflag=direct status=none
dd if=/dev/urandom of="$store" bs=4096 count=1 seek=5 oflag=direct status=none
check "a damaged header" exits 9 "it is damaged" cof open "$store" y

# ---- without the module ---------------------------------------------------------------------

cof format "$store" --yes --unlock-time 10 --no-recovery > /dev/null 2>&1
if [ "$COFFER_TARGET" = coffer ]; then
	rmmod dm_coffer
	check "without the module dm-crypt carries it, and that is said" \
		exits 0 "dm-crypt carries the volume" cof open "$store" y
	check "on dm-crypt" sh -c "dmsetup table y | grep -q ' crypt '"
	check "close" "$C" close y
	check "--driver coffer insists" exits 12 "cannot use dm-coffer" cof open "$store" y --driver coffer
	insmod "$COFFER_MODULE"
fi

# ---- many times -------------------------------------------------------------------------------

cycles()
{
	local i
	for ((i = 0; i < $1; i++)); do
		"$C" open "$store" y --key-file "$secret" > /dev/null || return
		"$C" close y > /dev/null || return
	done
}
printf 'correct horse' | cryptsetup luksFormat -q --type luks2 "${fast[@]}" "$store" -
n=5
[ -z "${COFFER_ALL:-}" ] || n=500
check "open and close $n times" cycles $n
check "no key is left anywhere" no_keys
equal "no mapping is left" "$(dmsetup ls | grep -v '^No devices' || true)" ""

finish
