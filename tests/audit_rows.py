"""Rows of an audit's tables as kctl writes them: no required column is missing."""

from __future__ import annotations

from typing import Any

from kctl.audit.tables import TABLES
from kctl.rows import row_type

EMPTY: dict[str, Any] = {"string": "", "integer": 0, "number": 0, "boolean": False, "array": [], "object": {}}


def whole_row(table: str, row: dict[str, Any]) -> dict[str, Any]:
    """The row; what is required and not in it is empty, zero or the first choice."""
    required = {key: field for key, field in row_type(TABLES[table]).fields.items() if not field.fits(None)}
    return {
        key: field.choices[0] if field.choices else EMPTY[field.types[0]] for key, field in required.items()
    } | row
