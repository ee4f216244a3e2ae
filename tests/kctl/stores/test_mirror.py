"""Evidence in a store gives the same rows as the same evidence in a folder, and what a store does to it is said."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyarrow import fs

from kctl.log.folder import read_folder
from kctl.stores import file_systems
from kctl.stores.file_systems import is_url, timed
from kctl.stores.mirror import MIRRORS
from kctl.stores.objects import RANGE, ObjectSource, Replaced, failure
from kctl.stores.request_counts import REQUESTS
from tests.conftest import Ran, kctl, recording, rows

URL = "s3://bucket/evidence"
LOG = "00000000000000000000.log"


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test has mirrored is its own."""
    monkeypatch.setenv(MIRRORS, "")


class Handler(fs.FileSystemHandler):  # type: ignore[misc]
    """A folder as a store whose answers a test may change; counts requests."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.below = folder, fs.LocalFileSystem()
        self.read: list[str] = []
        self.before_read: Callable[[str], None] = lambda path: None
        self.keys: list[str] = []  # beside those of files

    def _path(self, path: str) -> str:
        return str(self.folder / path.removeprefix("bucket/evidence").lstrip("/"))

    def _named(self, info: Any) -> Any:
        path = "bucket/evidence/" + os.path.relpath(info.path, self.folder)
        return fs.FileInfo(path, info.type, size=info.size, mtime_ns=info.mtime_ns)

    def get_file_info(self, paths: list[str]) -> list[Any]:
        return [self._named(self.below.get_file_info(self._path(path))) for path in paths]

    def get_file_info_selector(self, selector: Any) -> list[Any]:
        below = fs.FileSelector(self._path(selector.base_dir), recursive=selector.recursive)
        made = [
            fs.FileInfo(f"bucket/evidence/{key}", fs.FileType.File, size=1, mtime_ns=1) for key in self.keys
        ]
        return [self._named(info) for info in self.below.get_file_info(below)] + made

    def open_input_file(self, path: str) -> Any:
        self.read.append(path)
        self.before_read(path)
        return self.below.open_input_file(self._path(path))

    def get_type_name(self) -> str:
        return "made up"

    def normalize_path(self, path: str) -> str:
        return path

    def _no(self, *_: object) -> None:
        raise NotImplementedError

    copy_file = create_dir = delete_dir = delete_dir_contents = delete_file = delete_root_dir_contents = _no
    move = open_append_stream = open_input_stream = open_output_stream = _no


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Handler:
    """A small incident in a store."""
    folder = tmp_path / "store"
    shutil.copytree(recording("incidents/diverge-2.8") / "moments" / "dark", folder)
    handler = Handler(folder)
    found = fs.PyFileSystem(handler)
    monkeypatch.setitem(
        file_systems.SCHEMES, "s3", lambda url: (found, url.removeprefix("s3://").rstrip("/"))
    )
    # Processes that a slow machine would have spawned know nothing of this store.
    for module in ("scan.pool", "copies.scanned"):
        monkeypatch.setattr(f"kctl.{module}.default_jobs", lambda: 1)
    return handler


def told(ran: Ran) -> list[Any]:
    return sorted(({k: v for k, v in row.items() if k != "seconds"} for row in ran.rows), key=str)


def verify(*paths: object) -> Ran:
    return rows("segment", "verify", *paths, "--jobs", "1")


def test_what_a_url_is() -> None:
    assert is_url("s3://b/k") and is_url("hdfs://h:1/p")
    assert not is_url("/s3/b") and not is_url("s3:/b") and not is_url("file:///tmp")


@pytest.mark.parametrize(
    "command",
    [("segment", "verify"), ("replica", "compare"), ("epoch", "compare"), ("checkpoint", "show")],
    ids="-".join,
)
def test_rows_are_those_of_a_folder(store: Handler, command: tuple[str, ...]) -> None:
    paths = ["broker-2/data"] if command[0] == "checkpoint" else [""]
    remote = rows(*command, *(f"{URL}/{path}" for path in paths))
    local = rows(*command, *(store.folder / path for path in paths))
    assert remote.status == local.status and len(local.rows) > 5
    if command[0] != "checkpoint":
        assert told(remote) == told(local)
    assert len(remote.rows) == len(local.rows)


def test_a_named_object_and_what_lies_beside_it(store: Handler) -> None:
    folder = next(path.parent for path in sorted(store.folder.rglob(LOG)))
    name = str(folder.relative_to(store.folder))
    for file in (LOG, LOG.replace(".log", ".index")):
        remote, local = (rows("segment", "dump", f"{where}/{name}/{file}") for where in (URL, store.folder))
        assert remote.status == local.status == 0 and len(remote.rows) == len(local.rows) > 0
        assert {row["file"] for row in remote.rows} == {f"{URL}/{name}/{file}"}
    assert told(verify(f"{URL}/{name}/{LOG}"))[0].keys() == told(verify(folder / LOG))[0].keys()


def test_a_url_is_shown_as_it_was_given(store: Handler) -> None:
    folder = next(path.parent for path in sorted(store.folder.rglob(LOG)))
    name = f"{URL}/{folder.relative_to(store.folder)}"
    (folder / "leader-epoch-checkpoint").write_text("0\nzwei\n")
    for command in (
        ("segment", "dump", f"{name}/{LOG}", "--records"),
        ("segment", "dump", f"{name}/{LOG}", "--format", "kafka"),
        ("segment", "dump", f"{name}/{LOG.replace('.log', '.timeindex')}", "--format", "kafka"),
        ("segment", "dump", name),
        ("checkpoint", "show", f"{name}/leader-epoch-checkpoint"),
        ("checkpoint", "show", name, f"{URL}/{folder.parent.relative_to(store.folder)}"),
    ):
        ran = kctl(*command)
        said = ran.out.decode() + ran.err
        assert f"{URL}/" in said and "kctl-store-" not in said, command


def test_a_slash_too_few(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for status, command in (
        (3, ("segment", "verify", "s3:/bucket/evidence")),
        (3, ("segment", "dump", "s3:/bucket/evidence")),
        (3, ("remote", "audit", ".", "--tier", "s3:/bucket/evidence")),
        (2, ("audit", "run", str(recording("incidents/diverge-2.8")), "--out", "s3:/bucket/evidence")),
    ):
        ran = kctl(*command)
        assert ran.status == status and "did you mean s3://bucket/evidence?" in ran.err, (command, ran.err)
    ran = kctl("replica", "loss", ".", "--export", "s3:/bucket/lost")
    assert ran.status == 2 and "is a URL" in ran.err
    assert list(tmp_path.iterdir()) == []


def test_every_object_is_read_once_by_one_request(store: Handler) -> None:
    verify(URL)
    logs = [path for path in store.read if path.endswith(".log")]
    assert len(logs) == len(set(logs)) > 0


def test_an_audit_says_how_much_it_asked_of_a_store(
    store: Handler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An opening, a range and a last look a log at least; of a folder nothing."""
    for key in ("requests", "bytes"):
        monkeypatch.setattr(REQUESTS, key, 0)
    (told,) = rows("audit", "run", URL, "--out", tmp_path / "none", "--dry-run").of("audit-estimate")
    assert not store.read or all(not path.endswith(".log") for path in store.read), "a dry run reads logs"
    (row,) = rows("audit", "run", URL, "--out", tmp_path / "remote", "--jobs", 1).of("audit")
    assert row["requests"] / 2 <= told["requests"] <= row["requests"] * 2
    logs = [path for path in store.folder.rglob("*.log") if path.stat().st_size]
    assert row["requests"] >= len(store.read) + 2 * len(logs)
    assert sum(path.stat().st_size for path in logs) <= row["bytes_read"] < 1 << 20
    assert row["retries"] is None
    monkeypatch.setenv(MIRRORS, "")
    (row,) = rows("audit", "run", store.folder, "--out", tmp_path / "local").of("audit")
    assert (row["requests"], row["bytes_read"]) == (None, None)


