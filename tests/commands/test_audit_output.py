"""The folder of an audit: what it may hold, what is never replaced, and that no row is missing from its tables."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.corpus import make, shape_of
from kctl.audit import batch_rows
from kctl.audit import run as audit_run
from kctl.audit.parts import PARTS, Audit
from kctl.audit.tables import TABLES, Tables
from kctl.checks import parallel
from kctl.errors import KctlError, Refused
from kctl.evidence.discover import discover
from kctl.report.page import write_report
from tests.audit_rows import equal_audits
from tests.conftest import kctl, recording, rows

pytestmark = pytest.mark.slow  # audits of whole recordings by the dozen

HALT = "incidents/halt-0.10.2"
UNCLEAN = "incidents/unclean-2.8"


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "report"


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# --- what is replaced -------------------------------------------------------------------------------------


def test_an_earlier_report_is_replaced_only_where_that_is_asked_for(out: Path) -> None:
    assert kctl("audit", "run", recording(HALT), "--out", out).status == 5
    before = contents(out)
    for options in ((), ("--resume",)):
        ran = kctl("audit", "run", recording(HALT), "--out", out, *options)
        assert ran.status == 4
        assert "contains an earlier report" in ran.err
        assert "--overwrite" in ran.err
        assert contents(out) == before
    (out / "thesis.txt").write_text("mine")
    ran = rows("audit", "run", recording(UNCLEAN), "--out", out, "--overwrite")
    assert ran.status == 5
    assert json.loads((out / "summary.json").read_text()) == ran.of("audit")[0]
    assert (out / "thesis.txt").read_text() == "mine"


def test_what_is_not_of_a_report_is_never_deleted(out: Path, tmp_path: Path) -> None:
    kctl("audit", "run", recording(HALT), "--out", out)
    (out / "batches" / "notes.md").write_text("mine")
    before = contents(out)
    ran = kctl("audit", "run", recording(HALT), "--out", out, "--overwrite")
    assert ran.status == 4
    assert "notes.md" in ran.err
    assert contents(out) == before
    (out / "batches" / "notes.md").unlink()
    shutil.move(out / "files", tmp_path / "elsewhere")
    (out / "files").symlink_to(tmp_path / "elsewhere")
    held = contents(tmp_path / "elsewhere")
    ran = kctl("audit", "run", recording(HALT), "--out", out, "--overwrite")
    assert ran.status == 4
    assert "symbolic link" in ran.err
    assert contents(tmp_path / "elsewhere") == held


def test_what_a_killed_run_left_is_said(out: Path) -> None:
    (out / ".files.writing").mkdir(parents=True)
    ran = kctl("audit", "run", recording(HALT), "--out", out)
    assert ran.status == 4
    assert ".files.writing" in ran.err
    assert kctl("audit", "run", recording(HALT), "--out", out, "--overwrite").status == 5
    assert [path.name for path in out.iterdir() if path.name.startswith(".")] == []


def test_a_run_that_fails_leaves_the_earlier_report_whole(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kctl("audit", "run", recording(HALT), "--out", out)
    before = contents(out)

    def broken(audit: Any) -> Any:
        yield from PARTS[0].rows(audit)
        raise RuntimeError("out of cheese")

    monkeypatch.setattr("kctl.audit.run.PARTS", (PARTS[0]._replace(rows=broken),))
    with pytest.raises(RuntimeError, match="cheese"):
        kctl("audit", "run", recording(UNCLEAN), "--out", out, "--overwrite")
    assert contents(out) == before


@pytest.mark.parametrize("url", ["s3://bucket/report", "hdfs://name/report", "file:///tmp/report", "S3A://b"])
@pytest.mark.parametrize(
    "command",
    [
        ("replica", "loss", ".", "--export"),
        ("remote", "audit", ".", "--plan-cleanup"),
        ("segment", "rebuild", ".", "--to"),
    ],
)
def test_a_url_is_no_place_to_write_to(
    command: tuple[str, ...], url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = kctl(*command, url)
    assert ran.status == 2
    assert "is a URL" in ran.err
    assert list(tmp_path.iterdir()) == []


def test_a_report_goes_to_a_path_and_not_to_a_url_of_this_machine(tmp_path: Path) -> None:
    ran = kctl("audit", "run", recording(HALT), "--out", f"file://{tmp_path}/report")
    assert ran.status == 2 and "is a URL of this machine" in ran.err and not list(tmp_path.iterdir())


def test_a_link_in_place_of_a_file_is_not_written_through(out: Path, tmp_path: Path) -> None:
    kctl("audit", "run", recording(HALT), "--out", out)
    (tmp_path / "precious").write_text("mine")
    (out / "report.html").unlink()
    (out / "report.html").symlink_to(tmp_path / "precious")
    assert kctl("audit", "report", out).status == 0
    assert (tmp_path / "precious").read_text() == "mine"


# --- every part is accounted for --------------------------------------------------------------------------


class OtherMachine:
    """An engine whose work runs in this process, after `before` and before `after`."""

    cores = 1
    doing = ""
    retries = None

    def __init__(self, before: Callable[[], object], after: Callable[[], object]) -> None:
        self.before, self.after = before, after

    def ordered(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        for item in items:
            self.before()
            try:
                result = function(item)
            finally:
                self.after()
            yield result


def audited(out: Path, engine: OtherMachine | int, *, resume: bool = False) -> dict[str, Any]:
    folder = str(recording("segments/2.8.2") / "data-clean")
    audit = Audit(discover([folder]), (folder,), lambda error: None, jobs=engine)
    return audit_run.run(audit, out, write_page=write_report, resume=resume)


def test_an_engine_that_writes_elsewhere_is_refused(out: Path, tmp_path: Path) -> None:
    hidden = tmp_path / "hidden"
    engine = OtherMachine(lambda: out.rename(hidden), lambda: hidden.rename(out))
    with pytest.raises(Refused, match=r"executor .* cannot use .*report: no such file"):
        audited(out, engine)
    assert list(out.iterdir()) == []


def lost(out: Path) -> None:
    for part in out.glob(".batches.writing/workers/*.parquet"):
        part.unlink()


def cut(out: Path) -> None:
    for part in out.glob(".batches.writing/workers/*.parquet"):
        os.truncate(part, part.stat().st_size // 2)


def fewer(out: Path) -> None:
    for part in out.glob(".batches.writing/workers/*.parquet"):
        pq.write_table(pq.read_table(part).slice(1), part)


def strange(out: Path) -> None:
    if (out / ".batches.writing" / "workers").is_dir():
        pq.write_table(pa.table({"n": [1]}), out / ".batches.writing" / "workers" / "part-strange.parquet")


@pytest.mark.parametrize("resume", [False, True])
@pytest.mark.parametrize("harm", [lost, cut, fewer, strange])
def test_a_part_that_is_not_as_it_was_written_is_an_error(
    out: Path, monkeypatch: pytest.MonkeyPatch, harm: Callable[[Path], None], resume: bool
) -> None:
    monkeypatch.setattr(batch_rows, "OWN_PART_ELSEWHERE", 10)
    with pytest.raises(KctlError, match=r"table batches: parts .*part-\w+\.parquet") as caught:
        audited(out, OtherMachine(lambda: None, lambda: harm(out)), resume=resume)
    assert caught.value.exit_code == 3
    assert [path.name for path in out.iterdir() if path.name != ".resume"] == []
    if resume:  # what was kept is whole, and the run goes on
        whole = audited(out.with_name("whole"), 1)
        summary = audited(out, 1, resume=True)
        assert Tables(out).count("batches") == summary["batches"] == whole["batches"]


def test_a_relative_folder_is_that_of_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Executors have working folders of their own."""
    monkeypatch.setattr(batch_rows, "OWN_PART_ELSEWHERE", 10)
    (tmp_path / "here").mkdir()
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    engine = OtherMachine(lambda: os.chdir(tmp_path / "work"), lambda: os.chdir(tmp_path / "here"))
    summary = audited(Path("report"), engine)
    assert Tables(tmp_path / "here" / "report").count("batches") == summary["batches"] > 100
    assert summary["report"] == "report/report.html"
    assert list((tmp_path / "work").iterdir()) == []


