# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Completion of the command coffer for bash. What verbs and options there are is the command's
# own word (coffer --list-options).

_coffer_volumes()
{
	lsblk -lnpo NAME,TYPE,UUID 2> /dev/null |
		awk '$2 == "crypt" { sub(".*/", "", $1) } { print $1 } $3 { print "UUID=" $3 }'
}

_coffer()
{
	local word=${COMP_WORDS[COMP_CWORD]} last=${COMP_WORDS[COMP_CWORD - 1]} table verb='' options i
	COMPREPLY=()
	table=$("${COMP_WORDS[0]}" --list-options 2> /dev/null) || return 0
	# verbs have one word or two
	for ((i = 1; i < COMP_CWORD; i++)); do
		[[ ${COMP_WORDS[i]} != -* ]] || continue
		if grep -q "^$verb${verb:+ }${COMP_WORDS[i]}[: ]" <<< "$table"; then
			verb+=${verb:+ }${COMP_WORDS[i]}
		fi
		! grep -q "^$verb:" <<< "$table" || break
	done
	case $last in
	-k | --key-file | --new-key-file | --header | --from)
		mapfile -t COMPREPLY < <(compgen -f -- "$word"); return ;;
	--driver)
		mapfile -t COMPREPLY < <(compgen -W 'coffer dm-crypt auto' -- "$word"); return ;;
	--trim)
		mapfile -t COMPREPLY < <(compgen -W 'on off' -- "$word"); return ;;
	--data-unit)
		mapfile -t COMPREPLY < <(compgen -W '512 1024 2048 4096' -- "$word"); return ;;
	esac
	options=$(sed -n "s/^$verb://p" <<< "$table")
	if [ -z "$options" ]; then
		mapfile -t COMPREPLY < <(compgen -W "$(sed -n "s/^${verb:+$verb }\([^ :]*\).*/\1/p" <<< "$table" |
			sort -u)" -- "$word")
	elif [[ $word == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "${options//=/} --help" -- "$word")
	else
		mapfile -t COMPREPLY < <(compgen -W "$(_coffer_volumes)" -- "$word"; compgen -f -- "$word")
	fi
}

complete -o filenames -F _coffer coffer
