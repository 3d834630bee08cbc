#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Tables that must be refused: with a reason in the kernel log, and with nothing
# left behind. dm-crypt is given the same tables in the same run; where it decides
# otherwise, the case below says why that is right, or it is a failure. The table
# of both verdicts is in $COFFER_OUT/bad-tables.txt.
#
# A case:  bad NAME REASON PARAMETERS [WHY] [SECTORS]
# REASON is an extended regular expression that the kernel's words must match. WHY
# is the reason to differ from dm-crypt, in the verdict or in the errno.
#          good NAME PARAMETERS [WHY] [SECTORS]     must be taken
#          same NAME PARAMETERS [SECTORS]           as dm-crypt decides
# In PARAMETERS $K is a good key of 64 bytes, and $D the store.

set -euo pipefail
# shellcheck source=tests/guest/lib.sh
. "$(dirname "$0")/lib.sh"

insmod_coffer
# the ciphers that we refuse must be there, or refusing them proves nothing
modprobe -q -a serpent_generic twofish_generic essiv cbc crypto_null 2> /dev/null || true
modprobe -q -a encrypted-keys trusted camellia_generic chacha_generic adiantum gcm authenc lrw 2> /dev/null || true
# ... and no others will be looked for: that takes long here, and finds nothing
read -r helper < /proc/sys/kernel/modprobe
_undo "echo $helper > /proc/sys/kernel/modprobe"
echo > /proc/sys/kernel/modprobe

store=$(mkram 1)
D=@STORE@
K=$(hexkey bad-tables 64)
K32=$(hexkey bad-tables 32)
half=$(hexkey half 32)
names=() kinds=() reasons=() whys=()
cases=$WORK/cases

add()	# KIND NAME REASON PARAMETERS WHY SECTORS
{
	kinds+=("$1") names+=("$2") reasons+=("$3") whys+=("$5")
	printf '%s\t0\t%s\t%s\n' "$2" "${6:-2040}" "$4" >> "$cases"
}
bad() { add bad "$1" "$2" "$3" "${4:-}" "${5:-}"; }
good() { add good "$1" '' "$2" "${3:-}" "${4:-}"; }
same() { add same "$1" '' "$2" '' "${3:-}"; }

# ---- words -------------------------------------------------------------------

args='[Nn]ot enough arguments'
bad 'no arguments' "$args" ''
bad 'cipher only' "$args" "$AES"
bad 'no iv_offset' "$args" "$AES $K"
bad 'no device' "$args" "$AES $K 0"
bad 'no start' "$args" "$AES $K 0 $D"

# ---- cipher --------------------------------------------------------------------

one='one cipher, in one spelling; the rest is for dm-crypt'
for cipher in aes-cbc-essiv:sha256 aes-cbc-plain64 aes-cbc-plain aes-ecb aes aes-xts aes-plain \
		aes-xts-plain aes-xts-plain64be aes-xts-null aes-xts-benbi aes-xts-random \
		aes-xts-eboiv aes-xts-elephant aes-xts-essiv:sha256 aes-xts-plain64:opt aes-xts-plain64x \
		aes-xts-plain64- aes-xts-plain64-plain64 aes:1-xts-plain64 aes:2-xts-plain64 \
		aes:64-cbc-lmk AES-XTS-PLAIN64 aes-XTS-plain64 xaes-xts-plain64 aes-lrw-benbi \
		serpent-xts-plain64 serpent-cbc-plain64 twofish-xts-plain64 camellia-xts-plain64 \
		cipher_null-ecb null-ecb aes-adiantum-plain64 xchacha12,aes-adiantum-plain64 \
		'capi:xts(aes)-plain64' 'capi:cbc(aes)-essiv:sha256' 'capi:__xts(aes)-plain64' \
		'capi:xts(ecb(aes))-plain64' 'capi:gcm(aes)-random' capi: capi:-plain64 \
		'xts(aes)-plain64' 'aes-xts(aes)-plain64' - : ; do
	bad "cipher $cipher" '[Cc]ipher' "$cipher $K 0 $D 8" "$one"
