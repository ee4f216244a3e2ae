"""`kctl audit sql --engine spark` answers as DuckDB does, and does nothing but answer."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from kctl.audit.tables import Tables
from kctl.errors import BadValue
from tests.commands.test_audit_output import read_by_everything
from tests.commands.test_audit_sql import QUESTIONS, damage
from tests.conftest import kctl, recording, rows

pytest.importorskip("duckdb")
pytestmark = pytest.mark.spark
ON_SPARK = ("--engine", "spark", "--master", "local[2]")


@pytest.fixture(scope="module")
def audit(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An audit by Spark of an incident, of topics of every kind, and of some damage."""
    folder = tmp_path_factory.mktemp("audit")
    for name in ("incidents/unclean-2.8", "segments/2.8.2"):
        shutil.copytree(recording(name), folder / name, symlinks=True)
    damage(folder / "segments")
    roots = [folder / "incidents" / "unclean-2.8", folder / "segments" / "2.8.2"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kctl.audit.batch_rows.OWN_PART_ELSEWHERE", 10)
        assert kctl("audit", "run", *roots, "--out", folder / "out", "--no-sha256", *ON_SPARK).status == 5
    assert len(list((folder / "out" / "batches").iterdir())) > 3
    return folder / "out"


def test_every_table_is_read_by_spark_and_by_what_people_read_tables_with(spark: Any, audit: Path) -> None:
    for name in Tables(audit).names():
        frame = spark.read.parquet(str(audit / name))
        assert frame.columns == Tables(audit).dataset(name).schema.names
        assert dict(frame.dtypes).get("topic", "string") == "string"
        assert frame.count() == read_by_everything(audit / name), name


def answers(rows: list[dict[str, Any]]) -> Counter[str]:
    return Counter(
        repr({k: round(v, 6) if isinstance(v, float) else v for k, v in row.items()}) for row in rows
    )


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda one: one.stem)
def test_every_question_has_the_same_answer(spark: Any, audit: Path, question: Path) -> None:
    from kctl.audit.sql import query
    from kctl.spark.sql import query as query_spark

    tables, text = Tables(audit), question.read_text()
    assert answers(list(query_spark(spark, tables, text))) == answers(list(query(tables, text)))


def test_the_command(spark: Any, audit: Path) -> None:
    text = "SELECT topic, count(*) AS n FROM batches WHERE topic = 'ledger' GROUP BY topic;"
    assert rows("audit", "sql", audit, text, *ON_SPARK).rows == rows("audit", "sql", audit, text).rows != []


def test_one_call_makes_views_of_all_tables(spark: Any, audit: Path) -> None:
    from kctl.spark.sql import views

    names = views(spark, str(audit), str(recording("incidents/unclean-2.8")))
    assert {*Tables(audit).names(), "evidence_records"} < set(names)
    for name in Tables(audit).names():
        assert spark.table(name).count() == Tables(audit).count(name), name
    same = """SELECT count(*) = (SELECT sum(records_count) FROM evidence_batches) FROM evidence_records"""
    assert spark.sql(same).collect()[0][0]


@pytest.mark.parametrize(
    "statement",
    [
        "SELEC",
        "SELECT * FROM nothing",
        "SELECT * FROM text.`/etc/passwd`",
        "DROP VIEW batches",
        "INSERT OVERWRITE DIRECTORY '/tmp/x' USING parquet SELECT 1",
        "SELECT 1) x, (SELECT 2",
        "CREATE TABLE t AS SELECT 1",
        "SET spark.sql.runSQLOnFiles = true",
    ],
)
def test_what_is_refused(spark: Any, audit: Path, statement: str) -> None:
    from kctl.spark.sql import query

    with pytest.raises(BadValue) as raised:
        list(query(spark, Tables(audit), statement))
    assert "\n" not in str(raised.value)
