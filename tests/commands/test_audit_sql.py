"""The ready questions of docs/sql, each asked of audits that have something to answer."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from kctl.audit.sql import query
from kctl.audit.tables import Tables
from tests.conftest import kctl, recording, rows

pytest.importorskip("duckdb")
QUESTIONS = sorted((Path(__file__).parents[2] / "docs" / "sql").glob("*.sql"))
# What answers a question somewhere in the two audits; the others may be empty there.
SILENT = {"late-timestamps", "groups-idle-for-a-month", "epochs-without-data", "hanging-transactions"}


def damage(folder: Path) -> None:
    """Some bytes of the largest log are lost."""
    log = max(folder.rglob("00*.log"), key=lambda path: path.stat().st_size)
    data = bytearray(log.read_bytes())
    data[len(data) // 2 : len(data) // 2 + 30] = bytes(30)
    log.write_bytes(data)


pytestmark = pytest.mark.xdist_group("tables")  # audited once


@pytest.fixture(scope="module")
def audits(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    made = []
    for name in ("incidents/unclean-2.8", "segments/2.8.2"):
        folder = tmp_path_factory.mktemp("audit")
        shutil.copytree(recording(name), folder / "evidence", symlinks=True)
        damage(folder / "evidence")
        made.append(folder / "out")
        assert kctl("audit", "run", folder / "evidence", "--out", made[-1], "--no-sha256").status in (0, 5)
    return made


def asked(audits: list[Path], name: str) -> list[list[dict[str, Any]]]:
    (file,) = (one for one in QUESTIONS if one.stem == name)
    return [list(query(Tables(out), file.read_text())) for out in audits]


@pytest.mark.slow
@pytest.mark.parametrize("name", [one.stem for one in QUESTIONS])
def test_a_question_is_answered(audits: list[Path], name: str) -> None:
    answers = asked(audits, name)
    assert name in SILENT or any(answers), "nothing answers it: does the question fit the tables?"
    text = next(one for one in QUESTIONS if one.stem == name).read_text()
    assert text.startswith("-- "), "each says first what it is good for"


def test_there_are_a_dozen() -> None:
    assert len(QUESTIONS) >= 12


@pytest.mark.slow
def test_answers_are_right(audits: list[Path]) -> None:
    unclean, _ = audits
    tables = Tables(unclean)
    largest = asked(audits, "largest-batches")[0]
    assert largest[0]["size_in_bytes"] == max(row["size_in_bytes"] for row in tables.rows("batches"))
    (election, *_) = asked(audits, "unclean-elections")[0]
    assert election["topic"] == "ledger"
    assert sum(row["findings"] for row in asked(audits, "findings-by-code")[0]) == tables.count("findings")
    sizes = sum(row["bytes"] for row in asked(audits, "biggest-topics")[0])
    assert sizes == sum(row["size_in_bytes"] for row in tables.rows("segments"))
    codecs = sum(row["batches"] for row in asked(audits, "codecs-by-topic")[0])
    assert codecs == sum(row["crc_valid"] for row in tables.rows("batches"))


@pytest.mark.slow
def test_a_file_is_asked_by_the_command(audits: list[Path]) -> None:
    (file,) = (one for one in QUESTIONS if one.stem == "biggest-topics")
    ran = rows("audit", "sql", audits[0], "--file", file)
    assert ran.status == 0
    assert ran.of("row")
