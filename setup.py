"""Builds the native core; everything else about the package is in setup.cfg.

The core is optional: without a C++20 compiler the install succeeds and the readable Python search takes over.
`T2T_REQUIRE_NATIVE=1` turns that into an error (CI sets it), because an optional extension hides real C++ errors too.
"""
import os
from glob import glob

from pybind11.setup_helpers import ParallelCompile, Pybind11Extension, build_ext
from setuptools import setup

NATIVE = "envs/t2t_envs/frozen_lake/native"
SANITIZE = ["-fsanitize=address,undefined", "-fno-omit-frame-pointer"] if os.environ.get("T2T_SANITIZE") else []
LEVEL = "-O1" if SANITIZE else "-O3"  # at -O3 a sanitized build takes many minutes and shows less of where a fault is
MSVC = os.name == "nt"  # its threads need no option, and pybind11 asks it for exceptions and C++20
COMPILE, LINK = (["/O2"], []) if MSVC else ([LEVEL, "-pthread", *SANITIZE], ["-pthread", *SANITIZE])


def is_stale(object_file, source):
    """An object is made again when its source or any header is newer: which header it includes is not looked up."""
    made = os.path.getmtime(object_file) if os.path.exists(object_file) else 0.0
    return any(os.path.getmtime(file) > made for file in (source, *glob(f"{NATIVE}/**/*.hpp", recursive=True)))


ParallelCompile("T2T_BUILD_JOBS", needs_recompile=is_stale, default=2).install()


def links():
    """Where the project lives, told by the repository that builds it: `pages.yml` publishes the site beside it."""
    owner, _, name = os.environ.get("GITHUB_REPOSITORY", "").partition("/")
    if not name:
        return {}
    source = f"https://github.com/{owner}/{name}"
    return {"Documentation": f"https://{owner.lower()}.github.io/{name}/", "Source": source, "Issues": f"{source}/issues"}


setup(
    project_urls=links(),
    ext_modules=[
        Pybind11Extension(
            "t2t_envs.frozen_lake._native",
            sorted(glob(f"{NATIVE}/**/*.cpp", recursive=True)),
            depends=sorted(glob(f"{NATIVE}/**/*.hpp", recursive=True)),
            include_dirs=[NATIVE],
            cxx_std=20,
            extra_compile_args=COMPILE,
            extra_link_args=LINK,
            optional=os.environ.get("T2T_REQUIRE_NATIVE") != "1",
        )
    ],
    cmdclass={"build_ext": build_ext},
)
