#!/usr/bin/env python3
"""Check what the library's objects refer to.

    scripts/symbols.py ARCHIVE                 the system only through the sys table
    scripts/symbols.py --self-test CC          the same, for objects with planted calls
    scripts/symbols.py --layers CC OBJECT ...  lower layers nothing of higher ones

The sys table: every undefined symbol of every object must be one of ours or on the short list of
pure functions below.  The objects of src/base/os_*.c implement the table and may use anything.  The
objects of src/net/dns/dns_ares*.c may call c-ares, whose sockets go through the table again; those
of src/net/tls/ may call OpenSSL, which makes its own system calls.

Layers: an object's layer is its folder in src/.  An object must not refer to a symbol that only
the object of a higher layer defines: a lower layer would not link without the higher one.  First
the compiler CC makes objects with such a reference, which must be found.
"""
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from tidy import LAYERS

PURE = set("""
memchr memcmp memcpy memmove memset strchr strcmp strcspn strlen strncmp strnlen
strrchr strspn strpbrk strstr strtod snprintf vsnprintf
__memcpy_chk __memmove_chk __memset_chk __snprintf_chk __vsnprintf_chk
__cmsg_nxthdr __stack_chk_fail _GLOBAL_OFFSET_TABLE_ __tls_get_addr
""".split())

OPENSSL = re.compile(r"(ASN1|BIO|ERR|EVP|GENERAL_NAMES?|OPENSSL|PEM|SSL|TLS|X509V?3?"
                     r"|i2d|d2i)_\w+")


def undefined(archive):
    """Yield (object, symbol) for every undefined symbol of `archive`."""
    out = subprocess.run(["nm", "-u", str(archive)], check=True,
                         capture_output=True, text=True).stdout
    member = Path(archive).name
    for line in out.splitlines():
        head = re.match(r"(\S+):$", line)
        if head:
            member = head.group(1)
        elif line.strip():
            yield member, line.split()[-1].split("@")[0]


def findings(archive):
    return [(member, symbol) for member, symbol in undefined(archive)
            if not member.startswith("os_")
            and not symbol.startswith("weft_")
            and not (member.startswith("dns_ares") and symbol.startswith("ares_"))
            and not (member.startswith("tls") and OPENSSL.fullmatch(symbol))
            and symbol not in PURE]


def self_test(compiler):
    """A planted call of malloc must be found, and a clean object must pass."""
    with tempfile.TemporaryDirectory() as folder:
        counts = []
        for name, body in (("bad", "return malloc(1);"), ("good", "return 0;")):
            source = Path(folder) / f"{name}.c"
            source.write_text(f"#include <stdlib.h>\nvoid *f(void) {{ {body} }}\n")
            obj = source.with_suffix(".o")
            subprocess.run([compiler, "-O0", "-c", source, "-o", obj], check=True)
            counts.append(len(findings(obj)))
    print(f"symbols self-test: planted call found: {counts[0] == 1}")
    return 0 if counts == [1, 0] else 1


def layer_of(path):
    """The index in LAYERS of an object of CMake: NAME.dir/src/LAYER/...c.o"""
    m = re.search(r"\.dir/(?:\./)?src/(\w+)/", path)
    if not m or m[1] not in LAYERS:
        raise SystemExit(f"symbols: {path} is not in the folder of a layer")
    return LAYERS.index(m[1])


def up_calls(paths):
    """(the references between layers, those of a lower layer to a higher one); each as (path,
    symbol, path of the definition)."""
    out = subprocess.run(["nm", "-A", "-g", *paths], check=True, capture_output=True, text=True)
    seen = [re.fullmatch(r"(.+?):[0-9a-f]* *(\w) (\S+)", line).groups()
            for line in out.stdout.splitlines()]
    owner = {symbol: path for path, kind, symbol in seen if kind not in "Uvw"}
    across = [(path, symbol, owner[symbol]) for path, kind, symbol in seen
              if kind in "Uvw" and symbol in owner and layer_of(owner[symbol]) != layer_of(path)]
    return across, [r for r in across if layer_of(r[0]) < layer_of(r[2])]


def planted_up_call_is_found(compiler):
    """Two objects that call each other: only the call from base into loop is wrong."""
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for layer, own, other in (("base", "low", "high"), ("loop", "high", "low")):
            path = Path(folder) / "planted.dir" / "src" / layer / f"{own}.c.o"
            path.parent.mkdir(parents=True)
            source = path.with_suffix("")
            source.write_text(f"void {other}(void);\nvoid {own}(void) {{ {other}(); }}\n")
            subprocess.run([compiler, "-O0", "-c", source, "-o", path], check=True)
            paths.append(str(path))
        across, found = up_calls(paths)
        return len(across) == 2 and found == [(paths[0], "high", paths[1])]


def check_layers(compiler, paths):
    if not planted_up_call_is_found(compiler):
        print("symbols: the planted call from a lower into a higher layer was not found")
        return 1
    across, bad = up_calls(paths)
    for path, symbol, definition in bad:
        print(f"{path}: {symbol}: is defined in a higher layer, in {definition}")
    print(f"symbols: the planted call was found; {len(across)} references between layers, "
          f"{len(bad)} into a higher one")
    return 1 if bad or not across else 0


def main(args):
    if len(args) == 2 and args[0] == "--self-test":
        return self_test(args[1])
    if len(args) > 2 and args[0] == "--layers":
        return check_layers(args[1], args[2:])
    if len(args) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    seen = list(undefined(args[0]))
    bad = findings(args[0])
    for member, symbol in bad:
        print(f"{member}: {symbol}: not through the sys table")
    print(f"symbols: {len(seen)} references, {len(bad)} outside the table")
    return 1 if bad or not seen else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
