"""Shared by the tests with npm packages: install them, or skip the test (exit 77)."""
import re
import shutil
import subprocess
import sys

PATIENCE = 300  # seconds
UNREACHABLE = re.compile(r"ENOTFOUND|EAI_AGAIN|ETIMEDOUT|ECONNREFUSED|ECONNRESET"
                         r"|ENETUNREACH|ERR_SOCKET_TIMEOUT|network")


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def find(program):
    return shutil.which(program) or skip(f"no {program} here")


def install(source, folder):
    """Install the packages of package-lock.json in `source` into `folder`."""
    npm = find("npm")
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(source / name, folder)
    try:
        done = subprocess.run([npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"],
                              cwd=folder, capture_output=True, text=True, timeout=PATIENCE,
                              check=False)
    except subprocess.TimeoutExpired:
        skip("npm does not reach its registry in time")
    if done.returncode and UNREACHABLE.search(done.stderr):
        skip("npm does not reach its registry")
    if done.returncode:
        sys.exit(f"npm: {done.stdout}{done.stderr}")
