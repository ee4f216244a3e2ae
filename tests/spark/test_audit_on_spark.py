"""`kctl audit run --engine spark` writes the tables that the local engine writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest

from kctl.audit.tables import Tables
from tests.conftest import kctl

pytestmark = pytest.mark.spark


def table_rows(out: Path, name: str) -> list[str]:
    table = ds.dataset(out / name, format="parquet").to_table()
    return sorted(json.dumps(row, sort_keys=True, default=repr) for row in table.to_pylist())


def equal_audits(one: Path, other: Path) -> None:
    """Every table, row for row in any order, and the summary but for times and places."""
    names = Tables(one).names()
    assert "batches" in names
    assert names == Tables(other).names()
    for name in names:
        assert table_rows(one, name) == table_rows(other, name), name
    left, right = (
        {k: v for k, v in Tables(out).summary.items() if k not in ("started", "seconds", "report", "parts")}
        for out in (one, other)
    )
    assert left == right


@pytest.mark.parametrize("name", ["incidents/unclean-2.8", "segments/0.11.0.3"])
def test_both_engines_write_the_same_tables(spark: Any, evidence: Any, tmp_path: Path, name: str) -> None:
    folder = evidence(name)
    local = kctl("audit", "run", folder, "--out", tmp_path / "local")
    ran = kctl(
        "audit", "run", folder, "--out", tmp_path / "spark", "--engine", "spark", "--master", "local[2]"
    )
    assert ran.status == local.status
    assert ran.err == local.err
    equal_audits(tmp_path / "local", tmp_path / "spark")
    assert [p.name for p in (tmp_path / "spark").iterdir() if p.name.startswith(".")] == []
