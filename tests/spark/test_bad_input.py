"""What goes wrong where Spark works: one line or a finding, and nothing of the rest is lost."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from kctl.errors import KctlError
from kctl.scan.tables import SCHEMAS
from kctl.spark.listing import list_segments
from kctl.spark.planning import Filters, plan
from kctl.spark.reading import read_pieces
from tests.conftest import recording

ROOT = Path(__file__).parents[2]
SECRET = "verysecretkey"
LISTING = b"""<?xml version="1.0" encoding="UTF-8"?>
<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>evidence</Name><Prefix></Prefix>
<KeyCount>1</KeyCount><MaxKeys>1000</MaxKeys><IsTruncated>false</IsTruncated>
<Contents><Key>orders-0/00000000000000000000.log</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified>
<ETag>"1"</ETag><Size>100</Size><StorageClass>STANDARD</StorageClass></Contents></ListBucketResult>"""
DENIED = b"""<?xml version="1.0" encoding="UTF-8"?>
<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"""


class Refusing(BaseHTTPRequestHandler):
    """An S3 server that refuses every object, and the listing of the bucket `closed`."""

    def do_GET(self) -> None:
        is_listing = self.path.startswith("/evidence") and "list-type" in self.path
        self.answer(200 if is_listing else 403, LISTING if is_listing else DENIED)

    def do_HEAD(self) -> None:
        self.answer(403, b"")

    def answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def options() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Refusing) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        where = f"127.0.0.1:{server.server_port}"
        yield f"endpoint_override={where}&scheme=http&region=us-east-1&access_key=a&secret_key={SECRET}"
        server.shutdown()


def test_credentials_that_are_refused_are_one_line_without_them(options: str) -> None:
    with pytest.raises(KctlError) as raised:
        list_segments(f"s3://closed/copy?{options}", [])
    said = str(raised.value)
    assert "s3://closed" in said
    assert SECRET not in said
    assert "\n" not in said


def test_an_object_that_is_refused_is_a_finding(options: str) -> None:
    segments = list_segments(f"s3://evidence?{options}", [])
    assert [one.topic for one in segments] == ["orders"]
    for table in ("findings", "batches"):
        (pieces,) = plan(segments, table, Filters())
        found = [
            r for b in read_pieces(pieces, table, SCHEMAS[table].names, Filters()) for r in b.to_pylist()
        ]
        assert [row["code"] for row in found] == ["evidence-unreadable"] * (table == "findings")
        assert SECRET not in str(found)


@pytest.mark.spark
def test_an_executor_without_numpy_is_one_line(tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    (bare / "numpy").mkdir(parents=True)
    (bare / "numpy" / "__init__.py").write_text("raise ModuleNotFoundError(\"No module named 'numpy'\")\n")
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{bare}:$PYTHONPATH" exec {sys.executable} "$@"\n')
    python.chmod(0o700)
    ran = subprocess.run(
        [
            sys.executable, "-c", "from commands.main import run; run()", "audit", "run",
            recording("incidents/halt-0.10.2"), "--out", tmp_path / "out", "--engine", "spark", "--master", "local[1]",
        ],
        capture_output=True, text=True, check=False, cwd=ROOT,
        env={**os.environ, "PYSPARK_PYTHON": str(python), "KCTL_CONFIG": "/none"},
    )  # fmt: skip
    assert ran.returncode == 3, ran.stderr
    assert "No module named 'numpy'" in ran.stderr
    assert len(ran.stderr.strip().splitlines()) <= 2, ran.stderr
    assert list((tmp_path / "out").iterdir()) == []


def fail_with(text: str) -> str:
    raise OSError(f"cannot open {text}: denied")


@pytest.mark.spark
@pytest.mark.parametrize(
    "uri",
    [f"s3a://AKIA:{SECRET}/x@bucket/logs", f"abfss://c@a.dfs.core.windows.net/x?sig={SECRET}&sv=1", f"s3://b/x?secret_key={SECRET}&region=y"],
)  # fmt: skip
def test_a_secret_is_not_in_an_error_of_spark(spark: Any, uri: str) -> None:
    from kctl.spark.tasks import SparkEngine

    with pytest.raises(KctlError, match="denied") as raised:  # Py4J's words, which hold the task's traceback
        list(SparkEngine(spark, 2).ordered(fail_with, [uri]))
    assert SECRET not in f"{raised.value} {raised.value.args}"
    with pytest.raises(Exception, match=r"(?s).") as unread:
        spark.read.format("kafka-segments").load(uri).collect()
    assert SECRET not in str(unread.value)


@pytest.mark.spark
@pytest.mark.parametrize(
    "master", [f"sc://me:{SECRET}@127.0.0.1:1/;token={SECRET}", f"sp://me:{SECRET}/x@127.0.0.1:1"]
)
def test_a_secret_in_the_address_of_a_master_is_not_in_an_error(master: str, tmp_path: Path) -> None:
    ran = subprocess.run(
        [
            sys.executable, "-c", "from commands.main import run; run()", "audit", "run",
            recording("incidents/halt-0.10.2"), "--out", tmp_path / "out", "--engine", "spark", "--master", master,
        ],
        capture_output=True, text=True, check=False, cwd=ROOT, env={**os.environ, "KCTL_CONFIG": "/none"},
    )  # fmt: skip
    assert ran.returncode == 3, ran.stderr
    assert SECRET not in ran.stdout + ran.stderr
    assert "did not start" in ran.stderr
