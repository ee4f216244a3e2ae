"""The arrows between the layers, the types and the lint hold, wherever the tests are run; files form no circles."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
BIN = Path(sys.executable).parent
PACKAGES = ("formats", "kctl", "commands")
LARGEST_FOLDER = 22  # files of Python; more are for nobody to take in
# What follows may only shrink: a row goes with the circle or the large folder that it names.
KNOWN_CIRCLES: frozenset[frozenset[str]] = frozenset()
KNOWN_LARGE_FOLDERS: dict[str, int] = {}
Modules = Mapping[str, str]  # source text by dotted name; a package's is that of its `__init__`


TOOLS = (["lint-imports"], ["mypy"], ["ruff", "check", "."], ["ruff", "format", "--check", "."])


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: " ".join(tool[:2]))
@pytest.mark.slow
def test_structure(tool: list[str]) -> None:
    ran = subprocess.run([BIN / tool[0], *tool[1:]], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-1000:]


# --- circles ------------------------------------------------------------------------------------------


def modules() -> dict[str, str]:
    """Every file of the packages, by its dotted name."""
    files = (path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py")))
    return {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path.read_text()
        for path in files
    }


def imported(text: str, known: Modules) -> Iterator[str]:
    """The modules that a file imports anywhere in it: in functions, for types alone, and named in texts as well.

    A text is `MODULE` or `MODULE:NAME`, as tables have it whose modules are imported when they are needed.
    """
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "an import names the whole path"
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                if inner in known or node.module in known:
                    yield inner if inner in known else str(node.module)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            module = node.value.partition(":")[0]
            if "." in module and module in known and known[module] is not text:
                yield module


Arrows = Mapping[str, set[str]]


def circles(files: Modules) -> set[frozenset[str]]:
    """The sets of two and more files of which each reaches each by imports."""
    return knots({name: set(imported(text, files)) for name, text in files.items()})


def package_of(module: str) -> str:
    """The package of `kctl` that a module is in, or the module where it is in none; elsewhere the package of all."""
    names = module.split(".")
    return names[1] if names[0] == "kctl" and len(names) > 1 else names[0]


def package_arrows(files: Modules) -> Arrows:
    """Which packages each package imports."""
    arrows: dict[str, set[str]] = {package_of(name): set() for name in files}
    for name, text in files.items():
        arrows[package_of(name)] |= {package_of(module) for module in imported(text, files)} - {
            package_of(name)
        }
    return arrows


def knots(arrows: Arrows) -> set[frozenset[str]]:
    """The sets of two and more names of which each reaches each."""

    def reached(name: str) -> set[str]:
        seen: set[str] = set()
        ahead = [*arrows[name]]
        while ahead:
            if (module := ahead.pop()) not in seen:
                seen.add(module)
                ahead += arrows[module]
        return seen

    reach = {name: reached(name) for name in arrows}
    return {
        frozenset(other for other in reach[name] if name in reach[other])
        for name in arrows
        if name in reach[name]
    }


def test_a_circle_is_found_where_one_is() -> None:
    files = {
        "p": "",
        "p.a": "from p.b import x",
        "p.b": "def f():\n    from p import c",
        "p.c": "import p.a, os",
        "p.d": "from p.a import x",
    }
    assert circles(files) == {frozenset({"p.a", "p.b", "p.c"})}
    assert circles({**files, "p.c": "import os"}) == set()


def test_a_knot_of_packages_is_found_where_one_is() -> None:
    files = {
        "kctl.a.x": "from kctl.b import y",
        "kctl.b.y": "",
        "kctl.b.z": 'CHECKS = {"name": "kctl.a.x:check"}',
        "kctl.c": "import kctl.a.x",
    }
    assert circles(files) == set()
    assert knots(package_arrows(files)) == {frozenset({"a", "b"})}


@pytest.mark.slow
def test_no_knot_of_packages() -> None:
    """Packages of `kctl` import each other one way."""
    found = sorted(map(sorted, knots(package_arrows(modules()))))
    assert not found, f"packages import each other: {found}"


@pytest.mark.slow
def test_no_import_circle_between_files() -> None:
    """A circle that shrinks is no longer the one that is listed: the list then follows."""
    found = circles(modules())
    new = [sorted(circle) for circle in found - KNOWN_CIRCLES]
    gone = [sorted(circle) for circle in KNOWN_CIRCLES - found]
    assert not new, f"files import each other in a circle: {new}"
    assert not gone, f"take these off KNOWN_CIRCLES, they are no circles any more: {gone}"


# --- folders ------------------------------------------------------------------------------------------


def test_no_folder_holds_more_files_than_one_takes_in() -> None:
    folders = {path.parent for package in PACKAGES for path in (ROOT / package).rglob("*.py")}
    sizes = {str(folder.relative_to(ROOT)): len([*folder.glob("*.py")]) for folder in folders}
    large = {name: size for name, size in sizes.items() if size > LARGEST_FOLDER}
    grown = {name: size for name, size in large.items() if size > KNOWN_LARGE_FOLDERS.get(name, 0)}
    assert not grown, f"more than {LARGEST_FOLDER} files in a folder: {grown}"
    assert large == KNOWN_LARGE_FOLDERS, "KNOWN_LARGE_FOLDERS says more than there is: lower its numbers"


# --- tests --------------------------------------------------------------------------------------------


def test_no_test_is_left_out_by_where_it_stands() -> None:
    """Only functions of files `test_*.py` in packages are collected; of two with one name, the later alone."""
    for path in (ROOT / "tests").rglob("*.py"):
        functions = [
            node.name
            for node in ast.parse(path.read_text()).body
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
        ]
        assert not functions or path.name.startswith("test_"), f"{path}: pytest does not look here"
        assert not functions or (path.parent / "__init__.py").exists(), f"{path.parent} is no package"
        assert len(functions) == len(set(functions)), f"{path}: two tests have one name"


def test_every_test_is_in_a_level() -> None:
    """What a level leaves out is in a later one."""
    makefile = (ROOT / "Makefile").read_text()
    selected = dict(
        re.findall(r"^(test[\w-]*):.*\n(?:\t\$\(COMPILE\)\n)?\t.* -m pytest.*?-m '(.*?)'", makefile, re.M)
    )
    assert selected == {
        "test-quick": "not (slow or java or brokers or spark or matrix or later or repeated)",
        "test": "not matrix and not repeated",
        "test-all": "repeated and not matrix",
    }
    assert "\ntest-all: test\n" in makefile
    assert "\ntest-matrix: $(VENV)/.dev\n\t$(COMPILE)\n\t$(BIN)/python -m pytest $(PYTEST_ARGS)\n" in makefile