done

# ---- hex keys --------------------------------------------------------------------

blank='dm-crypt skips a blank before a number'
size='[Kk]eys of 32 or 64 bytes.*see dm-crypt'
odd='dm-crypt drops an odd last digit'
bad 'key of one digit' "$size" "$AES a 0 $D 8"
bad 'key of 62 digits' "$size" "$AES ${K:0:62} 0 $D 8"
bad 'key of 63 digits' "$size" "$AES ${K:0:63} 0 $D 8"
bad 'key of 65 digits' "$size" "$AES ${K:0:65} 0 $D 8" "$odd"
bad 'key of 66 digits' "$size" "$AES ${K:0:66} 0 $D 8"
bad 'key of 16 bytes' "$size" "$AES ${K:0:32} 0 $D 8"
bad 'key of 48 bytes (AES-192)' "$size" "$AES ${K:0:96} 0 $D 8" 'only AES-128 and AES-256'
bad 'key of 126 digits' "$size" "$AES ${K:0:126} 0 $D 8"
bad 'key of 127 digits' "$size" "$AES ${K:0:127} 0 $D 8"
bad 'key of 129 digits' "$size" "$AES ${K}0 0 $D 8" "$odd"
bad 'key of 130 digits' "$size" "$AES ${K}00 0 $D 8"
bad 'key of 128 bytes' "$size" "$AES $K$K 0 $D 8"
long=$(printf '%0.sa1' {1..4096})
bad 'key of 4 KiB' "$size" "$AES $long 0 $D 8"
bad 'no key' "$size" "$AES - 0 $D 8"
bad 'key 0' "$size" "$AES 0 0 $D 8"
hexadecimal='[Kk]ey is not hexadecimal'
bad 'first digit is none' "$hexadecimal" "$AES g${K:1} 0 $D 8"
bad 'last digit is none' "$hexadecimal" "$AES ${K:0:127}g 0 $D 8"
bad 'digit in the middle is none' "$hexadecimal" "$AES ${K:0:64}-${K:65} 0 $D 8"
bad 'key with 0x' "$hexadecimal" "$AES 0x${K:2} 0 $D 8"
bad 'key with a blank' "$hexadecimal" "$AES ${K:0:64}\\ ${K:65} 0 $D 8"
bad 'key with a non-ASCII letter' "$hexadecimal" "$AES ${K:0:126}$(printf '\303\244') 0 $D 8"
bad 'blanked key of 64 bytes' "$hexadecimal" "$AES $(printf '%0.sx' {1..128}) 0 $D 8"
bad 'blanked key of 32 bytes' "$hexadecimal" "$AES $(printf '%0.sx' {1..64}) 0 $D 8"
halves='halves of the XTS key are equal'
weak='equal halves make XTS a weaker mode'
bad 'equal halves of 32 bytes' "$halves" "$AES $half$half 0 $D 8" "$weak"
bad 'equal halves of 16 bytes' "$halves" "$AES ${half:0:32}${half:0:32} 0 $D 8" "$weak"
bad 'equal halves, digits in two cases' "$halves" "$AES $half${half^^} 0 $D 8" "$weak"
bad 'all zero key of 64 bytes' "$halves" "$AES $(printf '%0128d' 0) 0 $D 8" "$weak"
bad 'all zero key of 32 bytes' "$halves" "$AES $(printf '%064d' 0) 0 $D 8" "$weak"

# ---- keyring keys --------------------------------------------------------------------

logon_key coffer:k64 "$K"
logon_key coffer:k32 "$K32"
logon_key coffer:k63 "${K:0:126}"
logon_key coffer:k48 "${K:0:96}"
logon_key coffer:k16 "${K:0:32}"
logon_key coffer:equal "$half$half"
logon_key coffer:u64 "$K" user
logon_key coffer:revoked "$K"
logon_key coffer:expired "$K"
keyctl revoke "$(keyctl search @u logon coffer:revoked)"
keyctl timeout "$(keyctl search @u logon coffer:expired)" 1
logon_key coffer:master "$K32" user
encrypted=''
if keyctl add encrypted coffer:e64 'new user:coffer:master 64' @u > /dev/null 2>&1; then
	encrypted=1