# --- what is kept for a run that goes on ------------------------------------------------------------------


class Bomb:
    """Runs a command where it is unpickled."""

    def __init__(self, command: str) -> None:
        self.command = command

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (self.command,)


@pytest.fixture
def killed(out: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a run that was stopped when every file was checked, with files of their own for batches."""
    monkeypatch.setattr(batch_rows, "OWN_PART", 10)

    def fails(audit: Any) -> Any:
        yield from PARTS[0].rows(audit)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("kctl.audit.run.PARTS", (PARTS[0]._replace(rows=fails),))
        with pytest.raises(KeyboardInterrupt):
            audited(out, 1, resume=True)
    return out


def test_nothing_that_is_kept_runs(killed: Path, tmp_path: Path) -> None:
    bomb = pickle.dumps((Bomb(f"touch {tmp_path}/exploded"), False))
    kept = sorted((killed / ".resume").iterdir())
    assert {path.suffix for path in kept} == {".report", ".parquet", ".json", ".jsonl"}
    for path in kept:
        if path.name != "run.json":
            path.write_bytes(bomb)
    summary = audited(killed, 1, resume=True)
    assert Tables(killed).count("batches") == summary["batches"] > 100
    assert not (tmp_path / "exploded").exists()
    assert not (killed / ".resume").exists()


def test_links_among_what_is_kept_are_neither_read_nor_written_through(killed: Path, tmp_path: Path) -> None:
    for path in sorted((killed / ".resume").iterdir()):
        if path.name != "run.json":
            shutil.move(path, tmp_path / path.name)
            path.symlink_to(tmp_path / path.name)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    summary = audited(killed, 1, resume=True)
    assert Tables(killed).count("batches") == summary["batches"]
    assert not any(path.is_symlink() for path in killed.rglob("*"))
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == before


def test_a_link_in_place_of_what_is_kept_is_refused(out: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    out.mkdir()
    (out / ".resume").symlink_to(tmp_path / "elsewhere")
    for options in (("--resume",), ("--overwrite",)):
        assert kctl("audit", "run", recording(HALT), "--out", out, *options).status == 4
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.parametrize(
    "changed",
    [
        {"report": {"segments": "7"}},
        {"report": {"findings": [{"code": "x"}]}},
        {"report": {"files": [{"type": "log"}]}},
        {"more": 1},
        {"is_part": 1},
        {"rows": ["x", -1, 2]},
    ],
)
def test_what_does_not_fit_the_schema_is_examined_again(killed: Path, changed: dict[str, Any]) -> None:
    for path in (killed / ".resume").glob("*.report"):
        kept = msgspec.msgpack.decode(path.read_bytes())
        path.write_bytes(msgspec.msgpack.encode(kept | changed))
    summary = audited(killed, 1, resume=True)
    assert summary["batches"] == Tables(killed).count("batches") > 100


def test_another_run_does_not_go_on_there(killed: Path) -> None:
    ran = kctl("audit", "run", recording(HALT), "--out", killed, "--resume")
    assert ran.status == 4
    assert "--overwrite" in ran.err
    assert kctl("audit", "run", recording(HALT), "--out", killed, "--resume", "--overwrite").status == 5
    assert not (killed / ".resume").exists()


# --- who reads the tables ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def audit_of_incident(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An audit whose `batches` has files of folders beside that of all others; one of its topics is a number."""
    folder = tmp_path_factory.mktemp("audit")
    shutil.copytree(recording(UNCLEAN), folder / "evidence", symlinks=True)
    live = next(path for path in sorted((folder / "evidence").rglob("ledger-0")) if path.is_dir())
    shutil.copytree(live, live.parent / "7-0")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batch_rows, "OWN_PART", 10)
        patch.setattr(parallel, "MOST", 1)  # each folder is work of its own
        assert kctl("audit", "run", folder / "evidence", "--out", folder / "out").status == 5
    assert len(list((folder / "out" / "batches").iterdir())) > 3
    return folder / "out"


