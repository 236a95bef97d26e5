"""Upstream's part of Debian's source packages, for tests that are only in these.

    folder = sources.get(CACHE, "python-websockets")

The package is unpacked below CACHE, once for all runs.  apt downloads it from the mirror
that this machine already uses, with its own lists and cache, and checks the signature with
the system's keys.  Nothing on the system changes.
"""
import fcntl
import os
import shutil
import subprocess
from pathlib import Path

PATIENCE = 300  # seconds
RELEASE = "trixie"  # Debian 13, whatever the release of this machine
KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"


class Unavailable(Exception):
    """The source is not available here: this is not an error of the loop."""


def call(*words, cwd=None):
    try:
        done = subprocess.run(words, cwd=cwd, capture_output=True, text=True, timeout=PATIENCE,
                              stdin=subprocess.DEVNULL, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"{words[0]}: {error}") from error
    if done.returncode:
        raise Unavailable(f"{words[0]}: {done.stdout}{done.stderr}")
    return done.stdout


def targets(form):
    return call("apt-get", "indextargets", "--format", form, "Created-By: Packages").split("\n")


def mirror():
    """The mirror of the main Debian archive, not of its security updates."""
    for line in targets("$(ORIGIN)|$(LABEL)|$(REPO_URI)"):
        if line.startswith("Debian|Debian|"):
            return line.rpartition("|")[2]
    # If lists were never downloaded, apt knows only the addresses of archives.
    for line in targets("$(REPO_URI)"):
        if line.rstrip("/").endswith("/debian"):
            return line
    raise Unavailable("apt has no Debian mirror configured")


def options(folder):
    """apt's options for a separate state below the folder."""
    apt = folder / "apt"
    for name in ("lists/partial", "cache/archives/partial", "none"):
        (apt / name).mkdir(parents=True, exist_ok=True)
    if not Path(KEYS).exists():
        raise Unavailable(f"no {KEYS}")
    (apt / "sources.list").write_text(f"deb-src [signed-by={KEYS}] {mirror()} {RELEASE} main\n")
    user = call("id", "-un").strip()
    return [word for setting in (
        f"Dir::Etc::sourcelist={apt}/sources.list", f"Dir::Etc::sourceparts={apt}/none",
        f"Dir::State::lists={apt}/lists", f"Dir::Cache={apt}/cache",
        f"APT::Sandbox::User={user}", "Acquire::Retries=2", "Acquire::http::Timeout=20",
        "Acquire::Languages=none") for word in ("-o", setting)]


def fetch(folder, package):
    settings = options(folder)
    call("apt-get", *settings, "update", "-qq")
    new, download = folder / f"{package}.new", folder / f"{package}.download"
    for path in (new, download):
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir()
    call("apt-get", *settings, "source", "-qq", "--download-only", "--tar-only", "--only-source",
         package, cwd=download)
    [archive] = download.glob("*.orig.tar.*")
    call("tar", "-xf", str(archive), "--strip-components=1", "-C", str(new))
    shutil.rmtree(download)
    shutil.rmtree(folder / "apt")
    os.rename(new, folder / package)


def get(folder, package):
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w") as lock:  # closing it unlocks it
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / package).is_dir():
            print(f"fetching Debian's source package {package}", flush=True)
            fetch(folder, package)
    return folder / package
