"""What lies in the place of a file is never waited for, and never read without an end."""

from __future__ import annotations

import ast
import os
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from formats.log_dir.file_names import LEADER_EPOCHS, OFFSET_CHECKPOINTS, PARTITION_METADATA
from kctl.errors import reason_of
from kctl.files import descriptor_of, open_file, read_padded, read_whole
from tests.conftest import kctl
from tests.log_examples import LOG

ROOT = Path(__file__).parent.parent.parent
DEVICE = Path("/dev/zero")


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        here = os.getcwd()
        os.chdir(path.parent)  # the address of a socket has 107 bytes at most
        try:
            server.bind(path.name)
        finally:
            os.chdir(here)


def _sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.write(b"0\n")
        file.truncate(8 << 30)


PLACED: dict[str, Callable[[Path], None]] = {
    "fifo": os.mkfifo,
    "socket": _socket,
    "folder": lambda path: path.mkdir(),
    "loop": lambda path: path.symlink_to(path.name),
    "device": lambda path: path.symlink_to(DEVICE),
    "sparse": _sparse,
}


@pytest.fixture(autouse=True)
def _in_time() -> Iterator[None]:
    """An `open` that waits is ended by an exception."""
    signal.signal(signal.SIGALRM, lambda *_: pytest.fail("it waits"))
    signal.alarm(60)
    yield
    signal.alarm(0)


@pytest.mark.parametrize("kind", PLACED)
@pytest.mark.parametrize("follow", [False, True])
def test_only_a_regular_file_is_read_and_only_up_to_a_limit(kind: str, follow: bool, tmp_path: Path) -> None:
    path = tmp_path / "file"
    PLACED[kind](path)
    with pytest.raises(OSError) as error:
        read_whole(path, follow=follow)
    assert reason_of(error.value).startswith(
        {"sparse": "holds 8,589,934,592 bytes, and", "loop": "too many" if follow else "is a symbolic"}.get(
            kind, "is a "
        )
    )


def test_a_device_is_no_file() -> None:
    with pytest.raises(OSError, match="is a device, not a file"):
        descriptor_of(DEVICE)


def test_a_link_is_followed_where_the_user_named_it(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"text")
    (tmp_path / "link").symlink_to("file")
    assert read_whole(tmp_path / "link", follow=True) == b"text"
    with pytest.raises(OSError, match="is a symbolic link, not a file"):
        open_file(tmp_path / "link")


def test_a_file_that_takes_another_place_between_the_looks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(tmp_path / "fifo")
    regular = os.stat(__file__)
    monkeypatch.setattr(os, "stat", lambda *_, **__: regular)
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(OSError, match="is a named pipe, not a file"):
        descriptor_of(tmp_path / "fifo")
    assert len(os.listdir("/proc/self/fd")) == before


def test_an_index_is_read_without_the_padding_behind_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "index"
    path.write_bytes(b"\1" * 500)
    os.truncate(path, (1 << 30) + 4)
    data = read_padded(path, 4000)
    assert data == (b"\1" * 500).ljust(len(data), b"\0")
    assert 4000 - 408 < len(data) <= 4000 and ((1 << 30) + 4 - len(data)) % 408 == 0
    with path.open("r+b") as file:
        file.seek(1 << 29)
        file.write(b"\1")
    with pytest.raises(OSError, match="holds 1,073,741,828 bytes"):
        read_padded(path, 4000)


# --- evidence -----------------------------------------------------------------------------------------

FILES = [
    *(f"data/{name}" for name in (*OFFSET_CHECKPOINTS, "meta.properties")),
    *(f"data/orders-0/{name}" for name in (LEADER_EPOCHS, PARTITION_METADATA)),
    *(f"data/orders-0/{20 * '0'}{suffix}" for suffix in (".log", ".index", ".timeindex", ".txnindex")),
    f"data/orders-0/{19 * '0'}9.snapshot",
    "logs/server.log",
    "logs/server.log.2024-01-01-01.gz",
    "logs/state-change.log",
    "logs/server.properties",
    "znodes.jsonl",
    "znodes.jsonl.gz",
]
COMMANDS = (
    ["segment", "verify"],
    ["replica", "compare"],
    ["replica", "loss"],
    ["state-log", "timeline"],
    ["epoch", "show"],
    ["transactions", "hanging"],
    ["offsets", "list"],
    ["checkpoint", "dump"],
    ["segment", "rebuild", "--check"],
)


def evidence(folder: Path) -> Path:
    replica = folder / "data" / "orders-0"
    replica.mkdir(parents=True)
    (folder / "logs").mkdir()
    (replica / f"{20 * '0'}.log").write_bytes(LOG)
    (replica / f"{20 * '0'}.index").write_bytes(bytes(8))
    (replica / PARTITION_METADATA).write_text("version: 0\ntopic_id: AAAAAAAAQACAAAAAAAAAAQ\n")
    (folder / "data" / "meta.properties").write_text("version=0\nbroker.id=1\n")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("kind", PLACED)