fi

form="Malformed key|[Kk]ey type|[Kk]ey description|$size"
none='No such key|revoked|expired'
good 'logon key' "$AES :64:logon:coffer:k64 0 $D 8"
good 'logon key of 32 bytes' "$AES :32:logon:coffer:k32 0 $D 8"
good 'user key' "$AES :64:user:coffer:u64 0 $D 8"
[ -z "$encrypted" ] || good 'encrypted key' "$AES :64:encrypted:coffer:e64 0 $D 8"
bad 'key that is not there' "$none" "$AES :64:logon:coffer:nobody 0 $D 8"
bad 'user key that is not there' "$none" "$AES :64:user:coffer:nobody 0 $D 8"
bad 'encrypted key that is not there' "$none" "$AES :64:encrypted:coffer:nobody 0 $D 8"
bad 'trusted key that is not there' "$none|[Kk]ey type" "$AES :64:trusted:coffer:nobody 0 $D 8" \
	'dm-crypt may be built without trusted keys'
bad 'revoked key' "$none" "$AES :64:logon:coffer:revoked 0 $D 8"
sleep 1
bad 'expired key' "$none" "$AES :64:logon:coffer:expired 0 $D 8"
bad 'user key asked for as logon' "$none" "$AES :64:logon:coffer:u64 0 $D 8"
bad 'logon key asked for as user' "$none" "$AES :64:user:coffer:k64 0 $D 8"
other='another size'
bad 'key of 64 bytes announced as 32' "$other" "$AES :32:logon:coffer:k64 0 $D 8"
bad 'key of 32 bytes announced as 64' "$other" "$AES :64:logon:coffer:k32 0 $D 8"
bad 'key of 63 bytes announced as 64' "$other" "$AES :64:logon:coffer:k63 0 $D 8"
bad 'key of 63 bytes' "$size" "$AES :63:logon:coffer:k63 0 $D 8"
bad 'key of 48 bytes in the keyring' "$size" "$AES :48:logon:coffer:k48 0 $D 8" 'only AES-128 and AES-256'
bad 'key of 16 bytes in the keyring' "$size" "$AES :16:logon:coffer:k16 0 $D 8"
bad 'equal halves in the keyring' "$halves" "$AES :64:logon:coffer:equal 0 $D 8" "$weak"

for key in : :: ::: :::: :64 :64: :64:: :64::: :64:logon :64:logon: :64:user: :64:encrypted: :64:trusted: \
		::logon:coffer:k64 :logon:coffer:k64 :64:coffer:k64 :64::coffer:k64 ::64:logon:coffer:k64 \
		:64:Logon:coffer:k64 :64:LOGON:coffer:k64 :64:logo:coffer:k64 :64:logonn:coffer:k64 \
		:64:l:coffer:k64 :64:keyring:coffer:k64 :64:asymmetric:coffer:k64 :64:big_key:coffer:k64 \
		:64:0:coffer:k64 :64:64:logon:coffer:k64 \
		:-64:logon:coffer:k64 :+64:logon:coffer:k64 :0:logon:coffer:k64 :-1:logon:coffer:k64 \
		:1:logon:coffer:k64 :63:logon:coffer:k64 :65:logon:coffer:k64 :128:logon:coffer:k64 \
		:0x40:logon:coffer:k64 :64a:logon:coffer:k64 :a64:logon:coffer:k64 :64.0:logon:coffer:k64 \
		:6,4:logon:coffer:k64 :64k:logon:coffer:k64 :x:logon:coffer:k64 \
		:65536:logon:coffer:k64 :1048576:logon:coffer:k64 \
		:32::logon:coffer:k32 :64:logon::; do
	# a description that only looks malformed is a key that is not there
	bad "key $key" "$form|$none" "$AES $key 0 $D 8"
