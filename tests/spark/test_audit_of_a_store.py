"""`kctl audit run s3://... --engine spark`: executors read the store themselves; the rows are those of the local engine."""

from __future__ import annotations

import shutil
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyarrow import fs

from kctl.audit import run
from kctl.audit.parts import PARTS
from kctl.audit.tables import Tables
from kctl.stores.mirror import MIRRORS
from kctl.stores.request_counts import REQUESTS
from tests.audit_rows import cut_all, equal_audits
from tests.conftest import kctl, recording
from tests.spark.test_audit_on_spark import ON_SPARK
from tests.stores.servers import SECRET, STORES, put

pytestmark = pytest.mark.spark
LOG = "broker-1/data/stock-0/00000000000000000000.log"


class Bucket(NamedTuple):
    """A recorded incident in a store, and the same in a folder."""

    url: str
    folder: Path
    files: Any  # of pyarrow

    def write(self, key: str, data: bytes) -> None:
        """Put an object below the prefix."""
        with self.files.open_output_stream(f"evidence/dark/{key}") as out:
            out.write(data)


@pytest.fixture
def bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    """In moto, which asks for no credentials: workers of the session of all tests have none."""
    pytest.importorskip("moto.server")
    from moto.server import ThreadedMotoServer

    monkeypatch.setenv(MIRRORS, "")
    folder = tmp_path / "dark"
    shutil.copytree(recording("incidents/diverge-2.8") / "moments" / "dark", folder)
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    where = "{}:{}".format(*server.get_host_and_port())
    files = fs.S3FileSystem(
        endpoint_override=where, scheme="http", region="us-east-1", access_key="a", secret_key="b",
        allow_bucket_creation=True,
    )  # fmt: skip
    files.create_dir("evidence")
    options = f"endpoint_override={where}&scheme=http&region=us-east-1&anonymous=true"
    made = Bucket(f"s3://evidence/dark?{options}", folder, files)
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            made.write(str(path.relative_to(folder)), path.read_bytes())
    yield made
    server.stop()


