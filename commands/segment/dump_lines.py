"""Rows of `kctl segment dump` as tab-separated lines, most of them made from columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from commands.cli.leaving import ELSE, Chunk
from commands.cli.render import KeysByKind, Row, cell, tab_separated, text_cell
from kctl.dump.spelling import Spelling
from kctl.rows.dump import BATCH, RECORD


def _value(value: object) -> bytes:
    return cell(value).encode()


def _escaped(text: str, characters: Iterable[str]) -> bytes:
    for character in sorted(characters, key="\\".__ne__):  # a backslash first: others become one
        text = text.replace(character, text_cell(character))
    return text.encode()


TAB_SEPARATED = Spelling(
    begin=str.encode,
    before=lambda name: b"\t",
    separator=b"\t",
    end=b"\n",
    names=lambda row: [name for name in row.fields if not name.endswith("_base64")],
    value=_value,
    named=lambda name, values: b"\t".join(_value(values.get(key)) for key in (name, f"{name}_base64")),
    around_text=lambda name: (b"", b"\t"),
    around_base64=lambda name: (b"\t", b""),
    escaped=_escaped,
    odd=re.compile(f"[{ELSE}]"),
)
"""As `tab_separated` writes rows that have all their keys."""


def tab_separated_lines(items: Iterable[Chunk | Row], checked: Callable[[Row], Row]) -> Iterator[Chunk]:
    """Lines as they are and rows as lines, each kind with a header line before its first."""
    keys_by_kind: KeysByKind = {}
    for item in items:
        if isinstance(item, dict):
            row = checked(item)
            row = RECORD.with_all_keys(row) if row["kind"] == RECORD.kind else row
            yield from (f"{line}\n".encode() for line in tab_separated([row], keys_by_kind))
        else:
            yield from _headed(item, keys_by_kind)


def _headed(lines: Chunk, keys_by_kind: KeysByKind) -> Iterator[Chunk]:
    """The lines of batches and records, with the header lines that were not there before."""
    for type_ in (BATCH, RECORD):
        if type_.kind in keys_by_kind:
            continue
        data, begin = bytes(lines), TAB_SEPARATED.begin(type_.kind) + TAB_SEPARATED.separator
        at = 0 if data.startswith(begin) else data.find(b"\n" + begin) + 1
        if at or data.startswith(begin):
            keys_by_kind[type_.kind] = keys = tuple(type_.with_all_keys({}))
            yield data[:at] + "\t".join(keys).encode() + b"\n"
            lines = data[at:]
    yield lines