done
# sizes that an int cannot hold: dm-crypt keeps the low 32 bits
for key in :2147483648: :4294967295: :4294967296: :4294967360: :18446744073709551680: \
		:340282366920938463463374607431768211520: :99999999999999999999999999999999: ; do
	bad "key ${key}logon:..." "$form" "$AES ${key}logon:coffer:k64 0 $D 8" \
		"$([[ $key != *[60]: ]] || echo 'dm-crypt reads the size modulo 2^32')"
done
same 'key size with leading zeros' "$AES :0064:logon:coffer:k64 0 $D 8"
for key in ':\ 64:logon:coffer:k64' ':64\ :logon:coffer:k64' ':64:\ logon:coffer:k64' \
		':64:logon\ :coffer:k64' ':64:logon:\ coffer:k64' ':64:logon:coffer\ k64' \
		':64:logon:coffer:k64\ ' '\ :64:logon:coffer:k64' ':64:logon:\ '; do
	bad "key \"${key//\\/}\"" "$form|$size|$none" "$AES $key 0 $D 8" \
		"$([ "${key:0:5}" != ':\ 64' ] || echo "$blank")"
done
bad 'key without the first colon' "$size|$hexadecimal" "$AES 64:logon:coffer:k64 0 $D 8"
bad 'only type and description' "$size|$hexadecimal" "$AES logon:coffer:k64 0 $D 8"
bad 'description with junk at its end' "$none" "$AES :64:logon:coffer:k64x 0 $D 8"
bad 'description with a word more' "$none" "$AES :64:logon:coffer:k64:x 0 $D 8"
bad 'logon description without a prefix' "$none" "$AES :64:logon:k64 0 $D 8"
bad 'description of 5000 letters' "$none|[Kk]ey description" \
	"$AES :64:logon:coffer:$(printf '%05000d' 0) 0 $D 8"
bad 'description of 60000 letters' "$none|[Kk]ey description" \
	"$AES :64:user:$(printf '%060000d' 0) 0 $D 8"
bad 'two keys' 'iv_offset|garbage|option' "$AES $K $K 0 $D 8"

# ---- numbers ----------------------------------------------------------------------

iv='iv_offset'
for number in -1 -0 +1 x 1x 0x10 1.5 1e3 ',' : 1,000 1k ' ' '\ 1' '1\ '; do
	bad "iv_offset '${number//\\/}'" "$iv|arguments|device|Device|start" "$AES $K $number $D 8" \
		"$([ "$number" != '\ 1' ] || echo "$blank")"
done
bad 'iv_offset 2^64' "$iv" "$AES $K 18446744073709551616 $D 8" 'dm-crypt wraps'
bad 'iv_offset 10^30' "$iv" "$AES $K 1000000000000000000000000000000 $D 8" 'dm-crypt wraps'
good 'iv_offset 2^64-1' "$AES $K 18446744073709551615 $D 8"
for unit in 1024 2048 4096; do
	bad "iv_offset 1 with sector_size $unit" "$iv" "$AES $K 1 $D 8 1 sector_size:$unit"
	bad "iv_offset $((unit / 1024)) with sector_size $unit, large" "$iv" \
		"$AES $K $((unit / 1024)) $D 8 2 sector_size:$unit iv_large_sectors"
	good "iv_offset $((unit / 512)) with sector_size $unit" \
		"$AES $K $((unit / 512)) $D 8 1 sector_size:$unit"
done
bad 'iv_offset 2^64-1 with sector_size 4096' "$iv" \
	"$AES $K 18446744073709551615 $D 8 1 sector_size:4096"

start='[Ss]tart sector'
for number in -1 +8 x 8x 0x8 8.0 '\ 8' '8\ '; do
	bad "start '${number//\\/}'" "$start" "$AES $K 0 $D $number" \
		"$([ "$number" != '\ 8' ] || echo "$blank")"
