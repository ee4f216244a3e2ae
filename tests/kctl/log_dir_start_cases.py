"""Log directories as crashes, disks and hands leave them: a recorded partition, with one thing done to it."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from tests.conftest import recording

Damage = Callable[[Path], None]
DAMAGES: dict[str, Damage] = {}
OFFSETS = ("recovery-point-offset-checkpoint", "log-start-offset-checkpoint")


class Case(NamedTuple):
    """A log directory with one damaged partition in it."""

    name: str
    folder: Path


def damage(function: Damage) -> Damage:
    """Register a damage by the name of its function."""
    DAMAGES[function.__name__] = function
    return function


def make_cases(at: Path, source: Path, partition: str, points: tuple[int, ...]) -> Iterator[Case]:
    """Every damage of the partition: after a clean shutdown, and without one for each recovery point."""
    for name, function in DAMAGES.items():
        for state in ("clean", *(f"from-{point}" for point in points)):
            folder = at / f"{name}.{state}"
            folder.mkdir(parents=True)
            target = folder / partition
            shutil.copytree(source / partition, target)
            for path in target.iterdir():
                path.chmod(0o644)
            if state == "clean":
                (folder / ".kafka_cleanshutdown").touch()
            point = 0 if state == "clean" else int(state.removeprefix("from-"))
            write_offsets(folder, OFFSETS[0], partition, point)
            function(target)
            yield Case(folder.name, folder)


def random_cases(at: Path, source: Path, partition: str, seed: int, count: int) -> Iterator[Case]:
    """Copies of the partition with one to three random changes each."""
    for number in range(count):
        chosen = random.Random(f"{seed}.{number}")
        folder = at / f"{seed}.{number}"
        shutil.copytree(source / partition, folder / partition)
        for path in (folder / partition).iterdir():
            path.chmod(0o644)
        if chosen.random() < 0.3:
            (folder / ".kafka_cleanshutdown").touch()
        write_offsets(folder, OFFSETS[0], partition, chosen.choice([0, 60, 140, 210, 300]))
        if chosen.random() < 0.3:
            write_offsets(folder, OFFSETS[1], partition, chosen.choice([10, 72, 138, 247, 248, 400]))
        for _ in range(chosen.randint(1, 3)):
            change(chosen, folder / partition)
        yield Case(folder.name, folder)


def change(chosen: random.Random, folder: Path) -> None:
    """Change a file of the folder, most often a log."""
    files = sorted(path for path in folder.iterdir() if path.is_file())
    path = chosen.choices(files, [6 if path.suffix == ".log" else 1 for path in files])[0]
    data, kind = (
        bytearray(path.read_bytes()),
        chosen.choice(["flip", "header", "cut", "zero", "twice", "gone", "name"]),
    )
    at = chosen.randrange(len(data)) if data else 0
    if kind == "header" and path.suffix == ".log" and (batches := batches_of(path)):
        at = min(chosen.choice(batches)[0] + chosen.randrange(61), len(data) - 1)
    if kind in ("flip", "header") and data:
        data[at] ^= 1 << chosen.randrange(8)
    elif kind == "cut":
        del data[at:]
    elif kind == "zero":
        end = min(len(data), at + 600)
        data[at:end] = bytes(end - at)
    elif kind == "twice":
        data += data[:at]
    path.write_bytes(data)
    if kind == "gone":
        path.unlink()
    elif kind == "name":
        path.rename(f"{path}{chosen.choice(['.swap', '.cleaned', '.deleted'])}")


def write_offsets(folder: Path, name: str, partition: str, offset: int) -> None:
    """A checkpoint with one entry."""
    topic, _, number = partition.rpartition("-")
    (folder / name).write_text(f"0\n1\n{topic} {number} {offset}\n")


def logs(folder: Path) -> list[Path]:
    """The live segments, ascending."""
    return sorted(folder.glob("*.log"))


def flip(path: Path, at: int, mask: int = 0xFF) -> None:
    """Change a byte; negative positions count from the end."""
    data = bytearray(path.read_bytes())
    data[at] ^= mask
    path.write_bytes(data)


def batches_of(path: Path) -> list[tuple[int, int]]:
    """Position and size of each batch of a sound log."""
    data, at, found = path.read_bytes(), 0, []
    while at + 17 <= len(data):
        size = 12 + int.from_bytes(data[at + 8 : at + 12], "big")
        if size < 26 or at + size > len(data):
            break
        found.append((at, size))
        at += size
    return found


@damage
def nothing(folder: Path) -> None:
    """A healthy directory."""


@damage
def torn_tail(folder: Path) -> None:
    path = logs(folder)[-1]
    path.write_bytes(path.read_bytes()[:-7])


@damage
def torn_to_few_bytes(folder: Path) -> None:
    logs(folder)[-1].write_bytes(b"\0\0\0\0\0")


@damage
def zeros_behind(folder: Path) -> None:
    path = logs(folder)[-1]
    path.write_bytes(path.read_bytes() + bytes(4096))


@damage
def garbage_behind(folder: Path) -> None:
    path = logs(folder)[-1]
    path.write_bytes(path.read_bytes() + bytes(range(1, 251)) * 3)


@damage
def last_emptied(folder: Path) -> None:
    logs(folder)[-1].write_bytes(b"")


@damage
def last_nul(folder: Path) -> None:
    path = logs(folder)[-1]
    path.write_bytes(bytes(path.stat().st_size))


@damage
def first_emptied(folder: Path) -> None:
    logs(folder)[0].write_bytes(b"")


@damage
def first_nul(folder: Path) -> None:
    path = logs(folder)[0]
    path.write_bytes(bytes(path.stat().st_size))


@damage
def first_torn(folder: Path) -> None:
    path = logs(folder)[0]
    path.write_bytes(path.read_bytes()[:-9])


@damage
def payload_of_first(folder: Path) -> None:
    path = logs(folder)[0]
    at, size = batches_of(path)[1]
    flip(path, at + size - 3)


@damage
def payload_of_last(folder: Path) -> None:
    path = logs(folder)[-1]
    at, size = batches_of(path)[-1]
    flip(path, at + size - 3)


@damage
def size_of_first(folder: Path) -> None:
    path = logs(folder)[0]
    at, _ = batches_of(path)[1]
    flip(path, at + 10, 0x10)


@damage
def size_too_small(folder: Path) -> None:
    path = logs(folder)[0]
    at, _ = batches_of(path)[1]
    data = bytearray(path.read_bytes())
    data[at + 8 : at + 12] = (13).to_bytes(4, "big")
    path.write_bytes(data)


@damage
def size_too_small_in_last(folder: Path) -> None:
    path = logs(folder)[-1]
    at, _ = batches_of(path)[-1]
    data = bytearray(path.read_bytes())
    data[at + 8 : at + 12] = (3).to_bytes(4, "big")
    path.write_bytes(data)


@damage
def size_negative(folder: Path) -> None:
    path = logs(folder)[-1]
    at, _ = batches_of(path)[-1]
    flip(path, at + 8, 0x80)


@damage
def magic_of_first(folder: Path) -> None:
    path = logs(folder)[0]
    flip(path, batches_of(path)[1][0] + 16, 0x04)


@damage
def magic_becomes_old(folder: Path) -> None:
    path = logs(folder)[-1]
    flip(path, batches_of(path)[-1][0] + 16, 0x02)


@damage
def base_offset_of_first(folder: Path) -> None:
    path = logs(folder)[0]
    flip(path, batches_of(path)[1][0] + 7, 0x40)


@damage
def base_offset_huge(folder: Path) -> None:
    path = logs(folder)[-1]
    flip(path, batches_of(path)[-1][0] + 4, 0x20)


@damage
def epoch_in_batch(folder: Path) -> None:
    path = logs(folder)[-1]
    flip(path, batches_of(path)[-1][0] + 15, 0x08)


@damage
def batches_twice(folder: Path) -> None:
    path = logs(folder)[0]
    path.write_bytes(path.read_bytes() * 4)


@damage
def batches_twice_without_index(folder: Path) -> None:
    batches_twice(folder)
    logs(folder)[0].with_suffix(".index").unlink()


@damage
def all_indexes_gone(folder: Path) -> None:
    for path in (*folder.glob("*index"),):
        path.unlink()


@damage
def index_gone(folder: Path) -> None:
    logs(folder)[0].with_suffix(".index").unlink()


@damage
def last_index_gone(folder: Path) -> None:
    logs(folder)[-1].with_suffix(".index").unlink()


@damage
def index_gone_and_damaged(folder: Path) -> None:
    payload_of_first(folder)
    index_gone(folder)


@damage
def time_index_gone(folder: Path) -> None:
    for path in folder.glob("*.timeindex"):
        path.unlink()


@damage
def index_emptied(folder: Path) -> None:
    logs(folder)[0].with_suffix(".index").write_bytes(b"")


@damage
def last_index_emptied(folder: Path) -> None:
    logs(folder)[-1].with_suffix(".index").write_bytes(b"")


@damage
def index_nul(folder: Path) -> None:
    logs(folder)[0].with_suffix(".index").write_bytes(bytes(64))


@damage
def last_index_nul(folder: Path) -> None:
    logs(folder)[-1].with_suffix(".index").write_bytes(bytes(64))


@damage
def index_garbage(folder: Path) -> None:
    logs(folder)[0].with_suffix(".index").write_bytes(bytes(range(3, 67)))


@damage
def index_negative(folder: Path) -> None:
    logs(folder)[0].with_suffix(".index").write_bytes(b"\xff" * 16)


@damage
def index_odd(folder: Path) -> None:
    path = logs(folder)[0].with_suffix(".index")
    path.write_bytes(path.read_bytes() + b"\0\0\0")


@damage
def time_index_garbage(folder: Path) -> None:
    path = logs(folder)[0].with_suffix(".timeindex")
    if path.exists():
        path.write_bytes(b"\x7f" + bytes(11) + bytes(12))


@damage
def transaction_index_garbage(folder: Path) -> None:
    for path in folder.glob("*.txnindex"):
        path.write_bytes(bytes(2) + b"\xff" * 32)


@damage
def transaction_index_version(folder: Path) -> None:
    for path in folder.glob("*.txnindex"):
        flip(path, 0, 0x05)


@damage
def transaction_index_torn(folder: Path) -> None:
    for path in folder.glob("*.txnindex"):
        path.write_bytes(path.read_bytes()[:-5])


@damage
def orphan_index(folder: Path) -> None:
    (folder / "00000000000000009000.index").write_bytes(b"")
    (folder / "00000000000000009000.timeindex").write_bytes(b"")


@damage
def snapshots_nul(folder: Path) -> None:
    for path in folder.glob("*.snapshot"):
        path.write_bytes(bytes(path.stat().st_size))


@damage
def snapshots_emptied(folder: Path) -> None:
    for path in folder.glob("*.snapshot"):
        path.write_bytes(b"")


@damage
def snapshots_gone(folder: Path) -> None:
    for path in folder.glob("*.snapshot"):
        path.unlink()


@damage
def snapshot_stray(folder: Path) -> None:
    found = sorted(folder.glob("*.snapshot"))
    data = found[-1].read_bytes() if found else b""
    for offset in (3, 5, 99999):
        (folder / f"{offset:020d}.snapshot").write_bytes(data)


@damage
def epochs_nul(folder: Path) -> None:
    path = folder / "leader-epoch-checkpoint"
    if path.exists():
        path.write_bytes(bytes(path.stat().st_size))


@damage
def epochs_emptied(folder: Path) -> None:
    path = folder / "leader-epoch-checkpoint"
    if path.exists():
        path.write_bytes(b"")


@damage
def epochs_gone(folder: Path) -> None:
    (folder / "leader-epoch-checkpoint").unlink(missing_ok=True)


@damage
def epochs_ahead(folder: Path) -> None:
    if (folder / "leader-epoch-checkpoint").exists():
        (folder / "leader-epoch-checkpoint").write_text("0\n3\n0 0\n4 20\n9 99999\n")


@damage
def epochs_word(folder: Path) -> None:
    if (folder / "leader-epoch-checkpoint").exists():
        (folder / "leader-epoch-checkpoint").write_text("0\n1\nzero 0\n")


@damage
def epochs_counted_wrong(folder: Path) -> None:
    if (folder / "leader-epoch-checkpoint").exists():
        (folder / "leader-epoch-checkpoint").write_text("0\n2\n0 0\n")


@damage
def topic_id_nul(folder: Path) -> None:
    path = folder / "partition.metadata"
    if path.exists():
        path.write_bytes(bytes(path.stat().st_size))


@damage
def topic_id_emptied(folder: Path) -> None:
    path = folder / "partition.metadata"
    if path.exists():
        path.write_bytes(b"")


@damage
def topic_id_gone(folder: Path) -> None:
    (folder / "partition.metadata").unlink(missing_ok=True)


@damage
def topic_id_zero(folder: Path) -> None:
    if (folder / "partition.metadata").exists():
        (folder / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA")


@damage
def deleted_left(folder: Path) -> None:
    for suffix in (".log", ".index"):
        path = logs(folder)[0].with_suffix(suffix)
        shutil.copy(path, f"{path}.deleted")


@damage
def cleaned_left(folder: Path) -> None:
    for suffix in (".log", ".index"):
        path = logs(folder)[0].with_suffix(suffix)
        shutil.copy(path, f"{path}.cleaned")


@damage
def swap_beside(folder: Path) -> None:
    for suffix in (".log", ".index", ".timeindex"):
        path = logs(folder)[0].with_suffix(suffix)
        if path.exists():
            shutil.copy(path, f"{path}.swap")


@damage
def swap_of_two(folder: Path) -> None:
    """The cleaner joined two segments, and had renamed what it made."""
    one, *others = logs(folder)
    data = one.read_bytes() + (others[0].read_bytes() if others else b"")
    Path(f"{one}.swap").write_bytes(data)
    for suffix in (".index", ".timeindex"):
        Path(f"{one.with_suffix(suffix)}.swap").write_bytes(b"")


@damage
def swap_without_indexes(folder: Path) -> None:
    path = logs(folder)[0]
    shutil.copy(path, f"{path}.swap")


@damage
def swap_alone(folder: Path) -> None:
    """The cleaner had deleted the old segment already."""
    swap_beside(folder)
    for suffix in (".log", ".index", ".timeindex"):
        logs_of = folder / f"{0:020d}{suffix}"
        logs_of.unlink(missing_ok=True)


@damage
def swap_index_only(folder: Path) -> None:
    path = logs(folder)[0].with_suffix(".index")
    path.rename(f"{path}.swap")


@damage
def swap_and_cleaned(folder: Path) -> None:
    swap_beside(folder)
    shutil.copy(logs(folder)[0], f"{logs(folder)[0]}.cleaned")


@damage
def swap_torn(folder: Path) -> None:
    swap_beside(folder)
    path = Path(f"{logs(folder)[0]}.swap")
    path.write_bytes(path.read_bytes()[:-5])


@damage
def first_gone(folder: Path) -> None:
    for path in folder.glob(f"{logs(folder)[0].stem}.*"):
        path.unlink()


@damage
def middle_gone(folder: Path) -> None:
    found = logs(folder)
    for path in folder.glob(f"{found[len(found) // 2].stem}.*"):
        path.unlink()


@damage
def last_gone(folder: Path) -> None:
    for path in folder.glob(f"{logs(folder)[-1].stem}.*"):
        path.unlink()


@damage
def all_gone(folder: Path) -> None:
    for path in folder.iterdir():
        path.unlink()


@damage
def log_start_above_end(folder: Path) -> None:
    write_offsets(folder.parent, OFFSETS[1], folder.name, 99999)


@damage
def log_start_inside(folder: Path) -> None:
    write_offsets(folder.parent, OFFSETS[1], folder.name, 30)


@damage
def checkpoints_nul(folder: Path) -> None:
    for name in OFFSETS:
        (folder.parent / name).write_bytes(bytes(30))


@damage
def checkpoints_emptied(folder: Path) -> None:
    for name in OFFSETS:
        (folder.parent / name).write_bytes(b"")


@damage
def checkpoints_with_a_word(folder: Path) -> None:
    for name in OFFSETS:
        (folder.parent / name).write_text("0\n1\norders 0 many\n")


@damage
def recovery_point_above_end(folder: Path) -> None:
    write_offsets(folder.parent, OFFSETS[0], folder.name, 99999)
    torn_tail(folder)


@damage
def unknown_file(folder: Path) -> None:
    (folder / "notes.txt").write_text("mine")
    (folder / "sub").mkdir()


@damage
def misnamed_log(folder: Path) -> None:
    (folder / "copy.log").write_bytes(b"")


@damage
def short_name(folder: Path) -> None:
    (folder / "9000.log").write_bytes(b"")


@damage
def foreign_folder(folder: Path) -> None:
    (folder.parent / "lost+found").mkdir()


@damage
def named_future(folder: Path) -> None:
    folder.rename(folder.with_name(f"{folder.name}.{'ab' * 16}-future"))


@damage
def named_delete(folder: Path) -> None:
    folder.rename(folder.with_name(f"{folder.name}.{'ab' * 16}-delete"))


@damage
def named_delete_torn(folder: Path) -> None:
    torn_tail(folder)
    payload_of_first(folder)
    named_delete(folder)


def recorded(version: str, place: str) -> Path:
    """A log directory of a recording."""
    return recording(f"segments/{version}") / place