def read_by_everything(table: Path) -> int:
    """Rows of a table, after every reader gave as many, with the columns and types of every file."""
    import duckdb
    import pandas
    import polars
    import pyarrow.dataset as ds

    files = sorted(table.rglob("*.parquet"))
    assert [file.parent for file in files] == [table] * len(files)
    (schema,) = {pq.read_schema(file) for file in files}
    counts = [pq.read_metadata(file).num_rows for file in files]
    assert len(files) == 1 or all(counts)
    for read in (ds.dataset(table, format="parquet").to_table(), pq.read_table(table)):
        assert (read.num_rows, read.schema) == (sum(counts), schema)
    frame = pandas.read_parquet(table)
    assert (len(frame), list(frame.columns)) == (sum(counts), schema.names)
    scanned = polars.read_parquet(table)
    assert (scanned.height, scanned.columns) == (sum(counts), schema.names)
    everything = f"FROM read_parquet('{table}/**/*.parquet')"
    assert duckdb.sql(f"SELECT count(*) {everything}").fetchall() == [(sum(counts),)]
    assert duckdb.sql(f"SELECT * {everything}").columns == schema.names
    if "topic" in schema.names:
        topics = set(pq.read_table(table, columns=["topic"]).column("topic").to_pylist())
        assert set(frame["topic"].dropna()) == topics - {None}
        assert set(scanned["topic"]) == topics
        assert {row[0] for row in duckdb.sql(f"SELECT DISTINCT topic {everything}").fetchall()} == topics
    return sum(counts)


