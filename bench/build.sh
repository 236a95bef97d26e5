#!/bin/sh
# build.sh - install a release build under BENCH and build the benchmark programs.
#
#     bench/build.sh RELEASE BENCH    e.g. bench/build.sh build/release build/bench
#
# The package goes to BENCH/prefix, and the programs to BENCH/programs, where run.py expects
# them.  BENCH/python is a link to the build's Python package.
set -eu
[ $# -eq 2 ] || { echo "usage: $0 RELEASE BENCH" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
release=$(cd "$1" && pwd)
mkdir -p "$2"
bench=$(cd "$2" && pwd)

rm -rf "$bench/prefix" # a removed header must not be found
cmake --install "$release" --prefix "$bench/prefix" >/dev/null
rm -f "$bench/python"
[ ! -d "$release/python" ] || ln -s "$release/python" "$bench/python"
cmake -S "$here" -B "$bench/programs" -G Ninja \
	-DCMAKE_PREFIX_PATH="$bench/prefix" >/dev/null
cmake --build "$bench/programs" -- --quiet