@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_no_command_waits_for_what_lies_in_the_place_of_a_file(
    arguments: list[str], kind: str, tmp_path: Path
) -> None:
    """The files of one kind of place lie together: what each command says of them differs, but it ends and is no bug."""
    folder = evidence(tmp_path / "evidence")
    for name in FILES:
        if kind == "sparse" and ".log" in name:
            continue  # logs have no limit, and take their time
        path = folder / name
        path.unlink(missing_ok=True)
        PLACED[kind](path)
    ran = kctl(*arguments, str(folder), "--output", "jsonl")
    assert ran.status in (0, 2, 3, 5), ran.err


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["fifo", "device", "sparse"])
@pytest.mark.parametrize(
    "name", ["replication-offset-checkpoint", "meta.properties", PARTITION_METADATA, LEADER_EPOCHS]
)
def test_what_lies_in_the_place_of_one_file_is_a_finding(name: str, kind: str, tmp_path: Path) -> None:
    folder = evidence(tmp_path / "evidence")
    path = next(folder / file for file in FILES if file.endswith(f"/{name}"))
    path.unlink(missing_ok=True)
    PLACED[kind](path)
    ran = kctl("segment", "verify", str(folder), "--output", "jsonl")
    assert name.encode() in ran.out, ran.out


@pytest.mark.parametrize("kind", ["fifo", "socket", "folder", "loop", "device", "sparse"])
@pytest.mark.parametrize(
    "arguments",
    [
        ["topic", "list", "--snapshot"],
        ["replica", "simulate"],
        ["segment", "dump"],
        ["state-log", "timeline"],
        ["state-log", "explain"],
        ["remote", "audit", "--layout"],
    ],
    ids=" ".join,
)
def test_a_file_that_was_named_is_refused_in_a_sentence(
    arguments: list[str], kind: str, tmp_path: Path
) -> None:
    PLACED[kind](tmp_path / "file")
    line = ":1" if arguments[-1] == "explain" else ""
    ran = kctl(*arguments, f"{tmp_path / 'file'}{line}")
    assert ran.status in (2, 3, 5), ran.out
    assert ran.err.strip() if ran.status != 5 else b"finding" in ran.out


@pytest.mark.parametrize("kind", PLACED)
def test_a_settings_file_that_is_none(kind: str, tmp_path: Path) -> None:
    PLACED[kind](tmp_path / "config.toml")
    ran = kctl("topic", "list", env={"KCTL_CONFIG": str(tmp_path / "config.toml")})
    assert ran.status in (2, 3) and "settings file" in ran.err


# --- everything is opened here ------------------------------------------------------------------------

# What is written by kctl itself, in its own folder, or read from its own package.
OWN = {
    "kctl/files.py",
    "kctl/audit/resume.py",  # by the descriptor of its folder, and checked there
    "kctl/audit/run.py",  # the probe that it wrote itself
    "kctl/report/page.py",  # the package's style sheet
    "kctl/api/values.py",  # the same
    "kctl/stores/mirror.py",  # what it wrote itself, in a folder of its own
    "kctl/text_logs/containers.py",  # the same
    "kctl/replication/scenario.py",  # the package's scenarios
    "kctl/wire/protocol/messages.py",  # the package's messages
    "kctl/changes/kept_records.py",  # what it wrote itself, beside the journal
    "kctl/collect/local_source.py",  # a source, each byte once, without its time of access
    "kctl/collect/archive.py",  # the copy that it packs
    "kctl/evidence/manifest.py",  # the manifest that it goes on with
    "kctl/collect/remote_source.py",  # the stream of a program
    "kctl/collect/writing.py",  # what it wrote itself
    "kctl/collect/collection.py",  # the same
    "kctl/spark/session.py",  # what Spark wrote into a folder made for it
}
MODULES = {"os", "io", "gzip", "bz2", "lzma", "tarfile", "zipfile", "codecs"}
READING = {"read_text", "read_bytes", "fromfile", "memmap"}
WRITING = {"O_WRONLY", "O_RDWR", "devnull", "O_CREAT", "O_DIRECTORY", "aside"}


def openings(text: str) -> Iterator[int]:
    """The lines that open a file for reading in another way than by `kctl.files`."""
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Call):
            continue
        function = node.func
        modes = [a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
        parts = [part for argument in node.args for part in ast.walk(argument)]
        names = {part.attr for part in parts if isinstance(part, ast.Attribute)}
        names |= {part.id for part in parts if isinstance(part, ast.Name)}
        if isinstance(function, ast.Name) and function.id == "open":
            yield node.lineno
        elif isinstance(function, ast.Attribute):
            module = function.value.id if isinstance(function.value, ast.Name) else ""
            if function.attr in READING and module != "files":
                yield node.lineno
            elif function.attr == "open" and module in MODULES:
                if not names & WRITING:
                    yield node.lineno
            elif function.attr == "open" and any(mode[:1] == "r" for mode in modes):
                yield node.lineno


def test_openings_are_seen() -> None:
    seen = 'open(p)\np.open("rb")\np.read_text()\ngzip.open(p)\nos.open(p, os.O_RDONLY)\nnp.fromfile(p)'
    assert list(openings(seen)) == [1, 2, 3, 4, 5, 6]
    assert not list(openings('p.open("xb")\nstore.open(key)\nos.open(p, os.O_WRONLY | os.O_CREAT)'))


@pytest.mark.slow
def test_every_file_is_opened_in_one_place() -> None:
    paths = [path for package in ("formats", "kctl", "commands") for path in (ROOT / package).rglob("*.py")]
    found = {
        str(path.relative_to(ROOT)): lines for path in paths if (lines := list(openings(path.read_text())))
    }
    assert found.keys() - OWN == set(), found
    assert OWN - found.keys() - {"kctl/files.py"} == set(), "what opens nothing any more needs no exception"
