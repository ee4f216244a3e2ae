"""What docs/spark.md shows: its program runs, its commands are commands, what it names is there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import kctl
from tests.stores.servers import STORES

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "spark.md").read_text()
COMMANDS = [line.strip().partition("  #")[0] for line in TEXT.splitlines() if line.startswith("    kctl ")]


@pytest.mark.spark
def test_the_program_runs(
    spark: Any, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(ROOT)
    for program in re.findall(
        r"```python\n(.*?)```", TEXT, re.S
    ):  # the last asks what the one before it wrote
        program = re.sub(r'"(notebook|spark)-report"', repr(f"{tmp_path}/report"), program)
        exec(compile(program, "docs/spark.md", "exec"), {})
    said = capfd.readouterr().out
    assert "sum(records_count)" in said and "60 records are lost" in said


def is_path(arg: str) -> bool:
    """Whether it names evidence: by path, or by a URL, which no test looks for on the net."""
    return "/" in arg and ("://" not in arg or arg.startswith("s3://"))


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_is_understood(command: str, tmp_path: Path) -> None:
    _, *args = shlex.split(command)
    if args[:2] == ["audit", "sql"]:
        assert "not an audit" in kctl(*args[:2], tmp_path, *args[3:]).err
        return
    if "--out" not in args:
        assert kctl(*args).status in (0, 5)
        return
    args[args.index("--out") + 1] = str(tmp_path / "out")
    args = [
        str(tmp_path / "none") if is_path(arg) and arg not in args[-1:] and str(tmp_path) not in arg else arg
        for arg in args
    ]
    ran = kctl(*args)
    # Understood, and its evidence is not there: neither wrong usage nor a bug.
    assert ran.status == 3, ran.err
    assert "none" in ran.err


@pytest.mark.spark
def test_the_laptop_s_command(spark: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(ROOT)
    (command,) = (one for one in COMMANDS if "local[2]" in one and "audit run" in one)
    _, *args = shlex.split(command)
    args[args.index("--out") + 1] = str(tmp_path / "out")
    assert kctl(*args).status == 5
    assert (tmp_path / "out" / "report.html").exists()
    for question in (one for one in COMMANDS if "audit sql" in one):
        asked = kctl(*shlex.split(question.replace(" spark-report ", f" {tmp_path / 'out'} "))[1:])
        assert asked.status == 0, asked.err
        assert asked.out


def test_the_tests_that_it_names_are_there() -> None:
    named = re.findall(r"`((?:spark|stores)/\w+\.py)(?:::(\w+)(?:\[(\w+)\])?)?`", TEXT)
    assert len(named) > 14
    for file, name, parameter in named:
        text = (ROOT / "tests" / file).read_text()
        assert not name or f"def {name}(" in text, name
        assert parameter in (*STORES, "hdfs", "folder", ""), parameter


def test_findings_and_questions_that_it_names_are_there() -> None:
    from kctl.findings import evidence

    assert {evidence.VANISHED.code, evidence.UNREADABLE.code} <= set(re.findall(r"`([a-z-]+)`", TEXT))
    assert (ROOT / "docs" / "sql").is_dir()


@pytest.mark.spark
def test_spark_s_program_of_the_tables_runs(
    spark: Any, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert kctl("audit", "run", ROOT / "examples/unclean-election", "--out", tmp_path / "report").status == 5
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "tables.md").read_text()
    (program,) = (one for one in re.findall(r"```python\n(.*?)```", page, re.S) if "pyspark" in one)
    program = program.replace("report/{name}", f"{tmp_path}/report/{{name}}")  # Java began in another folder
    exec(compile(program, "docs/tables.md", "exec"), {})
    assert "ledger" in capfd.readouterr().out
