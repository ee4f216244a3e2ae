"""What compiled code in a folder needs of the host: `needs.py GLIBC FOLDER` fails above this glibc, or for a library that is missing.

`readelf` (binutils) reads the versions of symbols and the names of libraries.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

OF_GLIBC = re.compile(r"ld-linux-[\w-]+\.so\.\d|lib(c|m|dl|pthread|rt|util|resolv|nsl|crypt|anl)\.so\.\d+")
OF_COMPILER = {"GLIBCXX": "3.4.25", "CXXABI": "1.3.11", "GCC": "8.0.0"}
"""libstdc++ and libgcc of gcc 8, RHEL 8's: every system has them, and wheels rely on that (PEP 600)."""
GIVEN = re.compile(rf"{OF_GLIBC.pattern}|libstdc\+\+\.so\.6|libgcc_s\.so\.1")

FILE = re.compile(r"^File: (.*)")
LIBRARY = re.compile(r"\(NEEDED\).*\[(.+)\]")
VERSION = re.compile(r"Name: (GLIBC|GLIBCXX|CXXABI|GCC)_(\d[\d.]*)\s+Flags")


def number(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def compiled(folder: Path) -> Iterator[Path]:
    """The ELF files of a folder, each once."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink():
            with path.open("rb") as file:
                if file.read(4) == b"\x7fELF":
                    yield path


def faults(folder: Path, limits: dict[str, str]) -> list[str]:
    """A line for each version above its limit, and for each library that is neither in the folder nor on every host."""
    paths = list(compiled(folder))
    if not paths:
        return [f"{folder}: no compiled code is there"]
    there = {path.name for path in folder.rglob("*.so*")}
    readelf = ["readelf", "--wide", "--dynamic", "--version-info", *paths]
    text = subprocess.run(readelf, check=True, capture_output=True, text=True).stdout
    lines, name = [], str(paths[0])
    for line in text.splitlines():
        if match := FILE.match(line):
            name = match[1]
        elif match := LIBRARY.search(line):
            if not GIVEN.fullmatch(match[1]) and match[1] not in there:
                lines.append(f"{name} needs {match[1]}, which is not in the folder")
        elif (match := VERSION.search(line)) and number(match[2]) > number(limits[match[1]]):
            lines.append(f"{name} needs {match[1]} {match[2]}, above {limits[match[1]]}")
    return lines


if __name__ == "__main__":
    found = faults(Path(sys.argv[2]), {**OF_COMPILER, "GLIBC": sys.argv[1]})
    print("\n".join(found), file=sys.stderr, end="\n" if found else "")
    sys.exit(bool(found))
