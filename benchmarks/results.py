"""RESULTS.md: a section of it by name, written anew without touching the others."""

import re
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Protocol

RESULTS = Path(__file__).parent / "RESULTS.md"
STATES = {True: "yes", False: "**no**", None: ""}
SHOWN = {True: "ok", False: "SHORT", None: ""}
SECTION = re.compile(r"^## (\S+)\n.*?(?=^## |\Z)", re.S | re.M)


class Measured(Protocol):
    """One figure: `benchmarks.parts.Line`."""

    @property
    def what(self) -> str: ...

    @property
    def figure(self) -> str: ...

    @property
    def goal(self) -> str: ...

    @property
    def reached(self) -> bool | None: ...


def shown(line: Measured) -> str:
    """A figure for a terminal, as it is measured."""
    return f"  {line.what}: {line.figure}  {line.goal}  {SHOWN[line.reached]}"


def table(lines: Iterable[Measured]) -> str:
    """Lines as a Markdown table."""
    rows = [f"| {line.what} | {line.figure} | {line.goal} | {STATES[line.reached]} |" for line in lines]
    return "\n".join(["| measured | figure | goal | reached |", "|---|---|---|---|", *rows])


def sections_but(names: Collection[str]) -> str:
    """Every section of another name, as it stands."""
    held = RESULTS.read_text() if RESULTS.exists() else ""
    return "".join(f"\n{found[0].rstrip()}\n" for found in SECTION.finditer(held) if found[1] not in names)


def write_section(name: str, text: str) -> None:
    """Put a section in the place of an earlier one, at the end; the others stay."""
    held = RESULTS.read_text() if RESULTS.exists() else "# What kctl costs\n"
    first = SECTION.search(held)
    head = held[: first.start()] if first else held
    RESULTS.write_text(f"{head.rstrip()}\n{sections_but({name})}\n## {name}\n\n{text.rstrip()}\n")
