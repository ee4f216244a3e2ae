"""`kctl audit`: tables, summary and report of recorded incidents; nothing half written, nothing in the evidence."""

import base64
import errno
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from kctl.audit import batch_rows
from kctl.audit.parts import PARTS, Audit, files_and_findings, has_tier
from kctl.audit.run import _covered
from kctl.audit.tables import TABLES, Tables, TableWriter, write_summary
from kctl.checks import parallel
from kctl.evidence.discover import discover
from kctl.rows import RowType, row_type
from kctl.rows.audit import AUDIT
from kctl.scan.pool import WorkerDied
from kctl.scan.tables import arrow_schema
from tests.conftest import errors_in, kctl, recording, rows

EXTERNAL = re.compile(rb"""(?:src|href)\s*=\s*["']?(?:https?:)?//|@import|url\((?!#)""")
pytestmark = pytest.mark.slow  # audits of whole recordings by the dozen


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "report"


def table(out: Path, name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pq.read_table(out / name).to_pylist()
    return found


def test_what_was_said_about_folders_counts_and_is_said_again(tmp_path: Path, out: Path) -> None:
    """Logs that name no broker are of the broker that --broker names; the next commands repeat the options."""
    logs = tmp_path / "evidence" / "host-a" / "logs"
    logs.mkdir(parents=True)
    broker, moment = f"7={logs.parent}", f"then={logs.parent}"
    (logs / "server.log").write_text(
        "[2026-11-21 13:00:00,000] INFO starting (kafka.server.KafkaServer)\n"
        "[2026-11-21 13:00:05,000] INFO started (kafka.server.KafkaServer)\n"
        "[2026-11-21 13:00:06,000] TRACE [Controller id=7 epoch=1] Changed partition t-0 from OfflinePartition to "
        "OnlinePartition with state LeaderAndIsr(leader=2, leaderEpoch=1, isr=List(2), zkVersion=1) (state.change.logger)\n"
    )
    ran = rows("audit", "run", tmp_path / "evidence", "--broker", broker, "--moment", moment, "--out", out)
    assert ran.of("audit")[0]["options"] == [["--broker", broker], ["--moment", moment]]
    assert {row["broker_id"] for row in table(out, "broker_states")} == {7}


@pytest.mark.slow
def test_an_incident_from_one_end_to_the_other(evidence: Any, out: Path) -> None:
    folder = evidence("incidents/unclean-2.8")
    ran = rows("audit", "run", folder, "--out", out)
    assert ran.status == 5
    summary = ran.of("audit")[0]
    assert json.loads((out / "summary.json").read_text()) == summary
    assert (summary["brokers"], summary["moments"]) == ([1, 2, 3], ["before", "during", "after"])
    assert "unclean-leader-election" in ran.codes("error")
    assert {p["state"] for p in summary["parts"]} == {"done"}
    verified = rows("segment", "verify", folder)
    counted = verified.of("summary")[0]
    assert all(summary[key] == counted[key] for key in ("files", "batches", "records", "bytes"))
    assert len(table(out, "batches")) == counted["batches"]
    logs = [row for row in verified.of("file") if row["type"] == "log"]
    assert sum(row["size_in_bytes"] for row in table(out, "segments")) == sum(
        row["size_in_bytes"] for row in logs
    )
    assert {row["leader"] for row in table(out, "leaders")} >= {-1, 1, 2}


def test_every_table_has_its_schema_and_no_arrow_timestamp(out: Path) -> None:
    kctl("audit", "run", recording("incidents/unclean-2.8"), "--out", out)
    for name, kind in TABLES.items():
        schema = pq.read_schema(next((out / name).glob("*.parquet")))
        assert schema.equals(arrow_schema(row_type(kind)))
        assert "timestamp" not in str(schema.types)


@pytest.mark.parametrize("name", ["kctl.audit.parts.SEGMENT", "kctl.rows.audit.EXAMINED"])
def test_a_column_that_nothing_fills_is_a_bug(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    module, _, attribute = name.rpartition(".")
    of = getattr(import_module(module), attribute)
    made = RowType(f"{of.kind}: {of.doc}\nunfilled  integer?\nfile  string\nsha256, blake2b  string?")
    monkeypatch.setattr(name, made)
    audit = Audit(discover([recording("segments/2.4.1")]), (), lambda error: None, digest=None)
    with pytest.raises(AttributeError, match="unfilled"):
        list(files_and_findings(audit))


def test_sha256_is_that_of_the_file(out: Path) -> None:
    folder = recording("segments/3.9.1-kraft")
    kctl("audit", "run", folder, "--out", out)
    files = table(out, "files")
    assert files
    for row in files[:: max(1, len(files) // 20)]:
        assert row["sha256"] == hashlib.sha256((folder / row["file"]).read_bytes()).hexdigest()
    kctl("audit", "run", folder, "--out", out, "--no-sha256", "--overwrite")
    assert {row["sha256"] for row in table(out, "files")} == {None}


def test_the_report_says_what_was_lost_and_where_it_still_is(out: Path) -> None:
    folder = recording("incidents/unclean-2.8")
    ran = kctl("audit", "run", folder, "--out", out, "--color", "always")
    assert ran.status == 5
    *_, command = lines = ran.out.decode().splitlines()
    assert command == f"next     kctl replica loss {folder} --export lost"
    assert "60 committed records are gone from the cluster" in " ".join(line.strip() for line in lines[-16:])
    page = re.sub("<[^>]+>", "", (out / "report.html").read_text(encoding="utf-8"))
    told = page.index(
        "60 committed records are gone from the cluster; all 60 are still on broker 1 (copy &#x27;during&#x27;)."
    )
    assert "broker 2 became leader of 3 partitions without being in sync" in page[:told]
    assert told < page.index("kctl replica loss") < page.index("[40, 70)") < page.index("What happened")
    assert (
        "Lost: offsets [40, 70), committed, unclean election; dropped when broker 2 led from leader" in page
    )
    assert "still on broker 1 (copy &#x27;during&#x27;)" in page


def test_parts_that_could_not_be_done_are_in_the_verdict(tmp_path: Path, out: Path) -> None:
    (tmp_path / "none").mkdir()
    ran = rows("audit", "run", "--merge", tmp_path / "none", "--out", out)
    assert ran.status == 3
    assert ran.of("audit")[0]["verdict"] == (
        "Not everything could be examined: join, compare; the evidence has nothing on divergence."
    )


def test_a_broker_that_may_have_remote_segments_and_has_none_asks_nothing_of_a_tier(tmp_path: Path) -> None:
    cache = tmp_path / "remote-log-index-cache"
    cache.mkdir()
    (tmp_path / "meta.properties").write_text("version=0\nbroker.id=1\n")
    assert not has_tier(discover([str(tmp_path)]))
    (cache / "0_8_U4ndxsg1RhONNEJJ9lrdrg.index").write_bytes(b"")
    assert has_tier(discover([str(tmp_path)]))
    (tmp_path / "orders-0").mkdir()
    assert not has_tier(discover([str(tmp_path / "orders-0")]))


def test_a_finding_without_a_file_names_its_partition() -> None:
    from commands.audit import audit_text
    from commands.cli.render import Page

    finding = {"kind": "finding", "severity": "error", "code": "c", "file": None, "message": "It is so."}
    lines = list(audit_text([{**finding, "topic": "orders", "partition": 3}], Page(80, color=False)))
    assert lines == []  # the summary brings them
    summary = {"kind": "audit", "files": 1, "bytes": 1, "records": 0, "brokers": [], "seconds": 1.0}
    rest = [{**finding, "topic": "orders", "partition": 3}, {**summary, "verdict": "V.", "report": "r"}]
    lines = list(audit_text(rest, Page(80, color=False)))
    assert lines[1].strip() == "orders-3: It is so."
    assert "1 file, 1 byte, 0 records in 1.0 s" in lines


def test_the_report_needs_nothing_from_outside_and_runs_only_its_own_script(out: Path) -> None:
    kctl("audit", "run", recording("incidents/unclean-2.8"), "--out", out)
    page = (out / "report.html").read_bytes()
    assert page.startswith(b"<!DOCTYPE html>")
    assert not EXTERNAL.search(page)
    (script,) = re.findall(rb"<script>(.*?)</script>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script).digest())
    assert b"default-src &#x27;none&#x27;" in page
    assert b"script-src &#x27;sha256-" + digest + b"&#x27;" in page
    assert b"prefers-color-scheme: dark" in page
    assert b"unclean-leader-election" in page


def test_names_in_the_evidence_cannot_write_the_page(tmp_path: Path, out: Path) -> None:
    source = recording("segments/3.9.1-kraft") / "data-clean" / "broker-1" / "logdir-0" / "orders.plain-1"
    evil = tmp_path / "evidence" / "<img src=x onerror=alert(1)>\x1b[2J" / "orders.plain-1"
    shutil.copytree(source, evil)
    log = next(evil.glob("*.log"))
    log.write_bytes(log.read_bytes()[:100] + b"<script>" + log.read_bytes()[108:])
    assert kctl("audit", "run", tmp_path / "evidence", "--out", out).status == 5
    page = (out / "report.html").read_text()
    assert "<img" not in page
    assert "\x1b" not in page
    assert "&lt;img" in page


def test_an_overwriting_run_replaces_and_report_makes_the_same_page(out: Path) -> None:
    folder = recording("incidents/halt-0.10.2")
    kctl("audit", "run", folder, "--out", out)
    first = sorted(p.name for p in out.rglob("*"))
    assert kctl("audit", "run", folder, "--out", out, "--overwrite").status == 5
    assert sorted(p.name for p in out.rglob("*")) == first
    page = (out / "report.html").read_text()
    (out / "report.html").unlink()
    assert kctl("audit", "report", out).status == 0
    assert (out / "report.html").read_text() == page


def test_a_failed_run_leaves_no_half_table(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(audit: Any) -> Any:
        yield from PARTS[0].rows(audit)
        raise RuntimeError("out of cheese")

    monkeypatch.setattr("kctl.audit.run.PARTS", (PARTS[0]._replace(rows=broken),))
    with pytest.raises(RuntimeError, match="cheese"):
        kctl("audit", "run", recording("incidents/halt-0.10.2"), "--out", out)
    assert list(out.iterdir()) == []


def test_a_worker_that_dies_leaves_no_table_without_its_rows(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(audit: Any) -> Any:
        yield from PARTS[0].rows(audit)
        raise WorkerDied("a worker process died")

    monkeypatch.setattr("kctl.audit.run.PARTS", (PARTS[0]._replace(rows=broken), *PARTS[1:]))
    ran = kctl("audit", "run", recording("incidents/halt-0.10.2"), "--out", out)
    assert ran.status == 3
    assert "a worker process died" in ran.err
    assert list(out.iterdir()) == []


def test_many_batches_get_a_file_of_their_own(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_rows, "OWN_PART", 10)
    monkeypatch.setattr(parallel, "MOST", 1)  # each folder is work of its own
    ran = rows("audit", "run", recording("segments/2.8.2") / "data-clean", "--out", out, "--jobs", "2")
    assert len(list((out / "batches").glob("*.parquet"))) > 1
    assert len(table(out, "batches")) == ran.of("audit")[0]["batches"]
    assert not (out / "batches" / "workers").exists()


def test_what_is_refused(tmp_path: Path, evidence: Any) -> None:
    folder = evidence("incidents/halt-0.10.2")
    assert kctl("audit", "run", folder, "--out", folder / "report").status == 4
    busy = tmp_path / "busy"
    busy.mkdir()
    (busy / "thesis.txt").write_text("mine")
    ran = kctl("audit", "run", folder, "--out", busy)
    assert ran.status == 4
    assert "thesis.txt" in ran.err
    assert kctl("audit", "run", tmp_path / "nowhere", "--out", tmp_path / "x").status == 3
    assert kctl("audit", "report", busy).status == 3
    assert kctl("audit", "sql", busy, "SELECT 1").status == 3


@pytest.mark.slow
def test_sql(out: Path) -> None:
    pytest.importorskip("duckdb")
    kctl("audit", "run", recording("incidents/unclean-2.8"), "--out", out)
    ran = rows("audit", "sql", out, "SELECT code, count(*) AS n FROM findings GROUP BY code ORDER BY n DESC")
    assert sum(row["n"] for row in ran.rows) == len(table(out, "findings"))
    for bad in (
        "SELEC",
        "SELECT * FROM nothing",
        "SELECT * FROM read_csv('/etc/passwd')",
        "COPY (SELECT 1) TO '/tmp/x'",
    ):
        ran = kctl("audit", "sql", out, bad)
        assert ran.status == 2, bad
        assert len(ran.errors) == 1
    assert kctl("audit", "sql", out).status == 2


def test_a_table_survives_what_evidence_holds(tmp_path: Path) -> None:
    with TableWriter(tmp_path, "findings") as writer:
        writer.row(
            {"code": "x", "severity": "info", "message": "\ud800 \x00", "file": None, "position": 2**40}
        )
    writer.put_in_place()
    numbers = dict.fromkeys(
        ("seconds", "files", "bytes", "batches", "records", "partitions", "errors", "warnings", "infos"), 0
    )
    texts = dict.fromkeys(("verdict", "evidence", "kctl", "started"), "")
    write_summary(tmp_path, AUDIT(**numbers, **texts, brokers=[], moments=[], parts=[], judgements=[]))
    assert next(Tables(tmp_path).rows("findings"))["position"] == 2**40


@pytest.mark.parametrize(
    ("ranges", "covered"),
    [([(0, 10), (5, 15)], 15), ([(3, None)], 1), ([(0, 2), (4, 6), (0, 1)], 4), ([], 0)],
)
def test_lost_offsets_are_counted_once(ranges: list[tuple[int, int | None]], covered: int) -> None:
    assert _covered(ranges) == covered


@pytest.mark.slow
def test_a_disk_that_is_full_is_one_line_and_no_half_table(tmp_path: Path) -> None:
    folder = recording("incidents/unclean-2.8")
    program = f"ulimit -f 8; exec {sys.executable} -c 'from commands.main import run; run()'"
    ran = subprocess.run(
        ["bash", "-c", f'{program} audit run "$0" --out "$1"', folder, tmp_path / "out"],
        capture_output=True, text=True, check=False, env={**os.environ, "KCTL_CONFIG": "/none"},
    )  # fmt: skip
    assert ran.returncode == 3, ran.stderr
    assert "file too large" in ran.stderr
    assert len(errors_in(ran.stderr)) == 1
    assert [p.name for p in (tmp_path / "out").iterdir() if "writing" in p.name] == []


def test_a_disk_that_fills_before_a_table_is_begun_leaves_nothing(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = pq.ParquetWriter
    opened: list[Path] = []

    def full(path: Path, *args: Any, **options: Any) -> Any:
        opened.append(path)
        if len(opened) == 5:
            raise OSError(errno.ENOSPC, "No space left on device")
        return writer(path, *args, **options)

    monkeypatch.setattr("kctl.scan.parquet.pq.ParquetWriter", full)
    ran = kctl("audit", "run", recording("incidents/halt-0.10.2"), "--out", out)
    assert ran.status == 3
    assert "no space left on device" in ran.err
    assert list(out.iterdir()) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "locked").mkdir(mode=0o500)
    ran = kctl("audit", "run", recording("incidents/halt-0.10.2"), "--out", tmp_path / "locked" / "out")
    assert ran.status == 3
    assert len(ran.errors) == 1


def test_a_file_in_the_place_of_the_folder_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ran = kctl("audit", "run", recording("incidents/halt-0.10.2"), "--out", tmp_path / "file" / "out")
    assert ran.status == 3
    assert len(ran.errors) == 1


def test_audits_of_single_brokers_joined_find_the_same_divergences(
    evidence: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = evidence("incidents/unclean-2.8") / "moments" / "during"
    parts = []
    for broker in sorted(folder.glob("broker-*")):
        parts.append(tmp_path / broker.name)
        assert kctl("audit", "run", broker, "--out", parts[-1]).status in (0, 3)  # nothing, or one copy
    assert len(parts) > 1
    ran = rows("audit", "run", "--merge", *parts, "--out", tmp_path / "joined")
    assert ran.status in (0, 5), ran.err
    compared = rows("replica", "compare", folder)

    def ranges(found: list[dict[str, Any]]) -> set[tuple[Any, ...]]:
        return {
            (row["topic"], row["partition"], str(row["broker_ids"]), row["from_offset"], row["to_offset"])
            for row in found
        }

    assert ranges(table(tmp_path / "joined", "divergences")) == ranges(compared.of("divergence")) != set()
    for name in ("files", "batches", "segments"):
        count = sum(len(table(part, name)) for part in parts)
        assert len(table(tmp_path / "joined", name)) == count > 0
    assert kctl("audit", "run", "--merge", tmp_path / "nowhere", "--out", tmp_path / "x").status == 3
    monkeypatch.setattr("kctl.audit.merge.MOST_BATCHES", 1)
    ran = rows("audit", "run", "--merge", *parts, "--out", tmp_path / "uncompared")
    said = [row for row in ran.of("judgement") if row["question"] == "divergence"]
    assert {row["verdict"] for row in said} == {"could_not_judge"} and ran.of("verdict") == []
    assert any("batches, more than the 1 that are compared" in row["reason"] for row in said)
    assert table(tmp_path / "uncompared", "divergences") == []
    monkeypatch.setattr("kctl.audit.merge.MOST_COPIES", 1)
    ran = rows("audit", "run", "--merge", *parts, "--out", tmp_path / "too-many")
    assert ran.status == 3 and "more than 1 copies of partitions" in ran.err


@pytest.fixture
def scanned_folders(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The folders that are checked, not recalled; runs must have `--jobs 1`."""
    seen: list[Path] = []
    check = batch_rows.check_replica

    def counted(task: Any, *args: Any, **options: Any) -> Any:
        seen.append(task.folder)
        return check(task, *args, **options)

    monkeypatch.setattr(batch_rows, "check_replica", counted)
    return seen


def same_tables(one: Path, other: Path) -> None:
    assert Tables(one).names() == Tables(other).names()
    for name in Tables(one).names():
        left, right = (sorted(map(repr, table(out, name))) for out in (one, other))
        assert left == right, name


@pytest.mark.slow
def test_a_killed_run_goes_on_where_it_was(
    evidence: Any, tmp_path: Path, scanned_folders: list[Path]
) -> None:
    folder, out = evidence("segments/2.4.1"), tmp_path / "out"
    command = [sys.executable, "-c", "from commands.main import run; run()", "audit", "run", folder]
    with subprocess.Popen(
        [*command, "--out", out, "--resume", "--jobs", "1"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, "KCTL_CONFIG": "/none"},
    ) as process:  # fmt: skip
        while process.poll() is None and len(list(out.glob(".resume/*.report"))) < 5:
            time.sleep(0.005)
        process.kill()
    kept = len(list(out.glob(".resume/*.report")))
    assert kept >= 5
    assert kctl("audit", "run", folder, "--out", out, "--resume", "--jobs", "1").status == 3
    again = len(scanned_folders)
    scanned_folders.clear()
    assert kctl("audit", "run", folder, "--out", tmp_path / "whole", "--jobs", "1").status == 3
    assert again + kept == len(scanned_folders)
    same_tables(out, tmp_path / "whole")
    assert [p.name for p in out.iterdir() if p.name.startswith(".")] == []


def test_what_changed_since_is_scanned_again(
    tmp_path: Path, scanned_folders: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_rows, "OWN_PART", 3)  # folders have files of their own, which must be kept too
    shutil.copytree(recording("incidents/unclean-2.8") / "moments" / "during", tmp_path / "evidence")
    out = tmp_path / "out"
    parts = PARTS[:1]

    def fails(audit: Any) -> Any:
        yield from parts[0].rows(audit)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("kctl.audit.run.PARTS", (parts[0]._replace(rows=fails),))
        args = "audit", "run", tmp_path / "evidence", "--out", out, "--resume", "--jobs", "1"
        assert kctl(*args).status == 130
    every = len(scanned_folders)
    scanned_folders.clear()
    assert every > 3
    assert (out / ".resume" / "sha256.jsonl").exists()
    log = max((tmp_path / "evidence").rglob("0*.log"), key=lambda path: path.stat().st_size)
    log.write_bytes(log.read_bytes()[:-3])
    for kept in sorted((out / ".resume").glob("*.report"))[:1]:
        kept.write_bytes(kept.read_bytes()[:50])  # torn by a crash of the machine
    assert kctl(*args).status == 5
    assert 1 <= len(scanned_folders) <= 2
    assert log.parent in scanned_folders
    kctl("audit", "run", tmp_path / "evidence", "--out", tmp_path / "whole", "--jobs", "1")
    same_tables(out, tmp_path / "whole")


def test_an_audit_that_judged_nothing_does_not_end_like_one_that_found_nothing(tmp_path: Path) -> None:
    """An export of znodes has nothing on any question; so has a link that leads out of the evidence."""
    for name in ("znodes", "link"):
        (tmp_path / name / "data").mkdir(parents=True)
    (tmp_path / "znodes" / "znodes.jsonl").write_text('{"path":"/brokers/ids","data":""}\n')
    (tmp_path / "link" / "data" / "orders-0").symlink_to("/")
    for name in ("znodes", "link"):
        ran = rows("audit", "run", tmp_path / name, "--out", tmp_path / f"{name}-report")
        assert ran.rows[-1]["verdict"] == "Nothing could be judged." and ran.rows[-1]["judgements"] == []
        assert ran.status == 3, name


def test_a_master_without_its_engine_is_refused(tmp_path: Path) -> None:
    """Whoever names one means Spark, and would take the rows of this machine for the cluster's."""
    for command in (
        ("run", recording("incidents/halt-0.10.2"), "--out", tmp_path / "out"),
        ("sql", tmp_path, "SELECT 1"),
    ):
        ran = kctl("audit", *command, "--master", "local[2]")
        assert ran.status == 2 and "--master needs --engine spark" in ran.err
    assert not (tmp_path / "out").exists()
