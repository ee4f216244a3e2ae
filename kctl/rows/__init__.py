"""The rows that commands print: one table of kinds and fields, and their JSON Schema.

This folder holds the rows, one file a subject. A `RowType` is called with the values and returns the row, `kind` first,
missing values as null; an unknown key is a bug and raises TypeError.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from itertools import repeat
from typing import NamedTuple

from kctl.model import TopicPartition

JSON_TYPES = ("string", "integer", "number", "boolean", "array", "object")


class RowField(NamedTuple):
    """One key of a row: JSON types allowed, and what it holds."""

    types: tuple[str, ...]
    doc: str = ""
    choices: tuple[str, ...] = ()
    is_optional: bool = False

    def fits(self, value: object) -> bool:
        """Whether a value is of these types, and among the choices."""
        if value is None:
            return self.is_optional or not self.types or "null" in self.types
        if self.choices:
            return value in self.choices
        return not self.types or any(isinstance(value, PYTHON[name]) for name in self.types)


PYTHON: dict[str, type | tuple[type, ...]] = {
    "string": str, "integer": int, "number": (int, float), "boolean": bool, "array": list, "object": dict, "null": (),
}  # fmt: skip


def _fields(line: str) -> Iterator[tuple[str, RowField]]:
    names, kind, doc, *_ = [*re.split(r" {2,}", line, maxsplit=2), "", ""]
    is_optional, kind = kind.endswith(" or absent"), kind.removesuffix(" or absent")
    null = ("null",) if kind.endswith("?") else ()
    kind = kind.removesuffix("?")
    for name in names.split(", "):
        if not kind:
            shared, mark, _ = name.partition("?")
            field = SHARED.get(shared)
            if field is None:
                raise ValueError(f"{shared} is not in SHARED: give its type, two spaces behind the name")
            yield shared, field._replace(types=(*field.types, "null")) if mark else field
        elif kind == "any":
            yield name, RowField((), doc, (), is_optional)
        elif "|" in kind or kind not in JSON_TYPES:
            yield name, RowField(("string", *null), doc, tuple(kind.split("|")), is_optional)
        else:
            yield name, RowField((kind, *null), doc, (), is_optional)


# Fields that are the same in many kinds of rows.
SHARED: dict[str, RowField] = {}
for _line in """
topic, topic_id, group, member_id, remote_log_segment_id, kafka_version, host, rack  string
partition, broker_id, leader_epoch, controller_epoch, producer_id, producer_epoch  integer
offset, start_offset, end_offset, base_offset, last_offset, log_start_offset, log_end_offset, high_watermark  integer
position, size_in_bytes, bytes, batches, records, segments, errors, warnings, infos, version, port, line  integer
replicas, isr  array
evidence  string  the folder given, where several were
moment  string  the copy it is from, where there are several
""".strip().split("\n"):
    SHARED.update(_fields(_line))


class RowType:
    """A kind of row: its fields in order, written as a table.

        lineage: A replica: its leader epochs that have records, and where its log begins and ends.
        topic, partition, broker_id?
        epochs         array      [epoch, start_offset], normalised
        best_source    integer?   broker whose copy to take; null where a person must choose
        key            any or absent

    Columns stand two spaces or more apart: names, JSON type (`any`, or the values allowed: `leader|follower`), what
    the field holds. `?` allows null; a row may be without a field that is `or absent`: of `NAME` and `NAME_base64` it
    has one. Names without a type are those of `SHARED`. An indented line continues the one before.
    """

    def __init__(self, table: str) -> None:
        title, *lines = re.sub(r"\n {5,}", " ", table.strip()).split("\n")
        self.kind, self.doc = title.split(": ", 1)
        self.fields = {name: field for line in lines for name, field in _fields(line.strip())}
        self.required = ["kind", *(name for name, field in self.fields.items() if not field.is_optional)]
        self._names = self.required[1:]
        self._blank: dict[str, object] = {**dict.fromkeys(self.required), "kind": self.kind}

    def __call__(self, **values: object) -> dict[str, object]:
        row = {**self._blank, **values}
        if len(row) != len(self._blank) and not values.keys() <= self.fields.keys():
            self._check_keys(values)
        return row

    def _check_keys(self, values: Mapping[str, object]) -> None:
        if unknown := values.keys() - self.fields.keys():
            raise TypeError(f"row {self.kind} has no key {sorted(unknown)}")

    def of(self, source: object, /, *others: object, **values: object) -> dict[str, object]:
        """The row of `values`, and under each other key the attribute of that name of the first source that has it.

        Tuples become lists. A `partition` that is a TopicPartition gives `topic` and `partition`. Raises
        AttributeError for a key that none of them has.
        """
        partition = getattr(source, "partition", None)
        if isinstance(partition, TopicPartition):
            values = {**partition._asdict(), **values}
        row = self(**values)
        for name in self._names:
            if name not in values:
                owner = source
                if others and not hasattr(source, name):
                    owner = next((one for one in others if hasattr(one, name)), source)
                value = getattr(owner, name)
                row[name] = list(value) if isinstance(value, tuple) else value
        return row

    def many(self, **columns: Iterable[object]) -> Iterator[dict[str, object]]:
        """A row for each place of the columns, which are equally long; what has no column is null."""
        self._check_keys(columns)
        values_by_name = [columns.get(name) for name in self.required[1:]]
        blank = repeat(None)
        names = self.required
        for values in zip(
            repeat(self.kind),
            *(blank if column is None else column for column in values_by_name),
            strict=False,
        ):
            yield dict(zip(names, values, strict=True))

    def problem_of(self, row: object) -> str | None:
        """What keeps a value that was read back from being such a row; lists and objects are not looked into."""
        if not isinstance(row, dict):
            return f"is no {self.kind}"
        for name, field in self.fields.items():
            if name not in row:
                if not field.is_optional:
                    return f"has no {name}"
            elif not field.fits(row[name]):
                return f"{name} cannot be {str(row[name])[:100]!r}"
        return None

    def with_all_keys(self, row: dict[str, object]) -> dict[str, object]:
        """The row with its optional keys too, for columns that must not shift."""
        return {"kind": self.kind, **{name: row.get(name) for name in self.fields}}

    def schema(self) -> dict[str, object]:
        """JSON Schema (draft 2020-12) of this kind."""
        properties: dict[str, object] = {"kind": {"const": self.kind}}
        for name, field in self.fields.items():
            property_schema: dict[str, object] = {"description": field.doc} if field.doc else {}
            if field.choices:
                property_schema["enum"] = [*field.choices, *([None] if "null" in field.types else [])]
            elif field.types:
                property_schema["type"] = list(field.types) if len(field.types) > 1 else field.types[0]
            properties[name] = property_schema
        return {
            "title": self.kind,
            "description": self.doc,
            "type": "object",
            "properties": properties,
            "required": self.required,
        }


def row_type(name: str) -> RowType:
    """The row type named `MODULE.NAME`, for example `common.FINDING`."""
    module, attribute = name.split(".")
    row = getattr(import_module(f"kctl.rows.{module}"), attribute)
    assert isinstance(row, RowType), name
    return row


def is_wrong(row: Mapping[str, object], acks: str = "all") -> bool:
    """Whether the row means that something is wrong, so that the command ends with status 5.

    Some kinds are reserved: a `judgement` is wrong by its verdict, a `finding` or `difference` by its severity (without
    one it is only shown), a `loss` unless it is recovered, a `divergence` or `violation` always. A row of any other kind is not wrong.
    What a handover drops was never acknowledged with acks=all; `acks` says how producers wrote.
    """
    if row["kind"] == "loss" and row.get("is_recovered"):
        return False
    if row["kind"] == "loss" and row["cause"] == "handover":
        return acks != "all"
    if row["kind"] == "judgement":
        return row["verdict"] in ("lost", "damaged")
    if row["kind"] in ("finding", "difference"):
        return row.get("severity", "info") != "info"
    return row["kind"] in WRONG


LEFT_OUT = "left out by --level"
"""Why evidence is missing that the user chose not to examine: it leaves the exit status as it is."""


def is_open(row: Mapping[str, object]) -> bool:
    """Whether the row means that something asked could not be judged: status 3 where nothing is wrong."""
    open_verdicts = ("unreadable", "could_not_judge")
    missing = row["missing"] if row["kind"] in ("judgement", "coverage") else None
    if isinstance(missing, list) and missing and all(part["why"] == LEFT_OUT for part in missing):
        return False
    if row["kind"] == "coverage":  # of a question with something open, or without any subject
        return not row["judged"] or any(row[verdict] for verdict in open_verdicts)
    if (
        row["kind"] == "audit"
    ):  # of evidence that has nothing on any question, or of log directories without a partition
        judged = [part["question"] for part in row["judgements"] if part["judged"]]  # type: ignore[attr-defined]
        return not row["judgements"] or (
            judged == ["integrity"] and bool(row["files"]) and not row["partitions"]
        )
    return row["kind"] == "judgement" and row["verdict"] in open_verdicts


WRONG = frozenset({"loss", "divergence", "violation"})
