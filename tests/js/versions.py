#!/usr/bin/env python3
"""Check which version of quickjs-ng cmake/quickjs.sh chooses from those that an index
offers.

    tests/js/versions.py SCRIPT
"""
import subprocess
import sys

# The offered versions, and the chosen one: the newest in the tested range.
OFFERS = {
    ("0.15.1-1~bpo13+1", "0.16.2-2~bpo13+1"): "0.16.2-2~bpo13+1",
    ("0.16.2-2~bpo13+1", "0.16.10-1", "0.16.3-1"): "0.16.10-1",
    ("0.16.2-1", "0.16.2-2~bpo13+1"): "0.16.2-2~bpo13+1",
    ("0.16.3-1", "0.17.0-1", "1.0-1", "2025.04.26-1"): "0.16.3-1",
    ("0.15.1-1", "0.17.0-1"): "",
    (): "",
}


def main(script):
    failed = 0
    for offer, want in OFFERS.items():
        got = subprocess.run([script, "newest"], input="".join(f"{line}\n" for line in offer),
                             stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
        if got != want:
            print(f"of {offer}: {got!r}, wanted {want!r}")
            failed = 1
    sys.exit(failed)


if __name__ == "__main__":
    main(*sys.argv[1:])
