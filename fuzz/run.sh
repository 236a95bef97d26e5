#!/bin/sh
# run.sh - fuzz each target for a while, and then its planted bugs, which must be found.
#
#     fuzz/run.sh BUILD [NAME] [SECONDS]    e.g. fuzz/run.sh build/fuzz http 30
#
# Each run begins with the stored corpus and BUILD/finds/NAME.  New inputs that it finds go to
# BUILD/finds/NAME; an input that fails is BUILD/finds/NAME.failed-*.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
build=$1
only=${2:-}
seconds=${3:-30}

# fuzz PROGRAM NAME FINDS SECONDS: run it; its output is in FINDS.log.
fuzz() {
	program=$1 name=$2 finds=$3 limit=$4
	shift 4
	mkdir -p "$finds"
	[ ! -f "$here/$name.dict" ] || set -- "$@" "-dict=$here/$name.dict"
	"$build/fuzz/$program" -max_total_time="$limit" -max_len=1024 -timeout=10 \
		-rss_limit_mb=1024 -print_final_stats=1 \
		-artifact_prefix="$finds.failed-" "$@" \
		"$finds" "$here/corpus/$name" >"$finds.log" 2>&1
}

fail() {
	tail -40 "$2" >&2
	echo "fuzz: $1" >&2
	exit 1
}

sound() {
	log="$build/finds/$1.log"
	fuzz "$1_fuzz" "$1" "$build/finds/$1" "$seconds" || fail "$1_fuzz failed" "$log"
	executed=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
	echo "$1_fuzz: $executed inputs in $seconds s, none failed"
}

# Does not start from earlier finds, which may contain the input that triggers the bug.  Finding a
# planted bug takes a few seconds.  A busy machine may need more, and the run ends as soon as the
# bug is found.
planted() {
	patience=$((seconds * 4))
	for patch in "$here/planted/$1.patch" "$here/planted/$1"_*.patch; do
		[ -f "$patch" ] || continue
		plant=$(basename "$patch" .patch)
		finds="$build/finds/planted-$plant"
		rm -rf "$finds" "$finds".failed-*
		begin=$(date +%s)
		! fuzz "${plant}_fuzz_planted" "$1" "$finds" "$patience" ||
			fail "$1_fuzz did not find $plant.patch in $patience s" "$finds.log"
		grep -q '^oracle: ' "$finds.log" ||
			fail "${plant}_fuzz_planted died, but not by its oracle" "$finds.log"
		echo "$1_fuzz: found $plant.patch in $(($(date +%s) - begin)) s"
	done
}

# Two targets at a time.
known=
waiting=
for source in "$here"/*_fuzz.c; do
	name=$(basename "$source" _fuzz.c)
	[ -z "$only" ] || [ "$only" = "$name" ] || continue
	known=1
	{ sound "$name" && planted "$name"; } &
	if [ -n "$waiting" ]; then
		wait "$waiting"
	fi
	waiting=$!
done
[ -n "$known" ] || { echo "fuzz: no target is called $only" >&2; exit 2; }
wait "$waiting"