done
bad 'start 2^64' "$start" "$AES $K 0 $D 18446744073709551616" 'dm-crypt wraps'
small='too small for'
later='dm-crypt leaves it to device-mapper, which refuses to make the table live'
bad 'start at the end of the device' "$small" "$AES $K 0 $D 2048" "$later"
bad 'start beyond the end' "$small" "$AES $K 0 $D 4096" "$later"
bad 'start 2^40' "$small" "$AES $K 0 $D 1099511627776" "$later"
bad 'start 2^63' "$small|$start" "$AES $K 0 $D 9223372036854775808" "$later"
bad 'start 2^64-1' "$small|$start" "$AES $K 0 $D 18446744073709551615" "$later"
bad 'start + length one too many' "$small" "$AES $K 0 $D 9" "$later"
bad 'length 2^40' "$small" "$AES $K 0 $D 8" "$later" 1099511627776
bad 'length 0' 'zero-length' "$AES $K 0 $D 8" '' 0
bad 'length beyond what any device has' 'too large' "$AES $K 0 $D 8" '' 36028797018963968
same 'start 1' "$AES $K 0 $D 1"
same 'start 1 with sector_size 4096' "$AES $K 0 $D 1 1 sector_size:4096"
for unit in 1024 2048 4096; do
	for n in 1 $((unit / 512 - 1)) $((2040 - unit / 512 + 1)) 2039; do
		bad "$n sectors with sector_size $unit" 'sector_size' \
			"$AES $K 0 $D 8 1 sector_size:$unit" '' $n
	done
	good "one data unit of $unit" "$AES $K 0 $D 8 1 sector_size:$unit" '' $((unit / 512))
done
good 'one sector' "$AES $K 0 $D 8" '' 1

# ---- device -------------------------------------------------------------------------

lookup='[Dd]evice'
for device in /dev/nobody nobody 999:999 0:0 : 240:12345 /dev/null /dev /tmp /etc/passwd /dev/mapper/control '' - 7: \
		../../dev/null; do
	bad "device '$device'" "$lookup|$args" "$AES $K 0 $device 8"
done

# ---- options ----------------------------------------------------------------------------

count='[Oo]ption'
ends='dm-crypt ignores what follows its options'
bad 'garbage after the start' "$count" "$AES $K 0 $D 8 garbage"
bad 'option without a count' "$count" "$AES $K 0 $D 8 allow_discards"
bad 'count without options' "$count" "$AES $K 0 $D 8 1"
bad 'count one too many' "$count" "$AES $K 0 $D 8 2 allow_discards"
bad 'count one too few' "$count" "$AES $K 0 $D 8 1 allow_discards iv_large_sectors" "$ends"
bad 'count 0 and an option' "$count" "$AES $K 0 $D 8 0 allow_discards" "$ends"
bad 'count 0 and garbage' "$count" "$AES $K 0 $D 8 0 garbage" "$ends"
bad 'garbage after an option' "$count" "$AES $K 0 $D 8 1 allow_discards garbage" "$ends"
for number in -1 x 1x 0x1 +1 1.0 99999999999; do
	bad "count '$number'" "$count" "$AES $K 0 $D 8 $number allow_discards"
done
bad "count '4294967297'" "$count" "$AES $K 0 $D 8 4294967297 allow_discards" \
	'dm-crypt reads the count modulo 2^32'
bad "count ' 1'" "$count" "$AES $K 0 $D 8 \\ 1 allow_discards" "$blank"
bad 'count 100 and 100 options' "$count" "$AES $K 0 $D 8 100$(printf ' allow_discards%.0s' {1..100})"
for option in nonsense allow_discard allow_discardsx xallow_discards allow_discards:1 allow-discards \
		iv_large_sector iv_large_sectors:1 integrity integrity:28:aead integrity:0:none \
		integrity:16:none integrity_key_size:32 tag_size:16 \
		same_cpu_crypt:1 no_read_workqueue:0 fix_hmac read_only - : 0 '\ '; do
	bad "option '${option//\\/}'" "$count" "$AES $K 0 $D 8 1 $option" \
		"$([[ $option != integrity* ]] || echo 'no integrity here')"
