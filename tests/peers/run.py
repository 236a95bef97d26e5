#!/usr/bin/env python3
"""Connect third-party programs to ours, and check their results.

    tests/peers/run.py curl|wrk|nginx|s_client|s_server|browser|fetch SERVER FILES CHAT TLS [WEFT]

SERVER is tests/peers/server.c, TLS is tls_peer.c there, FILES and CHAT are the examples,
WEFT is the tool that runs scripts.  Exits with 77 if the peer is not installed.
"""
import http.client
import importlib
import subprocess
import sys
import time
import traceback

sys.dont_write_bytecode = True
import world  # noqa: E402


def run(name, test, *args):
    """Run one test; return whether it failed.  The reason is printed."""
    begin = time.monotonic()
    try:
        test(*args)
    except (AssertionError, OSError, ValueError, http.client.HTTPException,
            subprocess.SubprocessError):
        print(f"{name} FAILED after {time.monotonic() - begin:.2f} s")
        traceback.print_exc(file=sys.stdout)
        return True
    print(f"{name}: {time.monotonic() - begin:.2f} s", flush=True)
    return False


def main(args):
    module = importlib.import_module(f"peer_{args[0]}")
    with world.World(args[1:]) as stage:
        tests = [(name, test, stage) for name, test in vars(module).items()
                 if name.startswith("test_")]
        failed = [test for test in [*tests, ("the end of all", stage.end)] if run(*test)]
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main(sys.argv[1:])