@pytest.mark.parametrize("name", TABLES)
def test_every_table_is_read_by_what_people_read_tables_with(audit_of_incident: Path, name: str) -> None:
    assert read_by_everything(audit_of_incident / name) == Tables(audit_of_incident).count(name)


def test_topics_that_are_numbers_are_text(audit_of_incident: Path) -> None:
    topics = pq.read_table(audit_of_incident / "batches", columns=["topic"]).column("topic")
    assert {"7", "ledger"} <= set(topics.to_pylist())


# --- many findings ----------------------------------------------------------------------------------------

MANY = """
import sys
import time
from pathlib import Path
from commands.main import run
from kctl.audit import run as audit_run
from kctl.audit.parts import PARTS, AuditPart
from kctl.findings import Place, segments
from kctl.rows.audit import SEGMENT
from tests.audit_rows import whole_row

number, evidence, out = sys.argv[1:]

def damage(audit):
    place = {"topic": "orders", "partition": 0, "broker_id": 1, "file": "orders-0/00000000000000000000.log"}
    yield SEGMENT(**dict.fromkeys(SEGMENT.fields) | whole_row("segments", {**place, "base_offset": 0, "next_offset": 10**6}))
    for n in range(int(number)):
        at = Place(**place, position=n * 100, size_in_bytes=100, base_offset=n, last_offset=n)
        yield segments.BATCH_CRC_MISMATCH.at(at, computed=1, stored=2).row()

audit_run.PARTS = (AuditPart("verify", lambda evidence: True, damage),)
sys.argv = ["kctl", "audit", "run", evidence, "--out", out, "--output", "jsonl"]
try:
    run()
finally:
    print(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0], file=sys.stderr)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no /proc on this system")
def test_what_many_findings_take_is_not_memory(tmp_path: Path) -> None:
    """As many as a damaged log has batches; printed all the same."""
    few, many = 5_000, 60_000
    peaks = []
    for number in (few, many):
        with (tmp_path / "printed").open("wb") as printed:
            ran = subprocess.run(
                [sys.executable, "-c", MANY, str(number), recording(HALT), tmp_path / str(number)],
                stdout=printed, stderr=subprocess.PIPE, text=True, check=False,
            )  # fmt: skip
        assert ran.returncode == 5, ran.stderr
        found = [json.loads(line) for line in (tmp_path / "printed").read_text().splitlines()]
        assert [row["base_offset"] for row in found if row["kind"] == "finding"] == list(range(number))
        peaks.append(int(ran.stderr.split()[-1]) >> 10)
    assert peaks[1] - peaks[0] < 60, peaks


# --- killed -----------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("killed", ["worker", "driver"])
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="finds processes by /proc")
def test_an_audit_of_a_folder_that_lost_a_process_goes_on(killed: str, tmp_path: Path) -> None:
    """With SIGKILL, once some folders are finished and others are not."""
    log = make(tmp_path / "one", shape_of("lz4-100x100"), 20_000_000)
    for number in range(16):
        folder = tmp_path / "evidence" / "broker-1" / "data" / f"orders-{number}"
        folder.mkdir(parents=True)
        for file in log.parent.iterdir():
            os.link(file, folder / file.name)
    command = [
        sys.executable, "-c", "from commands.main import run; run()", "audit", "run", tmp_path / "evidence",
        "--jobs", "2", "--resume", "--out",
    ]  # fmt: skip
    whole = subprocess.run([*command, tmp_path / "whole"], capture_output=True, check=False)
    with subprocess.Popen(
        [*command, out := tmp_path / "out"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as running:
        children: list[str] = []
        while not ((kept := [*out.glob(".resume/*.report")]) and children):
            assert running.poll() is None, "it ended before it could be killed"
            time.sleep(0.01)
            children = Path(f"/proc/{running.pid}/task/{running.pid}/children").read_text().split()
        os.kill(running.pid if killed == "driver" else int(children[-1]), signal.SIGKILL)
        _, said = running.communicate()
    assert (running.returncode, "a worker process died" in said) in ((-signal.SIGKILL, False), (3, True)), (
        said
    )
    assert not [path.name for path in out.iterdir() if not path.name.startswith(".")], "no report"
    assert len(kept) < 16
    resumed = subprocess.run([*command, out], capture_output=True, check=False)
    assert resumed.returncode == whole.returncode, resumed.stderr
    equal_audits(tmp_path / "whole", out)
