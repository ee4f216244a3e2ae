"""docs/tables.md: its columns are those of the schemas, its keys are keys, and its programs give what SQL gives."""

from __future__ import annotations

import re
import shutil
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from docs.making import tables
from kctl.audit.tables import TABLES, Tables
from tests.commands.test_audit_sql import damage
from tests.conftest import kctl, recording

SQL = Path(__file__).parents[2] / "docs" / "sql"
AUDITED = (
    "incidents/unclean-2.8",
    "segments/2.8.2",
    "segments/3.9.1-kraft",
    "tier/f-damage",
    "incidents/life-2.8",
)


pytestmark = pytest.mark.xdist_group("tables")  # audited once


@pytest.fixture(scope="module")
def audits(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A report of each recording; the first has damage."""
    made = []
    for name in AUDITED:
        folder = tmp_path_factory.mktemp("tables")
        shutil.copytree(recording(name), folder / "evidence", symlinks=True)
        if not made:
            damage(folder / "evidence")
        made.append(folder / "report")
        kctl("audit", "run", folder / "evidence", "--out", made[-1], "--digests", "none")
    return made


def test_the_columns_are_those_of_the_schemas(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--rewrite"):
        tables.PAGE.write_text(tables.text(), encoding="utf-8")
    assert tables.PAGE.read_text("utf-8") == tables.text(), "run `make man`"
    assert list(tables.KEYS) and set(tables.KEYS) == set(TABLES), (
        "give the table a key in docs/making/tables.py"
    )


def ranked(row: dict[str, Any], key: tuple[str, ...]) -> list[Any]:
    return [(row[column] is not None, row[column] if row[column] is not None else 0) for column in key]


@pytest.mark.slow
def test_keys_are_keys_and_rows_lie_in_the_order_that_is_said(audits: list[Path]) -> None:
    seen = set()
    for report in audits:
        for name in Tables(report).names():
            rows = list(Tables(report).rows(name))
            seen |= {name} if len(rows) > 1 else set()
            keys = [str([row[column] for column in tables.KEYS[name]]) for row in rows]
            assert not tables.KEYS[name] or len(set(keys)) == len(keys), (report, name)
            for file in (report / name).iterdir():
                of_file = pq.read_table(file).to_pylist()
                if name in tables.BY_KEY:
                    order = [ranked(row, tables.KEYS[name]) for row in of_file]
                    assert order == sorted(order), (report, name)
                if name in tables.IN_LOG_ORDER:
                    logs = [(row["moment"], row["file"]) for row in of_file]
                    starts = [log for log, before in zip(logs, [None, *logs], strict=False) if log != before]
                    assert len(starts) == len(set(starts)), "a log lies in two pieces"
                    pairs = pairwise(of_file)
                    assert all(
                        a["file"] != b["file"] or a["moment"] != b["moment"] or a["position"] < b["position"]
                        for a, b in pairs
                    )
    assert len(seen) > 15, seen


def programs() -> dict[str, str]:
    """The page's programs by what they import first."""
    found = re.findall(r"```python\n(.*?)```", tables.PAGE.read_text("utf-8"), re.S)
    return {program.split()[1].partition(".")[0]: program for program in found}


def run(name: str, report: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.chdir(report.parent)
    pytest.importorskip(name)
    names: dict[str, Any] = {}
    exec(compile(programs()[name], f"tables.md, {name}", "exec"), names)
    return names


def answer(report: Path, name: str) -> list[dict[str, Any]]:
    from kctl.audit.sql import query

    return list(query(Tables(report), (SQL / f"{name}.sql").read_text()))


@pytest.mark.slow
@pytest.mark.parametrize("number", [0, 1])
def test_pandas_answers_as_sql_does(audits: list[Path], number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    report = audits[number]
    found = run("pandas", report, monkeypatch)
    largest = {(row["topic"], row["partition"]): row["bytes"] for row in answer(report, "largest-partitions")}
    assert largest.items() <= found["largest"].to_dict().items()
    codecs = {(row["topic"], row["codec"]): row["bytes"] for row in answer(report, "codecs-by-topic")}
    assert found["codecs"].to_dict() == codecs != {}
    producers = {row["topic"]: row["producers"] for row in answer(report, "producers-by-topic")}
    assert found["producers"].to_dict() == producers
    left = {row["topic"]: row["percent_left"] for row in answer(report, "compaction-by-topic")}
    assert {topic: pytest.approx(100 * part, abs=0.06) for topic, part in found["compaction"].items()} == left
    assert len(found["late"]) == len(answer(report, "late-timestamps"))


@pytest.mark.slow
@pytest.mark.parametrize("number", [0, 1])
def test_polars_answers_as_sql_does(audits: list[Path], number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    report = audits[number]
    found = {
        name: value.collect().to_dicts()
        for name, value in run("polars", report, monkeypatch).items()
        if hasattr(value, "collect")
    }
    small = {row["topic"]: row["batches"] for row in answer(report, "small-batches")}
    assert {row["topic"]: row["batches"] for row in found["small"]} == small != {}
    assert sorted(row["behind"] for row in found["lagging"]) == sorted(
        row["behind"] for row in answer(report, "who-lags")
    )
    codes = {(row["severity"], row["code"]): row["findings"] for row in answer(report, "findings-by-code")}
    assert {(row["severity"], row["code"]): row["len"] for row in found["found"]} == codes != {}
    hurt = {row["file"] for row in answer(report, "damaged-files") if row["damaged_bytes"]}
    assert {row["file"] for row in found["damaged"]} == hurt


@pytest.mark.slow
def test_duckdb_answers_as_sql_does(audits: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    rows = run("duckdb", audits[0], monkeypatch)["answer"].fetchall()
    assert dict(rows) == {row["topic"]: row["bytes"] for row in answer(audits[0], "biggest-topics")} != {}


def test_the_ten_questions_are_there() -> None:
    files = re.findall(r"(?m)--file docs/sql/(\S+)", tables.PAGE.read_text("utf-8"))
    assert len(files) == len(set(files)) == 10
    assert all((SQL / file).is_file() for file in files)
