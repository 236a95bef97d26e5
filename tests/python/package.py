#!/usr/bin/env python3
"""Install the package as its users do, from a clone and from a source archive made by
setuptools, and use it.  The clone stays clean.

    package.py SOURCES

Nothing is downloaded: setuptools and wheel are those of the system.
"""
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

PROGRAM = """
import asyncio, weft
assert weft.__file__.startswith({folder!r}), weft.__file__
async def main():
    return type(asyncio.get_running_loop()).__module__
assert weft.run(main()) == "weft._loop"
print(weft.__version__)
"""


def run(*words, **options):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          **options)
    if done.returncode != 0:
        sys.exit(f"{words}: exit status {done.returncode}\n{done.stdout}")
    return done.stdout


def install(sources, site):
    run(sys.executable, "-m", "pip", "install", "--no-build-isolation", "--no-index", "--no-deps",
        "--target", site, sources)


def check_clean(clone):
    left = run("git", "status", "--porcelain", cwd=clone)
    if left:
        sys.exit(f"left in the clone:\n{left}")


def main():
    sources = Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        # A clone, so that other build results in the source tree are not included.
        run("git", "clone", "-q", sources, f"{folder}/clone")
        run(sys.executable, "setup.py", "-q", "sdist", "-d", folder, cwd=f"{folder}/clone")
        [archive] = Path(folder).glob("weft-*.tar.gz")
        with tarfile.open(archive) as tar:
            tar.extractall(f"{folder}/sources")
        [unpacked] = Path(folder, "sources").iterdir()
        install(f"{folder}/clone", f"{folder}/other")
        check_clean(f"{folder}/clone")
        install(unpacked, f"{folder}/site")
        site = f"{folder}/site"
        said = run(sys.executable, "-c", PROGRAM.format(folder=site), cwd=folder,
                   env={**os.environ, "PYTHONPATH": site})
        print("installed weft", said.strip(), "from", archive.name)


main()
