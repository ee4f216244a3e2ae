"""A session, and the audit's engine on it: what fails says so in one line."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kctl.errors import KctlError
from kctl.spark.session import _started, _why, archive_of_classes, check_java, java_options, session
from tests.audit_rows import equal_audits
from tests.conftest import kctl, recording


def fake_java(folder: Path, says: str) -> Path:
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho '{says}' >&2\n")
    java.chmod(java.stat().st_mode | stat.S_IXUSR)
    return folder


def test_no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(KctlError, match="Java 17 or later and none was found"):
        check_java()


@pytest.mark.parametrize(
    "says", ['openjdk version "11.0.2" 2019-01-15', 'java version "1.8.0_292"', "", "what?"]
)
def test_java_too_old(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, says: str) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path, says)))
    with pytest.raises(KctlError) as raised:
        check_java()
    assert raised.value.hint == "Spark 4 needs Java 17 or later"


def test_another_java_or_spark_has_an_archive_of_its_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The JVM reads none that was made for other paths, and would never write it anew."""
    import pyspark

    found = set()
    for folder in ("one", "other"):
        monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / folder, "")))
        found.add(archive_of_classes())
    monkeypatch.setattr(pyspark, "__file__", str(tmp_path / "pyspark" / "__init__.py"))
    found.add(archive_of_classes())
    assert len(found) == 3
    assert archive_of_classes() in found


def test_an_archive_that_is_no_longer_used_goes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "java", "")))
    own, old, recent = archive_of_classes(), tmp_path / "kctl/spark-0.jsa", tmp_path / "kctl/spark-1.jsa"
    own.parent.mkdir()
    names = tmp_path / "kctl/names"
    for file in (own, old, recent, names):
        file.touch(0o444)
    month_ago = time.time() - 31 * 86400
    for file in (own, old, names):
        os.utime(file, (month_ago, month_ago))
    assert f"-XX:SharedArchiveFile={own}" in java_options("local[1]", tmp_path)
    assert sorted(own.parent.iterdir()) == sorted([names, own, recent])
    assert own.stat().st_mtime > month_ago + 86400, "it was used now"


@pytest.mark.spark
def test_java_too_old_is_one_line_of_the_command(tmp_path: Path, no_session: None) -> None:
    home = fake_java(tmp_path / "java", 'openjdk version "1.8.0_292"')
    ran = kctl(
        "audit", "run", recording("incidents/halt-0.10.2"), "--out", tmp_path / "out", "--engine", "spark",
        env={"JAVA_HOME": str(home)},
    )  # fmt: skip
    assert ran.status == 3
    assert "1.8.0_292" in ran.err
    assert "Traceback" not in ran.err
    assert len(ran.err.strip().splitlines()) <= 2


def test_what_java_says_is_said(tmp_path: Path) -> None:
    """The first line of py4j names a call and no cause."""
    error = RuntimeError(
        "An error occurred while calling None.X.\n: org.e.SparkException: it has ended\n\tat org.e.X\n"
    )
    assert _why(error, tmp_path / "none") == "org.e.SparkException: it has ended"
    assert _why(RuntimeError("no such master\nat all"), tmp_path / "none") == "no such master"


def test_a_start_whose_threads_met_is_tried_once_more() -> None:
    class Builder:
        def __init__(self, *said: str) -> None:
            self.said = list(said)

        def getOrCreate(self) -> str:
            if self.said:
                raise RuntimeError(self.said.pop(0))
            return "session"

    race = "An error occurred while calling None.X.\n: java.util.ConcurrentModificationException\n\tat java.util.X"
    assert _started(Builder(race)) == "session"
    for said in ((race, race), ("no such master",)):
        with pytest.raises(RuntimeError):
            _started(Builder(*said))


@pytest.fixture
def no_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if no Spark ran in this process."""
    from pyspark.sql import SparkSession

    monkeypatch.setattr(SparkSession, "getActiveSession", classmethod(lambda cls: None))


@pytest.mark.spark
def test_a_running_session_is_used_and_left_running(spark: Any) -> None:
    with session("spark://nowhere:1") as same:
        assert same is spark
    assert spark.range(3).count() == 3


NOTEBOOK = """
import sys
from pathlib import Path
from pyspark.sql import SparkSession
import kctl
from kctl.spark.sql import views

spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
evidence = kctl.Evidence(sys.argv[1])
summary = evidence.audit(sys.argv[2], spark=spark)
assert evidence.audit(sys.argv[3], spark=spark).files == summary.files
assert spark.sparkContext._jsc.sc().addedFiles().size() == 1, "sent once"
views(spark, sys.argv[2], evidence=sys.argv[1])
assert spark.sql("SELECT count(*) AS n FROM evidence_batches").first()["n"] == summary.batches
evidence.audit(sys.argv[4])
"""


@pytest.mark.spark
def test_an_audit_in_a_session_that_somebody_else_made(tmp_path: Path) -> None:
    """As in a notebook: nothing is set for kctl, and the Python of executors does not have it."""
    python, packages = tmp_path / "python", Path(pa.__file__).parents[1]
    python.write_text(f'#!/bin/sh\nPYTHONPATH="$PYTHONPATH:{packages}" exec {sys.executable} -S -P "$@"\n')
    python.chmod(0o700)
    ran = subprocess.run(
        [sys.executable, "-c", NOTEBOOK, recording("incidents/halt-0.10.2"), *(tmp_path / name for name in ("one", "two", "local"))],
        capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2],
        env={**os.environ, "PYSPARK_PYTHON": str(python), "PYSPARK_DRIVER_PYTHON": sys.executable, "KCTL_CONFIG": "/none"},
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr[-3000:]
    equal_audits(tmp_path / "local", tmp_path / "one")
    equal_audits(tmp_path / "local", tmp_path / "two")


def shout(item: int) -> str:
    if item == 13:
        raise ValueError(f"item {item} is unlucky")
    return f"{item}!" * (item % 5)


@pytest.mark.spark
def test_the_engine_gives_results_in_order(spark: Any) -> None:
    from kctl.spark.tasks import SparkEngine

    items = [n for n in range(60) if n != 13]
    assert list(SparkEngine(spark, 2).ordered(shout, items)) == [shout(n) for n in items]
    assert list(SparkEngine(spark, 2).ordered(shout, [])) == []


def nap(item: int) -> int:
    time.sleep(0.2)
    return item


class Watching:
    """A `Progress` that remembers what it is told."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def start(self, what: str, total: int | None, unit: str = "bytes") -> None: ...

    def advance(self, amount: int) -> None: ...

    def note(self, text: str) -> None:
        self.notes.append(text)


@pytest.mark.spark
def test_tasks_are_counted_while_they_run(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from kctl.spark import tasks

    monkeypatch.setattr(tasks, "LOOK_EVERY", 0.02)
    progress = Watching()
    assert list(tasks.SparkEngine(spark, 2, progress).ordered(nap, range(40))) == list(range(40))
    said = [re.fullmatch(r"(\d+) of (\d+) tasks", one) for one in progress.notes]
    counts = [(int(one[1]), int(one[2])) for one in said if one]
    assert len(counts) == len(progress.notes) > 3
    assert counts == sorted(counts)
    assert any(0 < done < of for done, of in counts)


@pytest.mark.spark
def test_a_task_that_fails_is_one_line(spark: Any) -> None:
    from kctl.spark.tasks import SparkEngine

    with pytest.raises(KctlError, match="item 13 is unlucky") as raised:
        list(SparkEngine(spark, 2).ordered(shout, range(14)))
    assert "\n" not in str(raised.value)


@pytest.mark.spark
def test_a_task_that_dies_is_one_line(spark: Any) -> None:
    from kctl.spark.tasks import SparkEngine

    with pytest.raises(KctlError, match="a Spark task failed") as raised:
        list(SparkEngine(spark, 2).ordered(os._exit, [3]))
    assert "\n" not in str(raised.value)


@pytest.mark.spark
def test_every_setting_has_a_reason_and_is_in_force(spark: Any) -> None:
    from kctl.spark.session import SETTINGS

    for name, (value, reason) in SETTINGS.items():
        assert len(reason) > 10
        assert spark.conf.get(name) == value
