#!/bin/sh
# Inspect waiting threadlets with the gdb script: in a live process, in a core written by
# the kernel, and in a core written by gdb.  The two cores are checked only if they exist:
# the kernel may pass cores to another program, and gdb cannot save memory whose guard pages
# are markers in the page table.
set -eu
program=$1
script=$2
work=$3

skip() {
	echo "skipped: $1"
	exit 77
}

command -v gdb >/dev/null 2>&1 || skip "no gdb"
gdb -nx -batch -ex 'python print(1 + 1)' 2>&1 | grep -q '^2$' || skip "gdb without python"
rm -rf "$work"
mkdir -p "$work"
cd "$work"

# look OUTPUT GDB-ARGUMENTS: run gdb with the script; its output goes to OUTPUT.
look() {
	output=$1
	shift
	gdb -nx -batch -ex "source $script" "$@" >"$output" 2>&1 || true
}

ask() { # the gdb commands for a stopped program
	cat <<'END'
echo == list\n
weft threadlets
echo == bt\n
weft bt deep
echo == switch\n
weft switch joiner
bt
echo == back\n
weft switch back
bt 1
echo == wrong\n
END
}

part() { # part NAME FILE: the output of one command
	sed -n "/^== $1\$/,/^== /p" "$2" | grep -v '^== '
}

check() {
	part list "$1" | grep -q '^loop [0-9]* (yard)$'
	part list "$1" | grep -q '(deep) waiting for sleep, started at .'
	part list "$1" | grep -Eq '\(joiner\) waiting for join [0-9]+, started'
	part list "$1" | grep -q '(child) waiting for sleep'
	[ "$(part bt "$1" | grep -c ' wait_deep ')" -eq 4 ]
	part bt "$1" | grep -q ' sleeper '
	part bt "$1" | grep -q '^#1 '
	! part bt "$1" | grep -q '^#0 '
	part switch "$1" | grep -q ' weft_join '
	part switch "$1" | grep -q ' joiner '
	! part back "$1" | grep -q ' joiner '
	part back "$1" | grep -q '^#0 '
}

verify() { # verify WHAT FILE
	check "$2" || { echo "$1: not as it should be"; cat "$2"; exit 1; }
	echo "$1: seen"
}

ask >ask.gdb
cat >live.gdb <<'END'
break all_parked
run
source ask.gdb
generate-core-file by_gdb.core
echo == end\n
weft bt nobody
END
look live.txt -x live.gdb "$program"
grep -q "ptrace: Operation not permitted" live.txt && skip "tracing is not allowed"
verify "a live process" live.txt
grep -q "no threadlets are called nobody" live.txt

if [ -f by_gdb.core ] && ! grep -v 0xffffffffff600000 live.txt | grep -q "Memory read failed"; then
	look by_gdb.txt -x ask.gdb "$program" by_gdb.core
	verify "a core written by gdb" by_gdb.txt
fi

(ulimit -c unlimited 2>/dev/null; "$program" die) >/dev/null 2>&1 || true
core=$(ls core* 2>/dev/null | head -1)
if [ -n "$core" ]; then
	look by_kernel.txt -x ask.gdb "$program" "$core"
	verify "a core written by the kernel" by_kernel.txt
fi
rm -f core* *.core
