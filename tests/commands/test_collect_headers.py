"""`kctl collect --headers`: a copy for others has the same answers as a whole one, and none of what records hold."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import json
import lzma
import os
import zipfile
from base64 import b64decode, b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from commands.collect.brokers import without_metadata
from formats.log.hashed_contents import ContentHash
from formats.log.record_batch import Record, write_batch
from formats.log.records import LogEntry, iterate_records, walk
from formats.log_dir.index_files import OffsetIndexEntry, read_offset_index, write_index
from kctl.collect.hash_key import content_hash_of
from kctl.collect.headers_only import HashedLog, RedactedLog, nothing, without_contents
from kctl.collect.transport import FILE, Content, Entry, ReadFailed
from kctl.evidence.manifest import MANIFEST
from tests.conftest import kctl, recording, rows, unchanged

OF_BYTES = {"seconds", "bytes", "size_in_bytes", "good_bytes", "damaged_bytes", "position", "evidence"}
"""Keys of rows that differ where what is compressed takes more room."""
SECRET = b"what nobody else may see"
BASE = 20 * "0"


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def collect(source: Path, copy: Path, key: Path | None, *options: object) -> None:
    how = ("--headers", "--hash-key", key) if key else ()
    ran = rows("collect", "--to", copy, *how, *options, source)
    assert ran.status == 0, ran.err


def told(copy: Path, *command: object) -> tuple[int, list[dict[str, Any]]]:
    """What a command says of a copy."""
    ran = rows(*command, copy)
    assert ran.status in (0, 3, 5), ran.err
    if command == ("segment", "verify"):
        assert (copy.name == "hashed") is ("evidence-contents-hashed" in ran.codes())
    kept = [row for row in ran.rows if row.get("code") != "evidence-contents-hashed"]
    without = [{key: value for key, value in row.items() if key not in OF_BYTES} for row in kept]
    return ran.status, json.loads(json.dumps(without).replace(str(copy), ""))


def contents(folder: Path) -> set[bytes]:
    """The longer keys, values and header values of all records that can be read."""
    found: set[bytes] = set()
    for log in folder.rglob("*.log"):
        if "__" in log.parent.name or log.parent.name == "logs":
            continue
        for item in walk(log.read_bytes()):
            if not isinstance(item, LogEntry) or (item.batch is not None and item.batch.is_control):
                continue
            try:
                for record in iterate_records(item):
                    fields = (record.key, record.value, *(value for _, value in record.headers))
                    found |= {field for field in fields if field is not None and len(field) > 6}
            except Exception:  # damage: what can be read counts
                continue
    return found


QUESTIONS = (
    ("segment", "verify"),
    ("replica", "compare"),
    ("replica", "loss"),
    ("epoch", "compare"),
    ("transactions", "hanging"),
)
RECORDINGS = (
    "segments/0.8.2.2",
    "segments/0.9.0.1",
    "segments/0.10.1.1",
    "segments/0.11.0.3",
    "segments/2.8.2",
    "segments/4.3.0-kraft",
    "drills/compressed-cut-0.10.2",
    "drills/old-format-2.2",
    "drills/power-3.9-kraft",
    "incidents/diverge-2.8",
    "incidents/halt-0.10.2",
    "incidents/hwloss-1.1",
)


@pytest.mark.slow
@pytest.mark.parametrize("name", RECORDINGS)
def test_every_answer_but_contents_is_that_of_the_whole_copy(name: str, tmp_path: Path) -> None:
    source, full, copy = recording(name), tmp_path / "full", tmp_path / "hashed"
    with unchanged(source):
        collect(source, full, None)
        collect(source, copy, tmp_path / "key")
    for command in QUESTIONS:
        assert told(copy, *command) == told(full, *command), command
    seen = contents(full)
    assert seen and not seen & contents(copy)
    assert rows("collect", "verify", copy).status == 0


@pytest.fixture
def broker(tmp_path: Path) -> Path:
    """A log directory with plain and compressed batches and an index, a log and settings."""
    root = tmp_path / "host"
    folder = root / "data" / "orders-0"
    folder.mkdir(parents=True)
    records = [
        Record(n, 1000 + n, b"key of one", SECRET + b"%d" % n, ((b"name", SECRET),)) for n in range(300)
    ]
    log, entries = b"", []
    for start in range(0, 300, 30):
        if start:
            entries.append(OffsetIndexEntry(start, len(log)))
        log += write_batch(records[start : start + 30], codec=start // 30 % 5)
    (folder / f"{BASE}.log").write_bytes(log)
    (folder / f"{BASE}.index").write_bytes(write_index(entries) + bytes(4096))
    (folder / f"{BASE}.timeindex").write_bytes(bytes(12))
    (folder / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    (folder / "notes.txt").write_bytes(SECRET)
    (root / "data" / "meta.properties").write_text("version=0\nbroker.id=7\n")
    (root / "config").mkdir()
    (root / "config" / "server.properties").write_text("broker.id=7\nssl.key.password=hunter2\n")
    (root / "logs").mkdir()
    line = "[2026-11-21 13:00:00,000] INFO [KafkaServer id=7] started password=hunter2 (kafka.server.KafkaServer)\n"
    (root / "logs" / "server.log").write_text(line)
    (root / "logs" / "server.log.1.gz").write_bytes(gzip.compress(line.encode()))
    znode = {"path": "/config/users/alice", "data": b64encode(
        b'{"version":1,"config":{"SCRAM-SHA-256":"salt=c2VjcmV0,stored_key=eHh4"}}').decode(), "version": 3}  # fmt: skip
    (root / "znodes.jsonl").write_text(json.dumps(znode) + "\n")
    return root


def manifest(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / MANIFEST).read_bytes().splitlines()]


def test_nothing_of_the_contents_is_in_the_copy(broker: Path, tmp_path: Path) -> None:
    copy, key = tmp_path / "copy", tmp_path / "key"
    with unchanged(broker):
        collect(broker, copy, key)
    assert key.stat().st_mode & 0o777 == 0o600
    secret = key.read_bytes().strip()
    for path in copy.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            data = gzip.decompress(data) if path.suffix == ".gz" else data
            for word in (SECRET, b"hunter2", b"c2VjcmV0", secret):
                assert word not in data and b64encode(word)[:-4] not in data, path
    assert not contents(copy) & contents(broker)
    log = copy / "broker-7" / "logs" / "server.log"
    assert "password=(redacted)" in log.read_text()
    assert gzip.decompress((log.parent / "server.log.1.gz").read_bytes()) == log.read_bytes()
    (znode,) = map(json.loads, (copy / "znodes.jsonl").read_text().splitlines())
    assert b"(redacted)" in b64decode(znode["data"]) and znode["version"] == 3


def test_the_manifest_names_what_was_read_and_what_was_left_out(broker: Path, tmp_path: Path) -> None:
    copy, source = tmp_path / "copy", broker / "data" / "orders-0" / f"{BASE}.log"
    collect(broker, copy, tmp_path / "key")
    lines = manifest(copy)
    assert len(lines[0]["hash_key_id"]) == 16
    by_path = {line["path"]: line for line in lines if line["kind"] == "file"}
    log = by_path[f"broker-7/data/orders-0/{BASE}.log"]
    content_hash = content_hash_of(tmp_path / "key", [])
    assert (log["as"], log["source_size"], log["source_keyed_digest"]) == (
        "headers", source.stat().st_size, content_hash.of_digest(sha256(source)),
    )  # fmt: skip
    assert log["sha256"] == sha256(copy / log["path"])
    assert all(line["source_sha256"] is None for line in by_path.values())
    assert sha256(source) not in (copy / MANIFEST).read_text()
    assert by_path[f"broker-7/data/orders-0/{BASE}.index"]["as"] == "headers"
    assert by_path[f"broker-7/data/orders-0/{BASE}.timeindex"]["as"] is None
    assert by_path["broker-7/logs/server.log"]["note"] == "secrets redacted"
    left_out = {line["path"]: line["why"] for line in lines if line["kind"] == "left_out"}
    assert "not known" in left_out["broker-7/data/orders-0/notes.txt"]
    redacted = by_path["broker-7/server.properties"]
    assert (redacted["note"], redacted["source_sha256"], redacted["source_keyed_digest"]) == (
        "secrets redacted", None, None,
    )  # fmt: skip


def test_an_index_names_the_batches_that_were_written(broker: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    collect(broker, copy, tmp_path / "key")
    folder = copy / "broker-7" / "data" / "orders-0"
    starts = {item.base_offset: item.position for item in walk((folder / f"{BASE}.log").read_bytes())
              if isinstance(item, LogEntry)}  # fmt: skip
    data = (folder / f"{BASE}.index").read_bytes()
    entries = [entry for entry in read_offset_index(data) if entry.relative_offset]
    assert len(entries) == 9 and len(data) == 9 * 8 + 4096
    assert {entry.relative_offset: entry.position for entry in entries} == {
        offset: position for offset, position in starts.items() if offset
    }
    assert rows("segment", "verify", folder).codes("error", "warning") == []


def test_contents_that_were_equal_are_equal_in_copies_by_one_key(broker: Path, tmp_path: Path) -> None:
    for name, key in (("a", "key"), ("b", "key"), ("c", "other")):
        collect(broker, tmp_path / name, tmp_path / key)
    collect(broker, tmp_path / "d", None)
    log = f"broker-7/data/orders-0/{BASE}.log"
    a, b, c = ((tmp_path / name / log).read_bytes() for name in "abc")
    assert a == b != c
    keys = {record.key for item in walk(a) if isinstance(item, LogEntry) for record in iterate_records(item)}
    assert len(keys) == 1
    for copies, status in (("ab", 0), ("ac", 4), ("ad", 4)):
        for command in ("compare", "loss"):
            ran = kctl("replica", command, *(tmp_path / name for name in copies))
            assert (ran.status == 4, "by the same" in ran.err) == (status == 4, status == 4), (
                command,
                ran.err,
            )


def test_it_goes_on_with_the_same_key_alone(broker: Path, tmp_path: Path) -> None:
    copy, key = tmp_path / "copy", tmp_path / "key"
    collect(broker, copy, key)
    whole = {path: sha256(path) for path in copy.rglob("*.log")}
    lines = (copy / MANIFEST).read_bytes().splitlines(keepends=True)
    kept = [line for line in lines[:-1] if b'"kind":"whole"' not in line and b'.index"' not in line]
    (copy / MANIFEST).write_bytes(b"".join(kept))
    (copy / "broker-7" / "data" / "orders-0" / f"{BASE}.index").unlink()
    for options in ((), ("--headers", "--hash-key", tmp_path / "other")):
        ran = kctl("collect", "--resume", "--to", copy, *options, broker)
        assert ran.status == 4 and "as hashes of the key" in ran.err
    collect(broker, copy, key, "--resume")
    assert {path: sha256(path) for path in copy.rglob("*.log")} == whole
    assert rows("collect", "verify", copy).status == 0
    assert rows("segment", "verify", copy).codes("error", "warning") == []
    full = tmp_path / "full"
    collect(broker, full, None)
    ran = kctl("collect", "--resume", "--to", full, "--headers", "--hash-key", key, broker)
    assert ran.status == 4 and "with their contents" in ran.err


def test_a_key_that_others_have_is_refused(broker: Path, tmp_path: Path) -> None:
    copy, key = tmp_path / "copy", tmp_path / "key"
    for place in (copy / "key", broker / "key"):
        ran = kctl("collect", "--to", copy, "--headers", "--hash-key", place, broker)
        assert ran.status == 4 and "it lies in" in ran.err and not place.exists()
    key.write_text("a key of sixteen bytes\n")
    os.chmod(key, 0o644)
    ran = kctl("collect", "--to", copy, "--headers", "--hash-key", key, broker)
    assert ran.status == 4 and "others may read it" in ran.err
    os.chmod(key, 0o600)
    key.write_text("short\n")
    ran = kctl("collect", "--to", copy, "--headers", "--hash-key", key, broker)
    assert ran.status == 3 and "16 bytes" in ran.err
    assert not copy.exists()
    assert kctl("collect", "--to", copy, "--headers", broker).status == 2
    assert kctl("collect", "--to", copy, "--hash-key", key, broker).status == 2


def test_no_records_come_out_of_hashes(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    collect(recording("incidents/hwloss-1.1"), copy, tmp_path / "key")
    ran = kctl("replica", "loss", copy, "--export", tmp_path / "lost")
    assert ran.status == 4 and "hashes in the place" in ran.err and not (tmp_path / "lost").exists()
    ran = kctl("replica", "recover", copy, "--bootstrap-server", "127.0.0.1:1", "--dry-run")
    assert ran.status == 4 and "hashes in the place" in ran.err


@pytest.mark.parametrize("name", ["server.log.1.bz2", "server.log.zip", "server.log.2", "server.log.3.gz"])
def test_a_log_in_which_secrets_cannot_be_found_is_left_out(name: str, broker: Path, tmp_path: Path) -> None:
    line = (broker / "logs" / "server.log").read_bytes() * 40
    zipped = io.BytesIO()
    with zipfile.ZipFile(zipped, "w") as archive:
        archive.writestr("server.log", line)
    written = {
        "server.log.1.bz2": bz2.compress(line),
        "server.log.zip": zipped.getvalue(),
        "server.log.2": line.decode().encode("utf-16-le"),
        "server.log.3.gz": gzip.compress(bz2.compress(line)),
    }
    (broker / "logs" / name).write_bytes(written[name])
    copy = tmp_path / "copy"
    collect(broker, copy, tmp_path / "key")
    path = f"broker-7/logs/{name}"
    assert not (copy / path).exists() and (copy / "broker-7" / "logs" / "server.log").exists()
    left_out = {line["path"]: line["why"] for line in manifest(copy) if line["kind"] == "left_out"}
    assert "not known" in left_out[path]
    assert rows("collect", "verify", copy).status == 0


class Given:
    """A file whose bytes are given."""

    def __init__(self, *pieces: bytes | int) -> None:
        size = sum(piece if isinstance(piece, int) else len(piece) for piece in pieces)
        self.entry = Entry("server.log", FILE, size, 0, 0o600, 0, 0)
        self._pieces = pieces

    def pieces(self) -> Iterator[memoryview | int]:
        for piece in self._pieces:
            yield piece if isinstance(piece, int) else memoryview(piece)

    def what_happened(self) -> str | None:
        return None


def written(content: Content) -> bytes:
    return b"".join(bytes(piece) for piece in content.pieces())


@pytest.mark.slow
@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
def test_a_packed_log_that_breaks_off_does_so_in_the_copy(pack: Any) -> None:
    lines = b"".join(
        b"INFO line %d of a log, and its digest is %d\n" % (n, hash(str(n))) for n in range(9000)
    )
    packed = pack(lines)
    log = RedactedLog(Given(packed[: len(packed) // 2]), nothing)
    copy = RedactedLog(Given(written(log)), nothing)
    list(copy.pieces())
    for broken in (log, copy):
        assert "it ends before its" in (broken.what_happened() or "")
    whole = RedactedLog(Given(packed), nothing)
    assert (gzip if pack is gzip.compress else lzma).decompress(written(whole)) == lines
    assert whole.what_happened() is None


@pytest.mark.slow
def test_a_very_long_line_stays_one() -> None:
    text = b"first\n" + b"x" * (19 << 20) + b"\nlast"
    assert written(RedactedLog(Given(text), nothing)) == text


def test_holes_of_any_size_take_no_memory() -> None:
    content_hash = ContentHash(b"a key that nobody has")
    for pieces in ((8 << 40,), (b"x", 8 << 40, b"y")):
        with pytest.raises(ReadFailed, match="longer than a segment"):
            list(HashedLog(Given(*pieces), nothing, "orders", content_hash).pieces())
        with pytest.raises(ReadFailed, match="no index has more"):
            without_contents(f"data/orders-0/{BASE}.index", Given(*pieces), nothing, content_hash)
    hole = HashedLog(Given(40 << 20, b""), nothing, "orders", content_hash)
    assert list(hole.pieces()) == [40 << 20]
    assert hole.source is not None
    assert (hole.source.size, hole.source.sha256) == (40 << 20, hashlib.sha256(bytes(40 << 20)).hexdigest())
    batch = write_batch([Record(0, 1, b"key", SECRET)])
    padded = written(HashedLog(Given(batch, 5000, batch), nothing, "orders", content_hash))
    assert len(padded) == 2 * len(batch) + 5000 and padded[len(batch) :].startswith(bytes(5000))


def test_what_clients_said_of_their_commits_is_replaced() -> None:
    content_hash = ContentHash(b"a key that nobody has")
    rows_before: list[dict[str, object]] = [
        {"offset": 1, "metadata": "of a customer"},
        {"metadata": None},
        {"group": "a"},
    ]
    told, *others = without_metadata(rows_before, content_hash)
    assert told["offset"] == 1 and "customer" not in str(told["metadata"])
    assert others == rows_before[1:]
