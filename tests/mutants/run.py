"""`make mutants`: one wrong line at a time in the modules that decide, each of which a test must catch.

    python -m tests.mutants.run                      every mutant; prints those that survive
    python -m tests.mutants.run --only apply.py      those of files with this in their path

The lists are `*.txt` here. A line `= FILE TESTS...` says whose lines follow and which tests must fail; then each
mutant is a line `- BEFORE` and a line `+ AFTER`. BEFORE occurs once in the file: `test_lists.py` holds the list to it.

The tests of `make test` come first; what survives them is named where what `make test-all` repeats catches it.

A mutant lives in a forked process: an import hook gives it the changed source, so that nothing on disk changes.
"""

from __future__ import annotations

import argparse
import importlib.abc
import importlib.machinery
import importlib.util
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import CodeType, ModuleType
from typing import Literal, NamedTuple

ROOT = Path(__file__).parent.parent.parent
MAKE_TEST = ("-m", "not repeated and not matrix")
REST = ("-m", "repeated and not matrix and not brokers and not spark")
LONGEST = 120  # seconds; a mutant that never ends is caught, and named, for a busy machine looks the same


class Mutant(NamedTuple):
    """A line of a file as it should be and as it is not, and the tests that must notice."""

    file: str
    tests: tuple[str, ...]
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.file}\n  - {self.before}\n  + {self.after}\n  = {' '.join(self.tests)}"

    def source(self) -> str:
        """The file with the wrong line; ValueError where the list is wrong."""
        text = (ROOT / self.file).read_text()
        if text.count(self.before) != 1:
            raise ValueError(f"occurs {text.count(self.before)} times: {self}")
        return text.replace(self.before, self.after)


def mutants() -> Iterator[Mutant]:
    """Those of all lists."""
    for path in sorted(Path(__file__).parent.glob("*.txt")):
        file, tests, before = "", (), ""  # type: tuple[str, tuple[str, ...], str]
        for line in path.read_text().splitlines():
            match line[:2]:
                case "= ":
                    file, *names = line[2:].split()
                    tests = tuple(names)
                case "- ":
                    before = line[2:]
                case "+ ":
                    yield Mutant(file, tests, before, line[2:])
                case _ if line and not line.startswith("#"):
                    raise ValueError(f"{path.name}: {line!r}")


class Wrong(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports one module from changed source."""

    def __init__(self, mutant: Mutant) -> None:
        self.name = mutant.file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        self.path = ROOT / mutant.file
        self.code: CodeType = compile(mutant.source(), self.path, "exec")

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self.name:
            return None
        is_package = self.path.name == "__init__.py"
        spec = importlib.util.spec_from_loader(fullname, self, origin=str(self.path), is_package=is_package)
        assert spec is not None
        spec.has_location = True
        if is_package:
            spec.submodule_search_locations = [str(self.path.parent)]
        return spec

    def exec_module(self, module: ModuleType) -> None:
        exec(self.code, module.__dict__)


def outcome(
    tests: Sequence[str], mutant: Mutant | None = None, chosen: Sequence[str] = MAKE_TEST
) -> Literal["passed", "failed", "too long"]:
    """How the tests end, with a mutant or without one."""
    child = os.fork()
    if not child:
        os.setsid()
        signal.alarm(LONGEST)
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        if mutant:
            sys.meta_path.insert(0, Wrong(mutant))
        import pytest

        os._exit(
            pytest.main(
                [
                    "-x",
                    "-q",
                    "-p",
                    "no:xdist",
                    "-W",
                    "ignore::pytest.PytestAssertRewriteWarning",
                    *selection(tests),
                    *chosen,
                ]
            )
        )
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGALRM:
        return "too long"
    return "passed" if status == 0 else "failed"


def selection(tests: Sequence[str]) -> list[str]:
    """Arguments of pytest: paths, then `-k` for a word that names no path."""
    paths = [name for name in tests if name.startswith("tests/")]
    words = [name for name in tests if not name.startswith("tests/")]
    return paths + (["-k", " or ".join(words)] if words else [])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", help="mutants of files with this in their path")
    given = parser.parse_args()
    os.chdir(ROOT)
    # What every test needs is imported once, before the forks; nothing of kctl is.
    import click  # noqa: F401
    import hypothesis  # noqa: F401
    import jsonschema  # noqa: F401
    import msgspec  # noqa: F401
    import numpy  # noqa: F401
    import pyarrow  # noqa: F401
    import pytest  # noqa: F401

    chosen = [mutant for mutant in mutants() if given.only in mutant.file]
    for tests in dict.fromkeys(mutant.tests for mutant in chosen):
        if outcome(tests) != "passed":  # then its failures would say nothing
            sys.exit(f"fails, or runs nothing, without any mutant: {' '.join(tests)}")
    alive, late = [], 0
    start = time.monotonic()
    for number, mutant in enumerate(chosen, 1):
        end = outcome(mutant.tests, mutant)
        if (
            end == "passed"
            and outcome(mutant.tests, mutant, REST) == "failed"
            and outcome(mutant.tests, None, REST) == "passed"
        ):
            late += 1
            print(f"only `make test-all` catches: {mutant}", flush=True)
        elif end == "passed":
            alive.append(mutant)
            print(f"survives: {mutant}", flush=True)
        elif end == "too long":
            print(f"caught after {LONGEST} s: {mutant}", flush=True)
        if sys.stderr.isatty():
            print(f"\r{number} of {len(chosen)}", end="", file=sys.stderr)
    print(
        f"{len(chosen)} mutants in {time.monotonic() - start:.0f} s, {late} are caught by `make test-all` alone, {len(alive)} survive"
    )
    sys.exit(5 if alive else 0)


if __name__ == "__main__":
    main()
