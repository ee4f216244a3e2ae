"""`--where`, `--columns` and `--sort`: which rows, which of their keys, in which order.

    --where severity=error --where 'position>=1000' --where message~CRC --columns file,code --sort -position

A condition is a key, an operator and a value; several are all met. Rows without one of the keys are left out. Numbers are
compared as numbers. The exit status stays that of all rows: what is not shown is not unsaid.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import click

from commands.cli.leaving import Chunk
from commands.cli.render import Outcome, Row
from kctl.errors import BadValue, near_names

CONDITION = r"(?s)(\w+)(!=|>=|<=|=|>|<|~)(.*)"
OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    "~": lambda a, b: str(b) in str(a),
}


class Condition(NamedTuple):
    """What a row must meet."""

    key: str
    operator: str
    value: str

    def holds(self, row: Row) -> bool:
        """Whether the row has the key, and its value is so."""
        if self.key not in row:
            return False
        present: Any = row[self.key]
        if present is None:
            return (self.value == "") == (self.operator == "=") and self.operator in ("=", "!=")
        expected: Any = self.value
        if isinstance(present, bool):
            present = str(present).lower()
        elif isinstance(present, (int, float)) and self.operator != "~":
            try:
                expected = float(expected)
            except ValueError:
                return self.operator == "!="
        elif not isinstance(present, str):
            present = str(present)
        return OPERATORS[self.operator](present, expected)


class Conditions(click.ParamType[Condition]):
    """`KEY=VALUE`, and with other operators."""

    name = "CONDITION"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Condition:
        """The condition."""
        if isinstance(value, Condition):
            return value
        match = re.fullmatch(CONDITION, value)
        if not match:
            self.fail(
                f"{value!r} is not a condition such as severity=error, position>=1000 or file~orders",
                param,
                ctx,
            )
        return Condition(*match.groups())


class Selection(NamedTuple):
    """What was asked for."""

    where: Sequence[Condition] = ()
    columns: Sequence[str] = ()
    sort: str = ""

    def of(self, outcome: Outcome, keys: Sequence[str], name: str, note: Callable[[str], None]) -> Outcome:
        """The rows that are wanted; it is noted where none is. Raises BadValue for a key that no row of the command has."""
        if not any(self):
            return outcome
        if not keys or outcome.is_exact:
            raise BadValue(
                f"`{name}` prints no rows to choose from", "leave --where, --columns and --sort out"
            )
        order = self.sort.removeprefix("-")
        for key in [*(condition.key for condition in self.where), *self.columns, *filter(None, [order])]:
            if key not in keys:
                raise BadValue(
                    f"no row of `{name}` has the key {key!r}",
                    near_names(key, keys, otherwise=f"`kctl schema` has its keys: {', '.join(keys)}"),
                )
        rows: Iterable[Row] = (
            outcome.rows if outcome.encoded is None else decoded(outcome.encoded("jsonl"), outcome.rows)
        )
        rows = self._met(rows, note)
        if order:
            having = [row for row in rows if order in row]
            known = [row for row in having if row[order] is not None]
            known.sort(key=lambda row: rank(row[order]), reverse=self.sort.startswith("-"))
            rows = known + [row for row in having if row[order] is None]
        if self.columns:
            rows = (
                {key: row[key] for key in ("kind", *self.columns) if key in row}
                for row in rows
                if not row.keys().isdisjoint(self.columns)
            )
        return Outcome(rows)

    def _met(self, rows: Iterable[Row], note: Callable[[str], None]) -> Iterator[Row]:
        """The rows that meet every condition."""
        left_out = shown = 0
        for row in rows:
            if all(condition.holds(row) for condition in self.where):
                shown += 1
                yield row
            else:
                left_out += 1
        if left_out and not shown:
            from formats.words import counted

            where = " ".join(f"--where {''.join(condition)}" for condition in self.where)
            note(f"none of {counted(left_out, 'row')} meets {where}; the exit status counts them all")


def rank(value: object) -> tuple[int, Any]:
    """A key to sort by: numbers, then texts."""
    return (0, value) if isinstance(value, (int, float)) else (1, str(value))


def decoded(lines: Iterable[Chunk] | None, rows: Iterable[Row]) -> Iterator[Row]:
    """The rows of a command that encodes them itself."""
    if lines is None:
        yield from rows
        return
    import msgspec

    decode = msgspec.json.Decoder().decode
    for chunk in lines:
        yield from map(decode, bytes(chunk).splitlines())


def keys_of(words: Sequence[str]) -> list[str]:
    """Every key of the rows that the catalogue promises for a command."""
    from commands.catalogue import verb_of
    from kctl.rows import row_type

    verb = verb_of(words)
    fields = [name for row in (verb.rows if verb else ()) for name in row_type(row).fields]
    return list(dict.fromkeys([*(["kind"] if fields else []), *fields]))
