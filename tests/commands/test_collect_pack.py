"""`kctl collect pack`: a copy in one file, read as the folder that it was made of."""

from __future__ import annotations

import io
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest
import zstandard

from kctl.collect.archive import Packed, local_folder, pack
from kctl.errors import Refused, UnreadableFile
from kctl.evidence.manifest import MANIFEST
from tests.commands.test_collect import BASE, broker, copy, essence
from tests.conftest import kctl, recording, rows, unchanged

__all__ = ["broker", "copy"]


def archive(path: Path, *members: tuple[str, bytes, bytes], first: bytes = b'{"kind":"collection",') -> Path:
    """A file with a manifest and these members: name, content, type."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for name, content, kind in (("manifest.jsonl", first, tarfile.REGTYPE), *members):
            info = tarfile.TarInfo(name)
            info.size, info.type, info.linkname = (
                len(content),
                kind,
                "/etc/passwd" if kind == tarfile.SYMTYPE else "",
            )
            tar.addfile(info, io.BytesIO(content))
    path.write_bytes(zstandard.compress(out.getvalue()))
    return path


@pytest.mark.slow
def test_a_packed_copy_is_evidence_as_its_folder_is(tmp_path: Path) -> None:
    source, made, packed = recording("incidents/unclean-2.8"), tmp_path / "copy", tmp_path / "copy.tar.zst"
    assert rows("collect", "--to", made, source).status == 0
    with unchanged(made):
        ran = rows("collect", "pack", made, "--to", packed)
    assert ran.status == 0, ran.err
    (row,) = ran.of("archive")
    assert row["size_in_bytes"] == packed.stat().st_size < row["bytes"]
    (of_folder,), (of_file,) = (rows("collect", "verify", path).of("summary") for path in (made, packed))
    assert of_file["errors"] == 0 and of_file["sha256"] == of_folder["sha256"]
    for command in (("replica", "loss"), ("replica", "compare"), ("state-log", "timeline")):
        of_folder, of_file = rows(*command, made), rows(*command, packed)
        assert essence(of_file) == essence(of_folder) and of_file.status == of_folder.status
        assert of_file.rows == of_folder.rows
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        assert "kctl-collect-" not in kctl("segment", "verify", "copy.tar.zst", columns=200).out.decode()


@pytest.mark.skipif(not shutil.which("tar") or not shutil.which("zstd"), reason="no tar or zstd")
def test_other_tools_unpack_it(copy: Path, tmp_path: Path) -> None:
    assert rows("collect", "pack", copy, "--to", tmp_path / "c.tar.zst").status == 0
    (tmp_path / "out").mkdir()
    subprocess.run(["tar", "--zstd", "-xf", tmp_path / "c.tar.zst", "-C", tmp_path / "out"], check=True)
    assert rows("collect", "verify", tmp_path / "out").status == 0


def test_nothing_is_overwritten_and_nothing_half_written_stays(copy: Path, tmp_path: Path) -> None:
    target = tmp_path / "c.tar.zst"
    target.write_bytes(b"x")
    assert rows("collect", "pack", copy, "--to", target).status == 4
    assert target.read_bytes() == b"x"
    assert rows("collect", "pack", copy, "--to", tmp_path / "c.tar").status == 2
    assert rows("collect", "pack", tmp_path, "--to", tmp_path / "d.tar.zst").status == 3
    assert rows("collect", "pack", copy, "--to", tmp_path / "nowhere" / "d.tar.zst").status == 3
    assert not list(tmp_path.glob("d.tar.zst*"))


def test_a_copy_that_was_interrupted_is_not_packed(copy: Path, tmp_path: Path) -> None:
    path, target = copy / MANIFEST, tmp_path / "c.tar.zst"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    with unchanged(copy):
        ran = rows("collect", "pack", copy, "--to", target)
    assert ran.status == 4 and "--resume" in ran.err
    assert not list(tmp_path.glob("c.tar.zst*"))


def test_a_copy_is_not_packed_into_itself(copy: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(copy)
    for folder in (copy, copy / "broker-7", tmp_path / "link"):
        with unchanged(copy):
            ran = rows("collect", "pack", copy, "--to", folder / "c.tar.zst")
        assert ran.status == 4 and "lies in the copy" in ran.err


def test_a_file_that_was_changed_is_named_as_it_is_packed(copy: Path, tmp_path: Path) -> None:
    log, gone = (copy / "broker-7" / "data" / topic / f"{BASE}.log" for topic in ("orders-0", "orders-1"))
    log.chmod(0o600)
    log.write_bytes(log.read_bytes() + b"x")
    gone.unlink()
    ran = rows("collect", "pack", copy, "--to", tmp_path / "c.tar.zst")
    assert ran.status == 5
    assert ran.codes() == ["manifest-file-changed", "manifest-file-missing"]


@pytest.mark.parametrize(
    "member",
    [
        ("../evil", b"x", tarfile.REGTYPE),
        ("/etc/evil", b"x", tarfile.REGTYPE),
        ("a/../../evil", b"x", tarfile.REGTYPE),
        ("link", b"", tarfile.SYMTYPE),
        ("pipe", b"", tarfile.FIFOTYPE),
        ("a\x1b[2J", b"x", tarfile.REGTYPE),
    ],
    ids=lambda member: repr(member[0]) if isinstance(member, tuple) else "",
)
def test_an_archive_with_anything_else_is_refused(member: tuple[str, bytes, bytes], tmp_path: Path) -> None:
    path = archive(tmp_path / "a.tar.zst", member)
    ran = kctl("segment", "verify", path)
    assert ran.status == 3 and "no file of a copy" in ran.err
    assert not (tmp_path.parent / "evil").exists()


def test_an_archive_that_is_cut_off_is_refused(copy: Path, tmp_path: Path) -> None:
    whole = tmp_path / "c.tar.zst"
    assert rows("collect", "pack", copy, "--to", whole).status == 0
    cut = tmp_path / "cut.tar.zst"
    cut.write_bytes(whole.read_bytes()[:-30])
    assert kctl("segment", "verify", cut).status == 3


def test_an_archive_for_which_there_is_no_room_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = archive(tmp_path / "a.tar.zst", ("big", bytes(range(1, 256)) * 9000, tarfile.REGTYPE))
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=(1 << 30) + 1000))
    ran = kctl("segment", "verify", path)
    assert ran.status == 3 and "no room" in ran.err


def test_zeros_take_no_room(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.tar.zst", ("broker-1/data/t-0/0.index", bytes(20 << 20), tarfile.REGTYPE))
    folder = Path(local_folder(str(path)))
    index = folder / "broker-1" / "data" / "t-0" / "0.index"
    assert index.stat().st_size == 20 << 20 and index.stat().st_blocks * 512 < 1 << 20


def test_another_file_of_that_name_is_what_it_was(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.tar.zst", first=b"something else")
    assert local_folder(str(path)) == str(path)
    (tmp_path / "b.tar.zst").write_bytes(b"no archive")
    assert local_folder(str(tmp_path / "b.tar.zst")) == str(tmp_path / "b.tar.zst")
    with pytest.raises(UnreadableFile):
        local_folder(str(archive(tmp_path / "c.tar.zst", ("..", b"", tarfile.REGTYPE))))


def test_an_archive_that_another_pack_writes_is_left_alone(copy: Path, tmp_path: Path) -> None:
    partial = tmp_path / "c.tar.zst.part"
    partial.write_bytes(b"of another process")
    ran = rows("collect", "pack", copy, "--to", tmp_path / "c.tar.zst")
    assert ran.status == 4 and "already exists" in ran.err
    assert partial.read_bytes() == b"of another process"


def test_an_archive_that_came_meanwhile_is_not_overwritten(copy: Path, tmp_path: Path) -> None:
    target = tmp_path / "c.tar.zst"
    packing = pack(copy, target, Packed())
    with pytest.MonkeyPatch.context() as patch:

        def late(*args: object) -> None:
            target.write_bytes(b"of another process")

        patch.setattr("kctl.collect.archive.os.fsync", late)
        with pytest.raises(Refused, match=r"c\.tar\.zst already exists"):
            list(packing)
    assert target.read_bytes() == b"of another process"
    assert not (tmp_path / "c.tar.zst.part").exists()
