"""RESULTS.md: a section of it by name, written anew without touching the others.

A section is how it was measured, one table, and what people wrote behind that: why a goal was not reached. A new run
replaces the first two.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

RESULTS = Path(__file__).parent / "RESULTS.md"
STATES = {True: "yes", False: "**no**", None: ""}
SHOWN = {True: "ok", False: "SHORT", None: ""}
SECTION = re.compile(r"^## (\S+)\n.*?(?=^## |\Z)", re.S | re.M)
TABLE = re.compile(r"^\|.*\n?(?:^\|.*\n?)*", re.M)


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


def shown(line: Measured, before: Mapping[str, str] = MappingProxyType({})) -> str:
    """A figure for a terminal, as it is measured, and the one that was landed before where there is one."""
    text = f"  {line.what}: {line.figure}  {line.goal}  {SHOWN[line.reached]}"
    figure = before.get(key_of(line.what))
    if figure is None:
        return text
    return f"{text}  before: {figure}{'  FELL' if has_fallen(line, figure) else ''}"


def landed(name: str) -> dict[str, str]:
    """The figures of a section of RESULTS.md, by `key_of` what was measured."""
    found = TABLE.search(_section(name))
    rows = [line.strip("| ").split(" | ") for line in found[0].splitlines()[2:]] if found else []
    return {key_of(row[0]): row[1] for row in rows if len(row) > 1}


def _section(name: str) -> str:
    held = RESULTS.read_text() if RESULTS.exists() else ""
    return next((found[0] for found in SECTION.finditer(held) if found[1] == name), "")


def key_of(what: str) -> str:
    """What was measured, without the rates that stand in it."""
    return re.sub(r": [\d.,]+ [^;:]*(?=;)", "", what)


def has_fallen(line: Measured, before: str) -> bool:
    """Whether a figure is worse than the one before by more than a twentieth; its goal says which way is worse."""
    numbers = [re.match(r"[\d,]*\.?\d+", text) for text in (line.figure, before)]
    now, then = (float(found[0].replace(",", "")) if found else None for found in numbers)
    if now is None or then is None or not line.goal:
        return False
    is_most = line.goal.startswith(("≤", "at most"))
    return now > 1.05 * then if is_most else now < then / 1.05


def table(lines: Iterable[Measured], before: Mapping[str, str] = MappingProxyType({})) -> str:
    """Lines as a Markdown table, each figure beside the one before where there are such."""
    heads = ["measured", "figure", "goal", "reached", *(["before"] if before else [])]
    rows = [heads, ["---"] * len(heads)]
    for line in lines:
        row = [line.what, line.figure, line.goal, STATES[line.reached]]
        if before:
            figure = before.get(key_of(line.what), "")
            row.append(figure.partition(" (")[0] + (", **fell**" if has_fallen(line, figure) else ""))
        rows.append(row)
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def sections_but(names: Collection[str]) -> str:
    """Every section of another name, as it stands."""
    held = RESULTS.read_text() if RESULTS.exists() else ""
    return "".join(f"\n{found[0].rstrip()}\n" for found in SECTION.finditer(held) if found[1] not in names)


def write_section(name: str, text: str) -> None:
    """Put a section in the place of an earlier one, at the end; the others stay, and what stood behind its table."""
    earlier = _section(name)
    found = TABLE.search(earlier)
    notes = earlier[found.end() :].strip() if found else ""
    text = f"{text.rstrip()}\n\n{notes}" if notes else text
    held = RESULTS.read_text() if RESULTS.exists() else "# What kctl costs\n"
    first = SECTION.search(held)
    head = held[: first.start()] if first else held
    RESULTS.write_text(f"{head.rstrip()}\n{sections_but({name})}\n## {name}\n\n{text.rstrip()}\n")