def test_nothing_is_judged_of_an_object_that_is_replaced_while_it_is_read(store: Handler) -> None:
    victim = store.folder / "broker-1" / "data" / "stock-0" / LOG
    sound = victim.read_bytes()

    def replace(path: str) -> None:
        if path.endswith(str(victim.relative_to(store.folder))):
            victim.write_bytes(b"\0" * len(sound))

    store.before_read = replace
    ran = verify(URL)
    said = [row for row in ran.of("finding") if row["file"].endswith(str(victim.relative_to(store.folder)))]
    assert [row["code"] for row in said] == ["evidence-unreadable"] and "replaced" in said[0]["message"]
    assert ran.status in (3, 5)
    (judgement,) = (
        row
        for row in ran.of("judgement")
        if (row["topic"], row["partition"], row["broker_id"]) == ("stock", 0, 1)
    )
    assert judgement["verdict"] == "unreadable", [
        r for r in ran.of("finding") if r["partition"] == 0 and r["broker_id"] == 1
    ]


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError("AWS Error ACCESS_DENIED during GetObject operation"), "denies access"),
        (OSError("AWS Error UNKNOWN (HTTP status 400): ExpiredToken Message: ..."), "have expired"),
        (ValueError("I/O operation on closed file"), "closed file"),
        (OSError("AWS Error NETWORK_CONNECTION curlCode: 28"), "connection to the store failed"),
    ],
)
def test_what_a_client_raises_is_a_finding(store: Handler, error: Exception, said: str) -> None:
    def fail(path: str) -> None:
        if path.endswith(".log"):
            raise error

    store.before_read = fail
    ran = verify(URL)
    unread = [row["message"] for row in ran.of("finding") if row["code"] == "evidence-unreadable"]
    assert unread and all(said in message for message in unread)
    assert ran.status in (3, 5) and "sound" not in {
        row["verdict"] for row in ran.of("judgement") if row["partition"] is not None
    }


