"""What is read of a source: in which order, up to where, and what happens to a file that changes meanwhile."""

from __future__ import annotations

import hashlib
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from kctl.collect.local_source import LocalSource
from kctl.collect.reading_order import in_reading_order
from kctl.collect.settings_file import without_secrets
from kctl.collect.transport import FILE, Content, Entry, Gone, Unsettled
from kctl.collect.writing import Target
from kctl.evidence.names import trouble_with_name

SEGMENTS = [f"{n:020}" for n in (0, 100, 200)]


def names_of(folder: Path) -> list[str]:
    return [entry.name for entry in in_reading_order(LocalSource(folder, "").listing(folder))]


def contents(folder: Path, *names: str) -> Iterator[Content | Gone]:
    source = LocalSource(folder, str(folder))
    listed = {entry.name: entry for entry in source.listing(folder)}
    return source.contents(folder, [listed.get(name, Entry(name, FILE)) for name in names])


def read(content: Content) -> bytes:
    return b"".join(map(bytes, content.pieces()))


def test_what_is_derived_from_the_log_is_read_before_it_and_the_active_segment_last(tmp_path: Path) -> None:
    for base in reversed(SEGMENTS):
        for suffix in (".log", ".timeindex", ".index"):
            (tmp_path / (base + suffix)).touch()
    for name in (
        "leader-epoch-checkpoint",
        "partition.metadata",
        f"{SEGMENTS[2]}.snapshot",
        "00000000000000000000.txnindex",
    ):
        (tmp_path / name).touch()
    assert names_of(tmp_path) == [
        "leader-epoch-checkpoint",
        "partition.metadata",
        f"{SEGMENTS[2]}.snapshot",
        f"{SEGMENTS[0]}.index", f"{SEGMENTS[0]}.timeindex", f"{SEGMENTS[0]}.txnindex", f"{SEGMENTS[0]}.log",
        f"{SEGMENTS[1]}.index", f"{SEGMENTS[1]}.timeindex", f"{SEGMENTS[1]}.log",
        f"{SEGMENTS[2]}.index", f"{SEGMENTS[2]}.timeindex", f"{SEGMENTS[2]}.log",
    ]  # fmt: skip


def test_a_file_that_grows_is_read_up_to_its_first_size(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"x" * (3 << 20))
    for content in contents(tmp_path, "a"):
        assert not isinstance(content, Gone)
        taken = 0
        for piece in content.pieces():
            assert not isinstance(piece, int)
            taken += len(piece)
            with path.open("ab") as file:
                file.write(b"y" * 100)
        assert taken == 3 << 20
        assert content.what_happened() == "grew while it was read"


def test_a_file_that_is_cut_while_it_is_read_ends_there(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"x" * (3 << 20))
    for content in contents(tmp_path, "a"):
        assert not isinstance(content, Gone)
        pieces = content.pieces()
        next(pieces)
        os.truncate(path, 1 << 20)
        assert list(pieces) == []
        assert "cut to 1048576 bytes" in (content.what_happened() or "")


def test_a_segment_that_retention_deletes_while_those_before_it_are_read_is_read_all_the_same(
    tmp_path: Path,
) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(name.encode())
    seen = []
    for content in contents(tmp_path, "a", "b"):
        assert not isinstance(content, Gone)
        (tmp_path / "b").unlink(missing_ok=True)
        seen.append((read(content), content.what_happened()))
    assert seen == [(b"a", None), (b"b", "deleted or renamed while it was read")]


