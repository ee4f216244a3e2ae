"""What `kctl segment verify` looks like on a terminal: findings, repeats folded, and two lines that sum up."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

from commands.render import Page, Row

SHOWN_BEFORE_FOLDING = 1
SIZES = ("bytes", "KiB", "MiB", "GiB", "TiB")


@dataclass(slots=True)
class Notes:
    """Notes of one code, which healthy logs have many of: the first, and how many there are."""

    first: Row
    count: int = 0

    def text(self, page: Page) -> Iterator[str]:
        """The first of them, and the number of the others."""
        yield from finding_text(self.first, page)
        if self.count > 1:
            yield page.style(f"         and {self.count - 1:,} more of these (--all shows each)", "dim")


def verify_text(rows: Iterable[Row], page: Page, *, everything: bool = False) -> Iterator[str]:
    """Errors and warnings as they come, file by file; notes by code; then what was examined and how it ended."""
    partitions: set[tuple[object, ...]] = set()
    segments = infos = 0
    notes: dict[str, Notes] = {}
    pending: list[Row] = []
    for row in rows:
        if row["kind"] == "finding":
            infos += row["severity"] == "info"
            if row["severity"] == "info" and not everything:
                notes.setdefault(str(row["code"]), Notes(row)).count += 1
                continue
            if pending and pending[-1]["file"] != row["file"]:
                yield from findings_text(pending, page, everything)
                pending = []
            pending.append(row)
            continue
        yield from findings_text(pending, page, everything)
        pending = []
        if row["kind"] == "file":
            if row["topic"] is not None:
                key = ("evidence", "moment", "broker_id", "topic", "partition")
                partitions.add(tuple(row[name] for name in key))
            segments += row["type"] == "log"
        else:
            for note in notes.values():
                yield from note.text(page)
            yield from summary_text(row, page, len(partitions), segments, infos)


def findings_text(rows: list[Row], page: Page, everything: bool) -> Iterator[str]:
    """Findings of one file; those of one code as one entry with a count, unless all are asked for."""
    rows = sorted(rows, key=lambda row: ("error", "warning", "info").index(str(row["severity"])))
    for _, same in groupby(rows, key=lambda row: (row["severity"], row["code"])):
        group = list(same)
        shown = group if everything else group[:SHOWN_BEFORE_FOLDING]
        for row in shown:
            yield from finding_text(row, page)
        if len(group) > len(shown):
            more = len(group) - len(shown)
            yield page.style(f"         and {more:,} more of these in this file (--all shows each)", "dim")


def finding_text(row: Row, page: Page) -> Iterator[str]:
    """One finding: a line that says what and where, and the sentence below it."""
    severity = str(row["severity"])
    where = "  ".join(
        part for part in (str(row["file"] or ""), owner_text(row), range_text(row), offsets_text(row)) if part
    )
    yield f"{page.style(f'{severity:<8}', severity)} {page.style(str(row['code']), 'bold')}  {where}"
    indent = " " * 9
    yield from textwrap.wrap(
        str(row["message"]), max(40, page.width - 1), initial_indent=indent, subsequent_indent=indent
    )


def owner_text(row: Row) -> str:
    """The copy that the file is from, where there are several."""
    return "  ".join(f"{name} {row[name]}" for name in ("evidence", "moment") if row.get(name))


def range_text(row: Row) -> str:
    """The bytes that a finding is about."""
    if row["position"] is None:
        return ""
    size = "" if row["size_in_bytes"] is None else f"+{row['size_in_bytes']:,}"
    return f"bytes {row['position']:,}{size}"


def offsets_text(row: Row) -> str:
    """The offsets that a finding is about, half open."""
    base, last = row["base_offset"], row["last_offset"]
    if not isinstance(base, int):
        return ""
    return f"offset {base}" if not isinstance(last, int) else f"offsets [{base}, {last + 1})"


def summary_text(row: Row, page: Page, partitions: int, segments: int, infos: int) -> Iterator[str]:
    """The two last lines."""
    amount = size_text(row["bytes"])
    held = [counted(partitions, "partition"), counted(segments, "segment"), counted(row["records"], "record")]
    yield ""
    yield f"{', '.join(held)}, {amount} in {row['seconds']:.1f} s"
    errors, warnings = row["errors"], row["warnings"]
    parts = [
        page.style(counted(number, name), style) if number else counted(number, name)
        for number, name, style in (
            (errors, "error", "error"),
            (warnings, "warning", "warning"),
            (infos, "note", "info"),
        )
    ]
    wrong = bool(errors or warnings)
    yield ", ".join(parts) + ("   (exit status 5)" if wrong else "   sound")


def counted(number: object, noun: str) -> str:
    """A number with its noun."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def size_text(number: object) -> str:
    """Bytes in the largest unit that leaves at least one."""
    amount = float(number) if isinstance(number, int) else 0.0
    unit = 0
    while amount >= 1024 and unit < len(SIZES) - 1:
        amount, unit = amount / 1024, unit + 1
    return f"{amount:,.0f} {SIZES[unit]}" if unit == 0 else f"{amount:,.1f} {SIZES[unit]}"