def test_keys_that_are_no_names_of_files_are_told(store: Handler) -> None:
    store.keys = ["a//b", "../x", "x" * 300, "broker-2/data"]
    ran = verify(URL)
    assert ran.status in (3, 5) and "4 keys cannot be names of files; the first is '/a//b'" in ran.err


@pytest.mark.parametrize("name", ["at 10:00", "%2e%2e", "x" * 255, "a\nb", "\x1b[2J\u202e"])
def test_a_prefix_of_any_name(store: Handler, name: str) -> None:
    for path in list(store.folder.iterdir()):
        (store.folder / name).mkdir(exist_ok=True)
        path.rename(store.folder / name / path.name)
    assert told(verify(f"{URL}/{name}")) == told(verify(store.folder / name))


@pytest.mark.parametrize("key", ["d/" * 2500 + "f", "f\0f", "\x1b[2J\u202e/a//b", "broker-2/data/orders-0/"])
def test_keys_that_no_file_can_have_end_nothing(store: Handler, key: str) -> None:
    expected = verify(URL)
    store.keys = [key]
    ran = verify(URL)
    assert ran.status in (3, 5) and "1 key cannot be the name of a file" in ran.err, ran.err
    assert (ran.of("file"), ran.of("finding")) == (expected.of("file"), expected.of("finding"))


