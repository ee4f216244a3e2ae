"""Segments in S3, executors without libraries, Ctrl-C."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kctl.errors import KctlError
from kctl.findings import Finding, Place, Severity
from kctl.spark.data_source import TABLES
from kctl.spark.listing import list_segments
from kctl.spark.planning import Filters, plan
from kctl.spark.session import settings_for
from tests.audit_rows import equal_audits
from tests.conftest import kctl, recording
from tests.spark.test_data_source import in_process, read, same

ROOT = Path(__file__).parents[2]


@pytest.fixture
def s3() -> Iterator[tuple[str, Any]]:
    """Options of a URI, and a file system, of moto's server."""
    pytest.importorskip("moto.server")
    from moto.server import ThreadedMotoServer
    from pyarrow import fs

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = ThreadedMotoServer("127.0.0.1", port, verbose=False)
    server.start()
    where = f"127.0.0.1:{port}"
    files = fs.S3FileSystem(
        endpoint_override=where, scheme="http", region="us-east-1", access_key="a", secret_key="b",
        allow_bucket_creation=True,
    )  # fmt: skip
    yield f"endpoint_override={where}&scheme=http&region=us-east-1&access_key=a&secret_key=b", files
    server.stop()


@pytest.mark.spark
def test_segments_in_s3_are_those_of_the_folder(
    spark: Any,
    s3: tuple[str, Any],
    corpus: Path,
) -> None:
    options, files = s3
    files.create_dir("evidence")
    for path in sorted(corpus.rglob("*")):
        if path.is_file():
            with files.open_output_stream(f"evidence/copy/{path.relative_to(corpus)}") as out:
                out.write(path.read_bytes())
    uri = f"s3://evidence/copy?{options}"
    found = read(spark, uri, "batches", split_bytes=60_000, least_split_bytes=1)
    same(found.toArrow().to_pylist(), in_process(corpus, "batches"))


BLOCKED = (
    "google_crc32c",
    "cramjam",
    "lz4",
    "zstandard",
    "isal",
    "msgspec",
    "click",
    "rich",
    "kazoo",
    "pyspark",
)
BARE = f"""
import sys


class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {BLOCKED!r}:
            raise ImportError(name)


sys.meta_path.insert(0, Blocker())
from itertools import chain
from kctl.scan.tables import SCHEMAS
from kctl.spark.reading import findings_rows, read_pieces
import hashlib, json, pickle

tasks, wanted, listed = pickle.load(sys.stdin.buffer)  # as the driver sends them
print([row["code"] for rows in findings_rows("findings", ["code"], listed) for row in rows.to_pylist()])
for table, parts in tasks:
    total = hashlib.sha256()
    columns = SCHEMAS[table].names
    for batch in chain(*(read_pieces(pieces, table, columns, wanted) for pieces in parts)):
        for row in batch.to_pylist():
            total.update(json.dumps(row, sort_keys=True, default=repr).encode())
    print(total.hexdigest())
"""


@pytest.mark.slow
def test_an_executor_with_numpy_and_pyarrow_alone_gives_the_same_rows(hurt_evidence: Path) -> None:
    segments = list_segments(str(hurt_evidence), [])
    finding = Finding("batch-crc-mismatch", Severity.ERROR, "", Place())
    sent = [(table, plan(segments, table, Filters())) for table in TABLES], Filters(), [finding]
    ran = subprocess.run(
        [sys.executable, "-c", BARE], input=pickle.dumps(sent), capture_output=True, check=False, cwd=ROOT
    )
    assert ran.returncode == 0, ran.stderr.decode()
    listed, *digests = ran.stdout.decode().splitlines()
    assert listed == "['batch-crc-mismatch']"
    for table, found in zip(TABLES, digests, strict=True):
        total = hashlib.sha256()
        for row in in_process(hurt_evidence, table):
            total.update(json.dumps(row, sort_keys=True, default=repr).encode())
        assert found == total.hexdigest(), table


@pytest.mark.spark
def test_connect_without_its_libraries_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    from pyspark.sql import SparkSession

    from kctl.spark.session import session

    try:
        import grpc  # noqa: F401
    except ImportError:
        pass
    else:
        pytest.skip("the libraries of Spark Connect are installed")
    monkeypatch.setattr(SparkSession, "getActiveSession", classmethod(lambda cls: None))
    with pytest.raises(KctlError, match=r"sc://127\.0\.0\.1:1") as raised, session("sc://127.0.0.1:1"):
        pass
    assert "\n" not in str(raised.value)


@pytest.fixture
def scratch() -> Iterator[Path]:
    """A folder whose path is short enough for sockets."""
    with tempfile.TemporaryDirectory(prefix="k-", ignore_cleanup_errors=True) as name:
        yield Path(name)


def test_sockets_are_not_used_where_their_path_would_be_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "spark.python.unix.domain.socket.enabled"
    assert settings_for()[name] == settings_for("spark://h:1")[name] == "true"
    assert settings_for("yarn")[name] == "false"
    monkeypatch.setattr(tempfile, "tempdir", "/" + "x" * 60)
    assert settings_for()[name] == "false"


def interrupted(out: Path, scratch: Path, begun: Callable[[], bool], *options: str) -> str:
    """What an audit on Spark says on standard error that gets Ctrl-C as soon as it has begun."""
    with subprocess.Popen(
        [
            sys.executable, "-c", "from commands.main import run; run()", "audit", "run",
            recording("segments/2.8.2"), "--out", out, "--engine", "spark", "--master", "local[1]", *options,
        ],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=ROOT,
        env={**os.environ, "TMPDIR": str(scratch), "KCTL_CONFIG": "/none", "_JAVA_OPTIONS": f"-Djava.io.tmpdir={scratch}"},
    ) as process:  # fmt: skip
        began = time.monotonic()
        while not begun() and process.poll() is None:
            assert time.monotonic() - began < 300
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=120)
    assert process.returncode == 130, said
    return said


@pytest.mark.spark
def test_ctrl_c_leaves_what_a_run_goes_on_with(spark: Any, tmp_path: Path, scratch: Path) -> None:
    out = tmp_path / "out"
    interrupted(out, scratch, lambda: any(out.glob(".resume/*.report")), "--resume")
    assert [path.name for path in out.iterdir()] == [".resume"]
    time.sleep(1)  # of a task that ends by itself
    kept = {path: path.stat().st_mtime_ns for path in out.glob(".resume/*.report")}
    command = ("audit", "run", recording("segments/2.8.2"), "--engine", "spark", "--master", "local[2]")
    whole = kctl(*command, "--out", tmp_path / "whole")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("kctl.audit.run.forget", lambda out: None)
        ran = kctl(*command, "--out", out, "--resume")
    assert (ran.status, ran.err) == (whole.status, whole.err)
    assert {path: path.stat().st_mtime_ns for path in kept} == kept and kept
    equal_audits(tmp_path / "whole", out)


@pytest.mark.spark
def test_ctrl_c_ends_the_job_and_leaves_nothing(tmp_path: Path, scratch: Path) -> None:
    out = tmp_path / "out"
    said = interrupted(out, scratch, (out / ".batches.writing").exists)
    assert said.strip().splitlines()[-1].endswith("interrupted")
    assert " WARN " not in said
    assert "Traceback" not in said, said
    assert list(out.iterdir()) == []
    for _ in range(300):  # the JVM takes its own folders away when it ends
        left = [path.name for path in scratch.iterdir() if not path.name.startswith("hsperf")]
        if not left:
            break
        time.sleep(0.1)
    assert left == []
