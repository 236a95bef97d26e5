#!/bin/sh
# quickjs.sh - QuickJS from Debian's signed source package, as a static library.
#
#     cmake/quickjs.sh FOLDER NAME CC FLAGS...
#
# makes FOLDER/NAME/libquickjs.a with quickjs.h beside it.  The source is fetched once,
# into FOLDER/source: apt gets it from the mirror that this machine already uses, with
# lists and cache of its own, and checks the signature with the system's keys.  Nothing
# on the system changes.  Compiled once for each NAME, which says how.
set -eu

suite=trixie # Debian 13, the first that has it
parts="quickjs libregexp libunicode cutils dtoa"

folder=$1 name=$2 cc=$3
shift 3

say() {
	echo "quickjs: $*" >&2
}

# The mirror of Debian's main archive that apt is configured with: the site of the
# index whose archive calls itself Debian, not its updates for security.  Where lists
# have not been fetched yet nothing is known of archives but their addresses.
mirror() {
	targets '$(ORIGIN)|$(LABEL)|$(REPO_URI)' | sed -n 's/^Debian|Debian|//p' |
		head -n 1 | grep . ||
		targets '$(REPO_URI)' | grep '/debian/*$' | head -n 1
}

targets() {
	apt-get indextargets --format "$1" 'Created-By: Packages' 2>/dev/null
}

# Into the present folder.
fetch() {
	uri=$(mirror)
	[ -n "$uri" ] || { say "apt knows no mirror of Debian"; return 1; }
	keys=/usr/share/keyrings/debian-archive-keyring.gpg
	[ -r "$keys" ] || { say "no $keys"; return 1; }
	mkdir -p apt/lists/partial apt/cache/archives/partial apt/none
	echo "deb-src [signed-by=$keys] $uri $suite main" >apt/sources.list
	set -- -o "Dir::Etc::sourcelist=$PWD/apt/sources.list" \
		-o "Dir::Etc::sourceparts=$PWD/apt/none" \
		-o "Dir::State::lists=$PWD/apt/lists" -o "Dir::Cache=$PWD/apt/cache" \
		-o APT::Sandbox::User="$(id -un)" -o Acquire::Retries=2 \
		-o Acquire::http::Timeout=20 -o Acquire::Languages=none
	apt-get "$@" update -qq && apt-get "$@" source -qq --download-only quickjs
}

# What apt has checked is kept: the files, and what they unpack to.
get_source() {
	say "fetching Debian's source package"
	rm -rf download.new source.new
	if [ ! -d download ]; then
		mkdir download.new
		(cd download.new && fetch && rm -rf apt)
		mv download.new download
	fi
	dpkg-source --no-check --no-copy -q -x download/quickjs_*.dsc source.new
	mv source.new source
}

# Flags that are none of ours: what is not our code is not held to our warnings.
compile() {
	rm -rf "$name.new"
	mkdir "$name.new"
	version=$(cat source/VERSION)
	objects=
	for part in $parts; do
		"$cc" -std=gnu11 -w -D_GNU_SOURCE "-DCONFIG_VERSION=\"$version\"" -fPIC \
			-fvisibility=hidden -funsigned-char -fwrapv "$@" \
			-c "source/$part.c" -o "$name.new/$part.o"
		objects="$objects $name.new/$part.o"
	done
	ar rcs "$name.new/libquickjs.a" $objects
	cp source/quickjs.h source/LICENSE "$name.new"
	mv "$name.new" "$name"
}

mkdir -p "$folder"
cd "$folder"
exec 9>lock
flock 9
[ -f "$name/libquickjs.a" ] && exit 0
[ -d source ] || get_source
say "compiling ($name)"
compile "$@"
