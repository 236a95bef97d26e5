#!/bin/sh
# Install a build into its own prefix and use it from outside: from a C and a C++ project
# with CMake, and from C again with pkg-config.
set -eu
build=$1
work=$2
here=$(cd "$(dirname "$0")" && pwd)

rm -rf "$work"
mkdir -p "$work"
cmake --install "$build" --prefix "$work/prefix" >"$work/install.log"

for lang in c cxx; do
	cmake -S "$here/$lang" -B "$work/$lang" -G Ninja -DCMAKE_EXPORT_COMPILE_COMMANDS=ON \
		-DCMAKE_PREFIX_PATH="$work/prefix" >"$work/$lang.log"
	if grep '"command"' "$work/$lang/compile_commands.json" |
		grep -v -e -fstack-clash-protection; then
		echo "the CMake package does not recommend -fstack-clash-protection"
		exit 1
	fi
	cmake --build "$work/$lang" >>"$work/$lang.log"
	"$work/$lang/outside"
	"$work/$lang/outside_static"
done

"$work/c/outside_dag"
"$work/c/outside_dag_static"
"$work/c/outside_http"
"$work/c/outside_http_static"
"$work/c/outside_redis"
"$work/c/outside_redis_static"
"$work/c/outside_admin"
"$work/c/outside_admin_static"
if [ -x "$work/c/outside_js" ]; then
	"$work/c/outside_js"
	"$work/c/outside_js_static"
	[ "$("$work/prefix/bin/weft" eval '6 * 7')" = 42 ]
fi

export PKG_CONFIG_PATH="$work/prefix/lib/pkgconfig:$(
	ls -d "$work"/prefix/lib/*/pkgconfig 2>/dev/null || true)"
flags=$(pkg-config --cflags --libs weft)
case $flags in
*-fstack-clash-protection*) ;;
*) echo "pkg-config does not recommend -fstack-clash-protection"; exit 1 ;;
esac
libdir=$(pkg-config --variable=libdir weft)
cc "$here/c/main.c" -o "$work/by_pkg_config" $flags -Wl,-rpath,"$libdir"
"$work/by_pkg_config"
cc "$here/c/dag.c" -o "$work/dag_by_pkg_config" \
	$(pkg-config --cflags --libs weft_dag) -Wl,-rpath,"$libdir"
"$work/dag_by_pkg_config"
cc "$here/c/http.c" -o "$work/http_by_pkg_config" \
	$(pkg-config --cflags --libs weft_http) -Wl,-rpath,"$libdir"
"$work/http_by_pkg_config"
cc "$here/c/redis.c" -o "$work/redis_by_pkg_config" \
	$(pkg-config --cflags --libs weft_redis) -Wl,-rpath,"$libdir"
"$work/redis_by_pkg_config"
cc "$here/c/admin.c" -o "$work/admin_by_pkg_config" \
	$(pkg-config --cflags --libs weft_admin) -Wl,-rpath,"$libdir"
"$work/admin_by_pkg_config"

# The static library brings its dependencies.
static=$(pkg-config --static --cflags --libs weft | sed 's/-lweft/-l:libweft.a/')
cc "$here/c/main.c" -o "$work/by_pkg_config_static" $static
"$work/by_pkg_config_static"

# The shared libraries export public functions, and the core exactly those private ones that
# another library uses.
strays=$(nm -D --defined-only "$libdir"/libweft*.so |
	awk 'NF == 3 && $2 != "A" && $3 !~ /^weft_[_a-z]/ { print $3 }')
[ -z "$strays" ] || { echo "exported by mistake: $strays"; exit 1; }
nm -D --defined-only "$libdir"/libweft*.so | grep -o ' weft__[a-z0-9_]*' | sort >"$work/exported"
nm -D --undefined-only "$libdir"/libweft*.so | grep -o ' weft__[a-z0-9_]*' | sort -u >"$work/used"
[ -s "$work/used" ] && cmp "$work/exported" "$work/used"

# Closing a plugin does not unload the libraries.
for lib in "$libdir"/libweft*.so; do
	readelf -d "$lib" | grep -q NODELETE || { echo "$lib can be unloaded"; exit 1; }
done

# Every header compiles alone, in both languages; hiredis.h only where hiredis is installed.
for header in "$work"/prefix/include/weft/*.h; do
	if [ "$(basename "$header")" = hiredis.h ] &&
		! echo '#include <hiredis/async.h>' | cc -E - >/dev/null 2>&1; then
		continue
	fi
	printf '#include <weft/%s>\n' "$(basename "$header")" >"$work/one.c"
	cp "$work/one.c" "$work/one.cc"
	cc -std=gnu11 -Wall -Wextra -Werror -fsyntax-only \
		-I"$work/prefix/include" "$work/one.c"
	c++ -std=c++17 -Wall -Wextra -Wpedantic -Werror -fsyntax-only \
		-I"$work/prefix/include" "$work/one.cc"
done
echo "install: ok"