done
for option in ALLOW_DISCARDS Iv_Large_Sectors; do
	good "option $option" "$AES $K 0 $D 8 1 $option"
done
for option in allow_discards iv_large_sectors same_cpu_crypt sector_size:4096; do
	bad "option $option twice" 'twice|duplicate' "$AES $K 0 $D 8 2 $option $option" \
		'said twice is a mistake of the caller'
done
bad 'two sector sizes' 'twice|duplicate' "$AES $K 0 $D 8 2 sector_size:512 sector_size:4096" \
	'said twice is a mistake of the caller'
for value in 0 1 256 511 513 1000 1536 3072 4095 4097 8192 65535 65536 -512 -4096 +4096 0x1000 \
		4096x 4096:1 '' x '\ 4096' 4k; do
	bad "sector_size:${value//\\/}" "sector_size|$count" "$AES $K 0 $D 8 1 sector_size:$value" \
		"$([ "$value" != '\ 4096' ] || echo "$blank")"
done
for value in 66048 69632 4294967808 4294971392 18446744073709555712; do
	bad "sector_size:$value" sector_size "$AES $K 0 $D 8 1 sector_size:$value" \
		'dm-crypt reads the size modulo 2^16'
done
bad 'sector_size and its value as two words' "sector_size|$count" "$AES $K 0 $D 8 2 sector_size 4096"

good 'no options' "$AES $K 0 $D 8"
good 'option count 0' "$AES $K 0 $D 8 0"
good 'key of 32 bytes' "$AES $K32 0 $D 8"
good 'key in capitals' "$AES ${K^^} 0 $D 8"
for value in 512 1024 2048 4096; do
	good "sector_size:$value" "$AES $K 0 $D 8 1 sector_size:$value"
done
good 'all options of 6.1' "$AES $K 0 $D 8 7 allow_discards same_cpu_crypt submit_from_crypt_cpus no_read_workqueue no_write_workqueue sector_size:4096 iv_large_sectors"
good 'high_priority' "$AES $K 0 $D 8 1 high_priority" 'dm-crypt has it since 6.10'

# ---- the verdicts ------------------------------------------------------------------------

# judge KIND REASON WHY  VERDICT WORDS LEFT  DM_CRYPT'S-VERDICT: sets wrong to what is wrong
judge()
{
	wrong=''
	[ "$6" = clean ] || wrong+="left behind: $6; "
	case $1 in
	bad)
		if [ "$4" = accepted ]; then
			wrong+='was accepted; '
		elif ! [[ $5 =~ $2 ]]; then
			wrong+="no reason in the log but: $5; "
		elif [[ $5 == *'Unknown error'* ]]; then
			wrong+='an unknown error; '
		fi ;;
	good) [ "$4" = accepted ] || wrong+="was refused ($4): $5; " ;;
	esac
	[ "$4" = "$7" ] || [ -n "$3" ] || wrong+="differs from dm-crypt, which says $7 (not $4); "
}

"$TOOLS/dmtable" "$COFFER_TARGET" "$MODULE" "$store" < "$cases" > "$WORK/ours"
"$TOOLS/dmtable" crypt dm_crypt "$store" < "$cases" > "$WORK/theirs"
mapfile -t ours < "$WORK/ours"
mapfile -t theirs < "$WORK/theirs"
equal 'every case was tried' "${#ours[@]} ${#theirs[@]}" "${#names[@]} ${#names[@]}"

