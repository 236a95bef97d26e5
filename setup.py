"""Build the Python package.  CMake builds the extension, as in ./dev."""
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).resolve().parent
BUILD = ROOT / "build"  # setuptools also puts its output here, so that a clone stays clean


def version():
    text = (ROOT / "include/weft/base.h").read_text()
    return ".".join(re.findall(r"#define WEFT_VERSION_\w+ (\d+)", text))


class CMakeBuild(build_ext):
    """Has CMake make weft._core, and puts it where setuptools wants it."""

    def build_extension(self, ext):
        folder = Path(self.build_temp).resolve() / "weft"
        ninja = ["-G", "Ninja"] if shutil.which("ninja") else []
        subprocess.run(
            ["cmake", "-S", ROOT, "-B", folder, *ninja, "-DCMAKE_BUILD_TYPE=Release",
             "-DWEFT_PYTHON=ON", f"-DWEFT_PYTHON_EXECUTABLE={sys.executable}",
             "-DWEFT_TESTS=OFF", "-DWEFT_EXAMPLES=OFF", "-DWEFT_JS=OFF"], check=True)
        subprocess.run(["cmake", "--build", folder, "--target", "weft_python",
                        "-j", str(os.cpu_count() or 1)], check=True)
        [built] = (folder / "python/weft").glob("_core*.so")
        target = Path(self.get_ext_fullpath(ext.name))
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(built, target)


BUILD.mkdir(exist_ok=True)
setup(
    version=version(),
    packages=["weft"],
    package_dir={"weft": "bindings/python/weft"},
    package_data={"weft": ["py.typed", "*.pyi"]},
    ext_modules=[Extension("weft._core", sources=[])],
    cmdclass={"build_ext": CMakeBuild},
    options={"egg_info": {"egg_base": BUILD.name}},
)
