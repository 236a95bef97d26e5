#!/usr/bin/env python3
"""Check that the library's objects call the system only through the sys table.

Every undefined symbol of every object must be one of ours or on the short list of pure functions
below.  The objects of src/base/os_*.c implement the table and may use anything.  The objects of
src/net/dns/dns_ares*.c may call c-ares, whose sockets go through the table again; those of
src/net/tls/ may call OpenSSL, which makes its own system calls.
"""
import re
import subprocess
import sys
import tempfile
from pathlib import Path

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


def main(args):
    if len(args) == 2 and args[0] == "--self-test":
        return self_test(args[1])
    if len(args) != 1:
        print("usage: symbols.py ARCHIVE | --self-test CC", file=sys.stderr)
        return 2
    seen = list(undefined(args[0]))
    bad = findings(args[0])
    for member, symbol in bad:
        print(f"{member}: {symbol}: not through the sys table")
    print(f"symbols: {len(seen)} references, {len(bad)} outside the table")
    return 1 if bad or not seen else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
