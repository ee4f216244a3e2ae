"""Rows of an audit's tables: as kctl writes them, with no required column missing; and whether those of two audits are equal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from kctl.audit import slices
from kctl.audit.tables import TABLES, Tables
from kctl.rows import row_type

EMPTY: dict[str, Any] = {"string": "", "integer": 0, "number": 0, "boolean": False, "array": [], "object": {}}


def whole_row(table: str, row: dict[str, Any]) -> dict[str, Any]:
    """The row; what is required and not in it is empty, zero or the first choice."""
    required = {key: field for key, field in row_type(TABLES[table]).fields.items() if not field.fits(None)}
    return {
        key: field.choices[0] if field.choices else EMPTY[field.types[0]] for key, field in required.items()
    } | row


def cut_all(patch: pytest.MonkeyPatch) -> None:
    """From now on audits by several processes cut every folder."""
    for name, value in (("LARGE", 1), ("OF_A_CORE", 10**9), ("FEWEST", 1), ("TARGET", 4096)):
        patch.setattr(slices, name, value)


MEASURED = ("started", "seconds", "report", "parts", "requests", "bytes_read", "retries")


def table_rows(out: Path, name: str) -> list[str]:
    table = pq.read_table(out / name)
    return sorted(json.dumps(row, sort_keys=True, default=repr) for row in table.to_pylist())


def equal_audits(one: Path, other: Path) -> None:
    """Every table, row for row in any order, and the summary but for times and places."""
    names = Tables(one).names()
    assert "batches" in names
    assert names == Tables(other).names()
    for name in names:
        assert table_rows(one, name) == table_rows(other, name), name
    left, right = (
        {k: v for k, v in Tables(out).summary.items() if k not in MEASURED} for out in (one, other)
    )
    assert left == right
    states = [
        [(part["name"], part["state"]) for part in Tables(out).summary["parts"]] for out in (one, other)
    ]
    assert states[0] == states[1]