@pytest.mark.parametrize("size", [1 << 62, -1])
def test_a_size_that_no_file_can_have_is_told(
    store: Handler, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = Handler.get_file_info_selector
    odd = fs.FileInfo("bucket/evidence/orders-0/" + LOG, fs.FileType.File, size=size, mtime_ns=-(1 << 62))
    monkeypatch.setattr(
        Handler, "get_file_info_selector", lambda self, selector: [*listed(self, selector), odd]
    )
    ran = verify(URL)
    assert ran.status in (3, 5) and "1 key cannot be the name of a file" in ran.err, ran.err


def test_an_empty_prefix_and_a_store_that_is_not_there(store: Handler) -> None:
    shutil.rmtree(store.folder)
    store.folder.mkdir()
    ran = verify(URL)
    assert ran.status == 3 and f"{URL}: no object is under this URL" in ran.err and not ran.rows
    for url in ("nonsense://host/x", "nonsense://[::1/x", "s3://[::1/x"):
        ran = rows("segment", "verify", url)
        assert ran.status == 3 and url in ran.err


def test_no_value_of_a_query_is_in_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(url: str) -> Any:
        raise ValueError(f"no such option in {url}: my-own-word is none")

    monkeypatch.setitem(file_systems.SCHEMES, "s3", fail)
    for words in (
        ("segment", "verify"),
        ("replica", "compare"),
        ("state-log", "timeline"),
        ("segment", "dump"),
    ):
        ran = rows(*words, f"{URL}?odd=my-own-word&region=here")
        assert ran.status == 3 and f"{URL}: no such option" in ran.err and "my-own" not in ran.err, ran.err


def test_nothing_of_a_store_is_left_on_this_machine(store: Handler, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []
    monkeypatch.setattr("atexit.register", made.append)
    verify(URL)
    for remove in made:
        folder = remove.__self__.path
        assert sum(path.stat().st_blocks for path in folder.rglob("*") if path.suffix == ".log") == 0
        remove()
        assert not folder.exists()
    assert made


# --- one object ---------------------------------------------------------------------------------------


def source_of(path: Path) -> ObjectSource:
    status = path.stat()
    return ObjectSource(fs.LocalFileSystem(), str(path), status.st_size, status.st_mtime_ns, path.name)


def test_reads_of_any_size_give_the_bytes(tmp_path: Path) -> None:
    path = tmp_path / "object"
    data = os.urandom(RANGE + 12345)
    path.write_bytes(data)
    source = source_of(path)
    for position, size in (
        (0, 10),
        (5, RANGE),
        (RANGE - 3, 10),
        (RANGE, 20000),
        (len(data), 1),
        (3, 0),
        (20000, 2 * RANGE),
    ):
        assert source.read_at(position, size) == data[position : position + size]
    assert source.current_size() == len(data)


@pytest.mark.parametrize("change", ["shorter", "longer", "same size", "gone"])
def test_an_object_that_changed_is_not_taken_for_the_one_that_was_listed(tmp_path: Path, change: str) -> None:
    path = tmp_path / "object"
    path.write_bytes(b"x" * 100)
    source = source_of(path)
    if change == "gone":
        path.unlink()
        with pytest.raises(FileNotFoundError):
            source.read_at(0, 100)
        with pytest.raises(FileNotFoundError):
            source.current_size()
        return
    path.write_bytes({"shorter": b"y" * 99, "longer": b"y" * 101, "same size": b"y" * 100}[change])
    os.utime(path, ns=(1, 1))
    if change != "same size":
        with pytest.raises(Replaced):
            source.read_at(0, 100)
    with pytest.raises(Replaced):
        source.current_size()


def test_an_answer_that_is_too_short_is_not_taken_for_all_of_it(tmp_path: Path) -> None:
    path = tmp_path / "object"
    path.write_bytes(b"x" * 100)

    class Short:
        def size(self) -> int:
            return 100

        def read_at(self, size: int, position: int) -> bytes:
            return b"x" * (size - 1)

    source = source_of(path)
    source._file = Short()
    with pytest.raises(Replaced, match="100 bytes, now 99"):
        source.read_at(0, 100)


@pytest.mark.parametrize("name", ["modification_time", "modificationTime"])  # hdfs-native, WebHDFS
def test_times_of_hdfs_are_those_of_files(name: str) -> None:
    said = {"size": 3, "type": "file", name: 1_700_000_000_123}
    assert fs.FSSpecHandler._create_file_info("a", timed(said)).mtime_ns == 1_700_000_000_123_000_000
    assert timed({"size": 3, "type": "file", "mtime": 5.0})["mtime"] == 5.0
    assert timed({"size": 3}) == {"size": 3}


def test_another_object_of_the_same_size_is_seen_by_its_time(tmp_path: Path) -> None:
    path = tmp_path / "object"
    path.write_bytes(b"x" * 100)
    source = source_of(path)
    assert source.current_size() == 100
    path.write_bytes(b"x" * 101)
    os.utime(path, ns=(source._modified or 0, source._modified or 0))
    with pytest.raises(Replaced, match="100 bytes, now 101"):
        source.current_size()


# --- a real server ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[dict[str, str], Path]]:
    """An incident in a server of S3, the environment that leads to it, and the same in a folder."""
    from moto.server import ThreadedMotoServer

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = ThreadedMotoServer("127.0.0.1", port, verbose=False)
    server.start()
    folder = tmp_path_factory.mktemp("s3") / "dark"
    shutil.copytree(recording("incidents/diverge-2.8") / "moments" / "dark", folder)
    environment = {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_ACCESS_KEY_ID": "a",
        "AWS_SECRET_ACCESS_KEY": "hidden-word",
    }
    files = fs.S3FileSystem(
        endpoint_override=f"127.0.0.1:{port}", scheme="http", region="us-east-1", access_key="a", secret_key="b",
        allow_bucket_creation=True,
    )  # fmt: skip
    files.create_dir("evidence")
    for path in folder.rglob("*"):
        if path.is_file():
            with files.open_output_stream(f"evidence/dark/{path.relative_to(folder)}") as out:
                out.write(path.read_bytes())
    yield environment, folder
    server.stop()


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_an_audit_of_s3_is_that_of_a_folder(
    s3: tuple[dict[str, str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jobs: int
) -> None:
    import pyarrow.parquet as pq

    environment, folder = s3
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    remote = rows("audit", "run", "s3://evidence/dark", "--out", tmp_path / "remote", "--jobs", jobs)
    local = rows("audit", "run", folder, "--out", tmp_path / "local", "--jobs", jobs)
    assert remote.status == local.status and remote.rows[-1]["evidence"] == "s3://evidence/dark"
    tables = [path.name for path in (tmp_path / "local").iterdir() if path.is_dir()]
    assert len(tables) > 15
    for name in tables:
        there, here = (
            sorted(map(str, pq.read_table(tmp_path / side / name).to_pylist()))
            for side in ("remote", "local")
        )
        assert there == here, name
    assert "kctl-store-" not in (tmp_path / "remote" / "report.html").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".log", ".index"])
def test_what_was_deleted_from_a_store_is_not_sound(
    s3: tuple[dict[str, str], Path], monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    """Of a running broker's folder it would be: its own cleaner deletes there."""
    environment, folder = s3
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    files = fs.S3FileSystem(
        endpoint_override=environment["AWS_ENDPOINT_URL"].removeprefix("http://"), scheme="http", region="us-east-1",
        access_key="a", secret_key="b",
    )  # fmt: skip
    listed = read_folder

    def deleting(path: Path, *rest: Any) -> Any:
        found = listed(path, *rest)
        with contextlib.suppress(FileNotFoundError):
            files.delete_file(gone)
        return found

    path = next(path for path in sorted(folder.rglob(f"*{suffix}")) if path.stat().st_size)
    gone = f"evidence/dark/{path.relative_to(folder)}"
    for module in ("replica", "parallel"):  # whichever lists the folder
        monkeypatch.setattr(f"kctl.checks.{module}.read_folder", deleting)
    try:
        ran = rows("segment", "verify", "s3://evidence/dark", "--jobs", 1)
    finally:
        with files.open_output_stream(gone) as out:
            out.write(path.read_bytes())
    partition = path.parent.name.rpartition("-")
    of_it = [
        row
        for row in ran.of("judgement")
        if (row["topic"], str(row["partition"])) == (partition[0], partition[2])
        and str(row["broker_id"]) in gone
    ]
    assert [row["verdict"] for row in of_it] == ["unreadable"]
    assert ran.status in (3, 5)


def test_an_error_names_the_address_that_was_tried_and_ends_with_a_word() -> None:
    """What pyarrow says where nobody listens."""
    said = (
        "When getting information for key 'broker-1/data/orders-0/00000000000000000000.log' in bucket 'backup': AWS Error "
        "NETWORK_CONNECTION during HeadObject operation: curlCode: 7, Could not connect to server; Details: Failed to "
        "connect to 127.0.0.1 port 40357 after 0 ms: Could not connect to server"
    )
    shown = failure(OSError(said), "s3://backup/x").strerror
    assert "127.0.0.1 port 40357" in shown
    assert str(failure(OSError(said + " and more words" * 9), "x").strerror).endswith(" …)")


@pytest.mark.parametrize(
    ("said", "number"),
    [
        ("curlCode: 7, Couldn't connect to server http://127.0.0.1:40357/dark", errno.EIO),
        ("reading dark/orders-404/00000000000000000503.log failed: connection reset", errno.EIO),
        ("HTTP status 404", errno.ENOENT),
        ("status=403", errno.EACCES),
        ("code: 503, message", errno.EBUSY),
        ("error 416: the range", errno.ESTALE),
    ],
)
def test_the_number_of_a_status_is_none_in_a_port_or_a_name(said: str, number: int) -> None:
    assert failure(OSError(said), "dark").errno == number