report=$COFFER_OUT/bad-tables.txt
exec {table}> "$report"
echo "case | $COFFER_TARGET | dm-crypt | why we differ" >&"$table"
differ=0 unused=()
for i in "${!names[@]}"; do
	IFS=$'\t' read -r _ verdict words left <<< "${ours[i]}"
	IFS=$'\t' read -r _ verdict2 _ _ <<< "${theirs[i]}"
	judge "${kinds[i]}" "${reasons[i]}" "${whys[i]}" "$verdict" "$words" "$left" "$verdict2"
	why=''
	if [ "$verdict" != "$verdict2" ]; then
		why=${whys[i]:-NOT EXPECTED}
		differ=$((differ + 1))
	elif [ -n "${whys[i]}" ]; then
		unused+=("${names[i]}")
	fi
	printf '%s | %s | %s | %s\n' "${names[i]}" "$verdict" "$verdict2" "$why" >&"$table"
	if [ -z "$wrong" ]; then
		ok "${kinds[i]}: ${names[i]:0:60}"
	else
		not_ok "${kinds[i]}: ${names[i]:0:60}" "${wrong:0:300}"
	fi
done
exec {table}>&-
note "$differ of ${#names[@]} differ from dm-crypt, see bad-tables.txt"
note "${#unused[@]} reasons to differ were not needed on this kernel: $(printf '%s, ' "${unused[@]}")"

# ---- through dmsetup, as a person would ---------------------------------------------------

for params in "aes-cbc-essiv:sha256 $K 0 $store 8" "$AES ${K:1} 0 $store 8" "$AES $K 0 /dev/nobody 8"; do
	name="dmsetup: ${params:0:24}..."
	status=0
	dmsetup create badone --table "0 2040 $COFFER_TARGET $params" > "$WORK/dmsetup.log" 2>&1 || status=$?
	if [ $status -eq 0 ]; then
		not_ok "$name" 'was accepted'
		dmsetup remove badone
	elif dmsetup info badone > /dev/null 2>&1; then
		not_ok "$name" 'leaves a device'
	else
		ok "$name"
	fi
done

# ---- can this check fail? -------------------------------------------------------------------

verdicts()	# KIND REASON WHY DM_CRYPT'S-VERDICT < CASE: as the loop above, for one case
{
	local verdict words left wrong
	IFS=$'\t' read -r _ verdict words left < <("$TOOLS/dmtable" "$COFFER_TARGET" "$MODULE" "$store")
	judge "$1" "$2" "$3" "$verdict" "$words" "$left" "$4"
	[ -z "$wrong" ] || { echo "$wrong"; return 1; }
}
fine=$(printf 'case\t0\t2040\t%s' "$AES $K 0 @STORE@ 8")
broken=$(printf 'case\t0\t2040\t%s' "$AES ${K:2} 0 @STORE@ 8")
check 'the judge lets a good table pass' verdicts good '' '' accepted <<< "$fine"
control 'a table that is accepted is noticed' 1 'was accepted' verdicts bad . '' accepted <<< "$fine"
control 'a table that is refused is noticed' 1 'was refused' verdicts good '' '' EINVAL <<< "$broken"
control 'a reason that is missing is noticed' 1 'no reason' verdicts bad 'option' '' EINVAL <<< "$broken"
control 'another verdict than that of dm-crypt is noticed' 1 'differs from dm-crypt' \
	verdicts bad . '' accepted <<< "$broken"
dmsetup create holder --table "0 8 linear $store 0"
control 'a store that is held is noticed' 1 'left behind: store-held' verdicts good '' '' accepted <<< "$fine"
dmsetup remove holder
# dm-crypt's own verdicts, judged as if they were ours: it takes equal halves
for i in "${!names[@]}"; do
	if [ "${names[i]}" = 'equal halves of 32 bytes' ]; then
		IFS=$'\t' read -r _ verdict words left <<< "${theirs[i]}"
		judge bad "${reasons[i]}" "${whys[i]}" "$verdict" "$words" "$left" "$verdict"
		equal 'control: dm-crypt in our place is noticed' "$wrong" 'was accepted; '
	fi
done
for key in k64 k32 k63 k48 k16 equal; do
	keyctl purge logon "coffer:$key" > /dev/null 2>&1 || true
done
finish