@pytest.fixture(params=["whole", "cut"])
def how(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Whether folders are cut into their logs."""
    if request.param == "cut":
        cut_all(monkeypatch)
    return str(request.param)


def test_the_audit_of_a_url_is_that_of_the_local_engine(
    spark: Any, bucket: Bucket, how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(REQUESTS, "bytes", 0)
    remote = kctl("audit", "run", bucket.url, "--out", tmp_path / "spark", *ON_SPARK)
    monkeypatch.setattr(REQUESTS, "bytes", 0)
    local = kctl("audit", "run", bucket.url, "--out", tmp_path / "local", "--jobs", 1)
    assert (remote.status, remote.err) == (local.status, local.err) and local.status == 5
    equal_audits(tmp_path / "local", tmp_path / "spark")
    assert Tables(tmp_path / "spark").summary["evidence"] == "s3://evidence/dark"
    size = sum(path.stat().st_size for path in bucket.folder.rglob("*.log"))
    for name in ("spark", "local"):
        assert Tables(tmp_path / name).summary["bytes_read"] >= size, "what executors read is not counted"
    query = bucket.url.partition("?")[2].replace("anonymous=true", "access_key=a&secret_key=b")
    put = kctl("audit", "run", bucket.url, "--out", f"s3://evidence/report-{how}?{query}", *ON_SPARK)
    assert (put.status, put.err) == (local.status, local.err)
    fs.copy_files(f"evidence/report-{how}", str(tmp_path / "put"), bucket.files, fs.LocalFileSystem())
    equal_audits(tmp_path / "local", tmp_path / "put")


def test_objects_that_went_or_changed_since_the_listing_are_findings(
    spark: Any, bucket: Bucket, how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are what the local engine says of them, and nothing is judged from them."""
    prepare = run.prepare_folder
    gone, shorter = (LOG.replace("broker-1", f"broker-{number}") for number in (1, 2))

    def hurt(*args: Any, **options: Any) -> None:
        bucket.files.delete_file(f"evidence/dark/{gone}")
        bucket.write(shorter, (bucket.folder / shorter).read_bytes()[:100])
        prepare(*args, **options)

    monkeypatch.setattr(run, "prepare_folder", hurt)
    for name, options in (("local", ("--jobs", 1)), ("spark", ON_SPARK)):
        for key in (gone, shorter):
            bucket.write(key, (bucket.folder / key).read_bytes())
        assert kctl("audit", "run", bucket.url, "--out", tmp_path / name, *options).status == 5
    equal_audits(tmp_path / "local", tmp_path / "spark")
    said = {
        row["file"]: row["code"] for row in Tables(tmp_path / "spark").rows("findings")
        if row["code"] in ("evidence-vanished", "evidence-unreadable")
    }  # fmt: skip
    assert {gone, shorter} <= said.keys(), said


def test_a_run_of_a_url_that_was_killed_goes_on(
    spark: Any, bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is kept is found again, though the mirror lies elsewhere in every process."""
    out = tmp_path / "out"

    def killed(audit: Any) -> Any:
        yield from PARTS[0].rows(audit)
        raise KeyboardInterrupt

    command = ("audit", "run", bucket.url, "--out", out, "--resume", *ON_SPARK)
    with monkeypatch.context() as patched:
        patched.setattr(run, "PARTS", (PARTS[0]._replace(rows=killed), *PARTS[1:]))
        assert kctl(*command).status == 130
    kept = {one: one.stat().st_mtime_ns for one in (out / ".resume").glob("*.report")}
    assert len(kept) > 3
    with monkeypatch.context() as patched:
        patched.setattr(run, "forget", lambda out: None)
        assert kctl(*command).status == 5
    assert {one: one.stat().st_mtime_ns for one in (out / ".resume").glob("*.report")} == kept


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("s3://me:hidden-word@evidence/dark", "the URL holds a key"),
        ("s3://evidence/dark?access_key=me&secret_key=hidden-word", "the URL holds the option access_key"),
    ],
)
def test_a_secret_is_not_sent_to_executors(
    bucket: Bucket, url: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = bucket.url.partition("?")[2].removesuffix("&anonymous=true")
    ran = kctl(
        "audit", "run", f"{url}{'&' if '?' in url else '?'}{options}", "--out", tmp_path / "out", *ON_SPARK
    )
    assert ran.status == 2 and said in ran.err and "hidden" not in ran.err
    assert not (tmp_path / "out").exists() or not list((tmp_path / "out").iterdir())


def test_executors_that_do_not_reach_the_store_end_it(
    spark: Any, bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare = run.prepare_folder

    def go_away(*args: Any, **options: Any) -> None:
        prepare(*args, **options)
        bucket.files.delete_dir("evidence/dark")

    monkeypatch.setattr(run, "prepare_folder", go_away)
    ran = kctl("audit", "run", bucket.url, "--out", tmp_path / "out", *ON_SPARK)
    assert ran.status == 4 and "cannot read s3://evidence/dark: nothing is there" in ran.err, ran.err
    assert list((tmp_path / "out").iterdir()) == []


def test_nothing_of_a_store_stays_where_executors_ran(spark: Any, bucket: Bucket, tmp_path: Path) -> None:
    before = set(Path(tempfile.gettempdir()).glob("kctl-store-*"))
    kctl("audit", "run", bucket.url, "--out", tmp_path / "out", *ON_SPARK)
    left = set(Path(tempfile.gettempdir()).glob("kctl-store-*")) - before
    assert len(left) <= 1, left  # the driver's own, until this process ends


@pytest.mark.matrix
def test_a_node_without_credentials_is_named(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver has them, the session's workers began without: nothing is examined by halves."""
    folder = recording("incidents/diverge-2.8") / "moments" / "dark"
    (tmp_path / "store").mkdir()
    monkeypatch.setenv(MIRRORS, "")
    with STORES["s3"](tmp_path / "store") as store:
        for key, value in store.environment(store.port).items():
            monkeypatch.setenv(key, value)
        put(store, folder, "dark")
        monkeypatch.delenv("AWS_ENDPOINT_URL")
        where = f"{store.url}/dark?endpoint_override=127.0.0.1:{store.port}&scheme=http&region=us-east-1"
        ran = kctl("audit", "run", where, "--out", tmp_path / "out", *ON_SPARK)
    assert ran.status == 4, ran.err
    assert (
        f"the executor on {socket.gethostname()} cannot read s3://evidence/dark: the store denies access"
        in ran.err
    )
    assert "credentials" in ran.err and SECRET not in ran.err
    assert list((tmp_path / "out").iterdir()) == []