def test_a_segment_that_was_marked_for_deletion_since_the_listing_is_read_under_its_new_name(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.deleted").write_bytes(b"a")
    (content,) = ((read(c), c.what_happened()) for c in contents(tmp_path, "a") if not isinstance(c, Gone))
    assert content == (b"a", "renamed to .deleted before it was read")
    assert [c.reason for c in contents(tmp_path, "b") if isinstance(c, Gone)] == [
        "deleted before it was read"
    ]


def test_holes_are_not_read_and_the_copy_has_them(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.mkdir()
    target.mkdir()
    path = source / "a"
    with path.open("wb") as file:
        file.write(b"begin")
        file.seek(5 << 20)
        file.write(b"middle")
        file.truncate(64 << 20)
    took: list[int] = []
    for content in contents(source, "a"):
        assert not isinstance(content, Gone)
        written = Target(target).copy("data/a", content, took.append)
    copy = target / "data" / "a"
    assert copy.read_bytes() == path.read_bytes()
    assert written.size == 64 << 20
    assert written.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert sum(took) < 1 << 20
    assert copy.stat().st_blocks * 512 < 1 << 20


@pytest.mark.parametrize("kind", ["link", "fifo", "socket", "folder", "device"])
def test_only_a_regular_file_is_opened(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a"
    if kind == "link":
        path.symlink_to("/etc/hostname")
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        with socket.socket(socket.AF_UNIX) as server:
            monkeypatch.chdir(tmp_path)  # the address of a socket is short
            server.bind("a")
    (content,) = contents(tmp_path, "a")
    assert isinstance(content, Gone)
    assert "not a file" in content.reason


def test_access_times_stay(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"a")
    os.utime(path, (1, 2_000_000_000))
    for content in contents(tmp_path, "a"):
        assert not isinstance(content, Gone)
        assert read(content) == b"a"
    assert path.stat().st_atime == 1


@pytest.mark.parametrize(
    "name", ["..", ".", "", "a/b", "a\nb", "a\x1b[2Jb", "a\x00", "\udcff", "a\u202eb", "a\x7f", "x" * 256]
)
def test_a_name_that_commands_a_terminal_or_leaves_its_folder_is_not_taken(name: str) -> None:
    assert trouble_with_name(name)


@pytest.mark.parametrize("name", ["orders-0", "__consumer_offsets-12", "a.b-0.5c1e-delete", "größe-0"])
def test_names_of_partitions_are_taken(name: str) -> None:
    assert trouble_with_name(name) is None


def test_settings_keep_everything_but_secrets() -> None:
    text = (
        "# ssl.key.password=old-one\n"
        "broker.id=1\n"
        "ssl.keystore.password = hunter2\n"
        "listener.name.sasl.plain.sasl.jaas.config=org.apache.Plain required \\\n"
        '   username="admin" \\\n'
        '   password="hunter3";\n'
        "zookeeper.connect=zk1:2181/kafka\n"
        "log.dirs=/a,/b\r\n"
        "empty.password=\n"
        "confluent.url=https://me:hunter4@host/\n"
    )
    shown = without_secrets(text)
    assert shown == (
        "# ssl.key.password=(redacted)\n"
        "broker.id=1\n"
        "ssl.keystore.password = (redacted)\n"
        "listener.name.sasl.plain.sasl.jaas.config=(redacted)\n"
        "zookeeper.connect=zk1:2181/kafka\n"
        "log.dirs=/a,/b\r\n"
        "empty.password=\n"
        "confluent.url=https://(redacted)@host/\n"
    )
    assert without_secrets(shown) == shown


def segment(folder: Path, base: int, *suffixes: str) -> None:
    for suffix in suffixes:
        (folder / f"{base:020}{suffix}").write_bytes(b"x")


def settles(folder: Path) -> bool:
    """Whether the files of a folder, opened as they are listed, are taken as those of one moment."""
    source = LocalSource(folder, "")
    try:
        list(source.contents(folder, source.listing(folder), settled=True))
    except Unsettled:
        return False
    return True


def test_a_segment_that_was_just_rolled_is_taken_with_its_indexes(tmp_path: Path) -> None:
    """A broker creates the indexes of a new segment behind its log: a copy without them would look damaged."""
    segment(tmp_path, 0, ".log", ".index", ".timeindex")
    assert settles(tmp_path)
    segment(tmp_path, 100, ".log")
    assert not settles(tmp_path)
    segment(tmp_path, 100, ".index")
    assert not settles(tmp_path)
    segment(tmp_path, 100, ".timeindex")
    assert settles(tmp_path)


def test_segments_without_time_indexes_are_settled_where_none_has_one(tmp_path: Path) -> None:
    segment(tmp_path, 0, ".log", ".index")  # before 0.10.1
    segment(tmp_path, 100, ".log", ".index")
    assert settles(tmp_path)


def test_a_swap_under_way_is_waited_for(tmp_path: Path) -> None:
    segment(tmp_path, 0, ".log", ".index", ".log.swap")
    assert not settles(tmp_path)
