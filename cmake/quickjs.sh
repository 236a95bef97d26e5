#!/bin/sh
# quickjs.sh - compile quickjs-ng as a static library, from the upstream archive in Debian.
#
#     cmake/quickjs.sh FOLDER NAME CC FLAGS...
#
# makes FOLDER/NAME/libqjs.a and quickjs.h next to it.  NAME identifies one set of compiler flags;
# all build directories share the result.
#
#     cmake/quickjs.sh newest <VERSIONS
#
# prints the newest of the Debian versions, one per line, that is in the tested range.
#
# apt fetches the archive from the mirror that this machine already uses, with separate lists and a
# separate cache.  apt checks the signature of the index with the system's keys, and the archive
# against the hash in the index.  Nothing on the system changes.  Debian's own packaging files are
# not needed.
#
# The source expires: after a week the script checks the index again and takes a newer version, so
# that fixes arrive.  Without a mirror it keeps the old source and prints a message.
set -eu

suite=trixie-backports # the oldest suite that contains the package
package=quickjs-ng
oldest=0.16.2 # the tested range: from this version ...
below=0.17    # ... to this one, which is excluded; bindings/js/memory.c gives the reason
parts="quickjs libregexp libunicode dtoa"

say() {
	echo "quickjs: $*" >&2
}

# Read Debian versions, one per line; print the newest one in the tested range.
newest() {
	best=
	while read -r version; do
		upstream=${version%-*}
		dpkg --compare-versions "$upstream" ge "$oldest" || continue
		dpkg --compare-versions "$upstream" lt "$below" || continue
		dpkg --compare-versions "$version" gt "${best:-0}" && best=$version
	done
	[ -z "$best" ] || echo "$best"
}

if [ "${1-}" = newest ]; then
	newest
	exit
fi

folder=$1 name=$2 cc=$3
shift 3

# The mirror of Debian's main archive in apt's configuration: the URI of an index whose origin and
# label are "Debian", which excludes security updates.  Before its lists are fetched, apt knows only
# URIs.
mirror() {
	targets '$(ORIGIN)|$(LABEL)|$(REPO_URI)' | sed -n 's/^Debian|Debian|//p' |
		head -n 1 | grep . ||
		targets '$(REPO_URI)' | grep '/debian/*$' | head -n 1
}

targets() {
	apt-get indextargets --format "$1" 'Created-By: Packages' 2>/dev/null
}

# Run an apt program on the index that fetch_index has put into $work.
apt_do() {
	program=$1
	shift
	"$program" -o "Dir::Etc::sourcelist=$work/sources.list" \
		-o "Dir::Etc::sourceparts=$work/none" \
		-o "Dir::State::lists=$work/lists" -o "Dir::Cache=$work/cache" \
		-o APT::Sandbox::User="$(id -un)" -o Acquire::Retries=2 \
		-o Acquire::http::Timeout=20 -o Acquire::Languages=none "$@"
}

fetch_index() {
	uri=$(mirror)
	[ -n "$uri" ] || { say "apt has no Debian mirror configured"; return 1; }
	keys=/usr/share/keyrings/debian-archive-keyring.gpg
	[ -r "$keys" ] || { say "$keys is missing: install debian-archive-keyring"; return 1; }
	mkdir -p "$work/lists/partial" "$work/cache/archives/partial" "$work/none"
	echo "deb-src [signed-by=$keys] $uri $suite main" >"$work/sources.list"
	apt_do apt-get update -qq
}

# Put the newest source into source/, unless it is already there.
update_source() {
	fetch_index || return 1
	found=$(apt_do apt-cache showsrc --only-source "$package" |
		sed -n 's/^Version: //p' | newest)
	[ -n "$found" ] || { say "$suite has no $package from $oldest to $below"; return 1; }
	if [ "$found" != "$(cat source/debian-version 2>/dev/null)" ]; then
		say "fetching $package $found"
		(cd "$work" && apt_do apt-get source -qq --download-only --tar-only \
			"$package=$found" >/dev/null) || return 1
		rm -rf source.new
		mkdir source.new
		tar -x --strip-components=1 -C source.new -f "$work"/*.orig.tar.* || return 1
		echo "$found" >source.new/debian-version
		rm -rf source
		mv source.new source
	fi
	touch source/debian-version
}

# True if the source exists and was compared with the index within the last week.
is_fresh() {
	[ -n "$(find source/debian-version -mtime -7 2>/dev/null)" ]
}

get_source() {
	work=$PWD/apt.new
	rm -rf "$work"
	rc=0
	update_source || rc=1
	rm -rf "$work"
	[ "$rc" -eq 0 ] && return 0
	[ -d source ] || return 1
	say "could not update $package: keeping $(cat source/debian-version)"
}

# Compiled without warnings: it is not our code.
compile() {
	rm -rf "$name.new"
	mkdir "$name.new"
	for part in $parts; do
		"$cc" -std=gnu11 -w -D_GNU_SOURCE -fPIC -fvisibility=hidden \
			-funsigned-char -fwrapv "$@" \
			-c "source/$part.c" -o "$name.new/$part.o"
	done
	ar rcs "$name.new/libqjs.a" "$name.new"/*.o
	cp source/quickjs.h source/LICENSE "$name.new"
	how "$@" >"$name.new/how"
	rm -rf "$name"
	mv "$name.new" "$name"
}

# Print everything that the result depends on.
how() {
	echo "$(cat source/debian-version) $cc $*"
}

mkdir -p "$folder"
cd "$folder"
exec 9>lock
flock 9
is_fresh || get_source
[ "$(how "$@")" = "$(cat "$name/how" 2>/dev/null)" ] && exit 0
say "compiling $(cat source/debian-version) ($name)"
compile "$@"
