# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# A private apt tree, to be sourced: Debian packages of any suite, unpacked
# without touching the system's apt. The caller sets $tmp, a directory that it
# removes. The mirror is the one the system's own apt uses; only suites are
# named here.

keyring=/usr/share/keyrings/debian-archive-keyring.gpg
tmp=${tmp-}

die() { echo "${0##*/}: $*" >&2; exit 1; }
say() { echo "${0##*/}: $*" >&2; }

# The system's apt sources as lines "URI SUITE".
sources()
{
	local f
	for f in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
		[ -e "$f" ] || continue
		sed -n 's/^deb[[:space:]]\+\(\[[^]]*\][[:space:]]*\)\?//p' "$f" |
			awk '{ print $1, $2 }'
	done
	# deb822: the fields of a stanza may come in any order
	for f in /etc/apt/sources.list.d/*.sources; do
		[ -e "$f" ] || continue
		awk '
		function flush(  i) {
			for (i = 2; i <= ns && types ~ /(^| )deb( |$)/; i++)
				print uri, s[i]
			uri = ""; ns = 0; types = ""
		}
		/^[[:space:]]*$/ { flush(); next }
		/^#/ { next }
		tolower($1) == "types:"  { types = $0 }
		tolower($1) == "uris:"   { uri = $2 }
		tolower($1) == "suites:" { ns = split($0, s, " ") }
		END { flush() }' "$f"
	done
}

# The archive that the system's apt takes suite $1 from; nothing if none.
archive_of() { sources | awk -v s="$1" '$2 == s { sub("/$", "", $1); print $1; exit }'; }

# The archive of the running release, which has the other suites as well.
mirror()
{
	local suite uri
	# shellcheck source=/dev/null
	for suite in "$(. /etc/os-release; echo "${VERSION_CODENAME:-}")" \
			stable testing unstable sid; do
		uri=$(archive_of "$suite")
		[ -z "$uri" ] || { echo "$uri"; return; }
	done
	die "no archive of the running Debian release in the system's apt sources"
}

# apt_tree SUITE... : a private apt tree for these suites. Sets $tree and the
# array apt (options for apt-get and apt-cache). Its dpkg status is empty,
# so every dependency is answered by the suites alone; for a look at
# the system's packages the caller overrides it.
apt_tree()
{
	local suite uri
	tree=$tmp/apt-$1
	mkdir -p "$tree"/{lists/partial,archives/partial}
	: > "$tree/status"
	for suite; do
		# the security archive is another one, and not everywhere
		case $suite in
		*-security) uri=$(archive_of "$suite"); [ -n "$uri" ] || continue ;;
		*) uri=$(mirror) ;;
		esac
		echo "deb [signed-by=$keyring] $uri $suite main"
	done > "$tree/sources.list"
	apt=(-qq -o "Dir::Etc::sourcelist=$tree/sources.list"
		-o Dir::Etc::sourceparts=/dev/null
		-o Dir::Etc::preferences=/dev/null
		-o Dir::Etc::preferencesparts=/dev/null
		-o "Dir::State=$tree" -o "Dir::State::lists=$tree/lists"
		-o "Dir::State::status=$tree/status"
		-o "Dir::Cache=$tree" -o "Dir::Cache::archives=$tree/archives"
		-o Acquire::Languages=none -o APT::Architecture=amd64
		-o APT::Architectures=amd64 -o APT::Sandbox::User=root
		-o Acquire::Retries=3 -o APT::Get::List-Cleanup=false
		-o Debug::NoLocking=true)
	apt-get "${apt[@]}" update || die "apt-get update failed for $*"
}

# download DIR PACKAGE... : fetch and unpack packages into DIR.
download()
{
	local dir=$1 deb
	shift
	rm -rf "$tree/debs"
	mkdir -p "$tree/debs" "$dir"
	(cd "$tree/debs" && apt-get "${apt[@]}" download "$@") ||
		die "cannot download $*"
	for deb in "$tree"/debs/*.deb; do
		dpkg-deb -x "$deb" "$dir"
	done
}

version() { apt-cache "${apt[@]}" show --no-all-versions "$1" | sed -n 's/^Version: //p' | head -n1; }
