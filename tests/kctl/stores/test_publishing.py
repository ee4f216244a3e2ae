"""A report in a store: whole or without a summary, never over what is not its own."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from kctl.audit.publishing import Target
from kctl.errors import KctlError
from kctl.stores import file_systems
from tests.conftest import Ran, recording, rows

URL = "s3://bucket/report"


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that stands for `s3://bucket`."""
    folder = tmp_path / "store"
    folder.mkdir()
    found = fs.SubTreeFileSystem(str(folder), fs.LocalFileSystem())
    monkeypatch.setitem(
        file_systems.SCHEMES, "s3", lambda url: (found, url.removeprefix("s3://bucket/").rstrip("/"))
    )
    return folder


@pytest.fixture(scope="module")
def evidence(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One broker of an incident."""
    folder = tmp_path_factory.mktemp("evidence") / "broker-2"
    shutil.copytree(recording("incidents/diverge-2.8") / "moments" / "dark" / "broker-2", folder)
    return folder


def audit(evidence: Path, out: object, *more: object) -> Ran:
    return rows("audit", "run", evidence, "--out", out, "--jobs", 1, *more)


def test_a_report_in_a_store_is_that_of_a_folder(store: Path, evidence: Path, tmp_path: Path) -> None:
    remote, local = audit(evidence, URL), audit(evidence, tmp_path / "local")
    assert remote.status == local.status and remote.rows[-1]["report"] == f"{URL}/report.html"
    names = {path.name for path in (tmp_path / "local").iterdir()}
    assert {path.name for path in (store / "report").iterdir()} == names
    for name in names - {"report.html", "summary.json"}:
        there, here = (pq.read_table(folder / name) for folder in (store / "report", tmp_path / "local"))
        assert sorted(map(str, there.to_pylist())) == sorted(map(str, here.to_pylist())), name
    assert "kctl-report-" not in (store / "report" / "summary.json").read_text()


def test_an_earlier_report_and_other_files_are_not_replaced(store: Path, evidence: Path) -> None:
    audit(evidence, URL)
    again = audit(evidence, URL)
    assert again.status == 4 and f"{URL} contains an earlier report" in again.err and not again.rows
    (store / "report" / "findings" / "old.parquet").write_bytes(b"")
    assert audit(evidence, URL, "--overwrite").status != 4
    assert not (store / "report" / "findings" / "old.parquet").exists()
    (store / "report" / "mine.txt").write_text("x")
    assert audit(evidence, URL, "--overwrite").status == 4
    assert (store / "report" / "mine.txt").exists() and (store / "report" / "summary.json").exists()


def test_a_store_that_fails_on_the_way_holds_no_summary(
    store: Path, evidence: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    audit(evidence, URL)
    put: Any = Target._put

    def fail(self: Target, path: Path, key: str) -> None:
        if key.endswith("report.html"):
            raise OSError("AWS Error ACCESS_DENIED during PutObject operation")
        put(self, path, key)

    monkeypatch.setattr(Target, "_put", fail)
    ran = audit(evidence, URL, "--overwrite")
    assert ran.status == 3 and "report.html: the store denies access" in ran.err
    (kept,) = re.findall(r"the report is whole in (\S+);", ran.err)
    assert (Path(kept) / "summary.json").exists()
    shutil.rmtree(kept)
    assert (store / "report" / "findings").exists() and not (store / "report" / "summary.json").exists()
    monkeypatch.setattr(Target, "_put", put)
    assert audit(evidence, URL, "--overwrite").status != 3 and (store / "report" / "summary.json").exists()


def test_the_summary_is_the_first_that_goes(
    store: Path, evidence: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that is killed while it takes the earlier report away leaves no summary of half of it."""
    audit(evidence, URL)
    taken: list[str] = []

    def fail(self: Target, request: Any, key: str) -> Any:
        if key:
            taken.append(key)
            raise KctlError("stopped", "")
        return request()

    monkeypatch.setattr(Target, "_ask", fail)
    assert audit(evidence, URL, "--overwrite").status == 3 and taken == ["summary.json"]


def test_what_a_store_cannot_be_used_for(store: Path, evidence: Path) -> None:
    ran = audit(evidence, URL, "--resume")
    assert ran.status == 2 and "write to a folder that every process sees" in ran.err


def test_a_bucket_that_is_not_there_is_said_before_the_work(
    store: Path, evidence: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, _ = file_systems.SCHEMES["s3"](URL)
    monkeypatch.setitem(file_systems.SCHEMES, "s3", lambda url: (files, url.removeprefix("s3://")))
    monkeypatch.setattr("kctl.audit.run.run", None)
    ran = audit(evidence, URL)
    assert ran.status == 3 and f"{URL}: no 'bucket' in the store" in ran.err
    assert list(store.iterdir()) == []
