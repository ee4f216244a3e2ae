"""`kctl collect` from other machines: the same copy as from this one, and nothing that a hostile one could do."""

from __future__ import annotations

import io
import os
import shlex
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from kctl.collect.shell import address_of
from kctl.collect.tar_stream import BadTar, TarStream
from kctl.errors import BadValue
from tests.commands.test_collect import BASE, broker, left_out, manifest, paths, verified
from tests.conftest import Ran, digest, recording, rows, unchanged
from tests.kctl.collect.hosts import sshd, sshd_program, stand_ins, user
from tests.log_examples import LOG

__all__ = ["broker"]


@pytest.fixture
def docker(tmp_path: Path) -> dict[str, str]:
    return stand_ins(tmp_path / "bin")


def same(copy: Path, other: Path) -> None:
    """Two copies hold the same files, but for their manifests."""
    assert paths(copy) == paths(other)
    for path in paths(copy) - {"manifest.jsonl"}:
        assert (copy / path).read_bytes() == (other / path).read_bytes(), path


SOURCES = ["docker://b7", "k8s://kafka/kafka-0", "k8s://kafka/kafka-0/kafka"]


@pytest.mark.parametrize("source", SOURCES)
def test_a_copy_out_of_a_container_is_that_of_its_folder(
    source: str, broker: Path, docker: dict[str, str], tmp_path: Path
) -> None:
    with (broker / "data" / "orders-0" / f"{BASE}.index").open("wb") as index:
        index.truncate(10 << 20)
    assert rows("collect", "--to", tmp_path / "here", broker).status == 0
    with unchanged(broker):
        ran = rows("collect", "--to", tmp_path / "there", f"{source}{broker}", env=docker)
    assert ran.status == 0, ran.err
    same(tmp_path / "there", tmp_path / "here")
    assert verified(tmp_path / "there") == (0, [])
    (done,) = ran.of("collected")
    assert done["broker_id"] == 7 and done["source"] == f"{source}{broker}"
    assert abs(done["clock_offset_ms"]) < 2000
    assert f"{source}{broker}/data/orders-0/{BASE}.log" in {
        line.get("source") for line in manifest(tmp_path / "there")
    }
    assert (tmp_path / "there" / "broker-7" / "data" / "orders-0" / f"{BASE}.index").stat().st_blocks < 1000


@pytest.mark.slow
@pytest.mark.skipif(not sshd_program(), reason="no sshd (Debian: openssh-server)")
def test_a_copy_over_ssh_is_that_of_the_folder(tmp_path: Path) -> None:
    source = recording("incidents/unclean-2.8")
    assert rows("collect", "--to", tmp_path / "here", source).status == 0
    with sshd(tmp_path / "sshd") as (port, env), unchanged(source):
        ran = rows("collect", "--to", tmp_path / "there", f"ssh://{user()}@127.0.0.1:{port}{source}", env=env)
        assert ran.status == 0, ran.err
        gone = rows("collect", "--to", tmp_path / "gone", f"ssh://127.0.0.1:{port}/nowhere", env=env)
        assert gone.status == 3 and "/nowhere" in gone.err
    same(tmp_path / "there", tmp_path / "here")
    assert verified(tmp_path / "there") == (0, [])
    refused = rows("collect", "--to", tmp_path / "gone", f"ssh://127.0.0.1:{port}{source}", env=env)
    assert refused.status == 3 and "onnection refused" in refused.err


@pytest.mark.skipif(not shutil.which("busybox"), reason="no busybox (Debian: busybox)")
def test_a_host_with_busybox_alone(broker: Path, tmp_path: Path) -> None:
    bin_ = tmp_path / "bin"
    env = stand_ins(bin_, shell=f"env PATH={tmp_path}/applets {tmp_path}/applets/sh")
    (tmp_path / "applets").mkdir()
    for applet in ("sh", "find", "stat", "tar", "dd", "date", "printf", "test", "wc"):
        (tmp_path / "applets" / applet).symlink_to(shutil.which("busybox") or "")
    assert rows("collect", "--to", tmp_path / "here", broker).status == 0
    ran = rows("collect", "--to", tmp_path / "there", f"docker://b7{broker}", env=env)
    assert ran.status == 0, ran.err
    same(tmp_path / "there", tmp_path / "here")


def test_settings_of_another_machine_name_its_log_directories(
    broker: Path, docker: dict[str, str], tmp_path: Path
) -> None:
    settings = broker / "config" / "server.properties"
    settings.write_text(f"broker.id=7\nlog.dirs={broker}/data\n")
    ran = rows("collect", "--to", tmp_path / "copy", f"docker://b7{settings}", env=docker)
    assert ran.status == 0, ran.err
    assert {"broker-7/server.properties", f"broker-7/data/orders-0/{BASE}.log"} <= paths(tmp_path / "copy")


def test_what_cannot_be_reached_is_named_and_the_rest_is_copied(
    broker: Path, docker: dict[str, str], tmp_path: Path
) -> None:
    ran = rows("collect", "--to", tmp_path / "copy", "docker://b8/nothing", broker, env=docker)
    assert ran.status == 3 and "/nothing" in ran.err
    lost, *_ = [row for row in ran.of("collected") if row["incomplete"]]
    assert lost["source"] == "docker://b8/nothing"
    assert verified(tmp_path / "copy") == (0, [])


@pytest.mark.skipif(not shutil.which("setpriv"), reason="no setpriv (Debian: util-linux)")
@pytest.mark.parametrize("closed", [f"data/orders-0/{BASE}.log", "data/orders-0", "data", "logs"])
@pytest.mark.parametrize("is_remote", [True, False], ids=["remote", "local"])
def test_what_may_not_be_read_there_is_an_error_and_the_rest_is_copied(
    is_remote: bool, closed: str, broker: Path, tmp_path: Path
) -> None:
    rights = "-dac_override,-dac_read_search"
    lesser = f"setpriv --bounding-set {rights} --inh-caps {rights}" if os.geteuid() == 0 else "env"
    (broker / closed).chmod(0)
    line = [*shlex.split(lesser), sys.executable, "-m", "commands"]
    source, env = str(broker), {}
    if is_remote:
        env = stand_ins(tmp_path / "bin", shell=f"{lesser} sh")
        source, line = f"docker://b7{broker}", line[-3:]
    try:
        ran = subprocess.run(
            [*line, "collect", "--to", tmp_path / "copy", source],
            cwd=Path(__file__).parents[2], env={**os.environ, **env}, capture_output=True, text=True,
        )  # fmt: skip
    finally:
        (broker / closed).chmod(0o755)
    assert ran.returncode == 3, ran.stderr
    assert closed in ran.stderr
    lines = manifest(tmp_path / "copy")
    assert lines[-1]["kind"] == "seal" and [line for line in lines if line.get("incomplete")]
    other = f"broker-7/data/orders-1/{BASE}.log" if closed != "data" else "logs/server.log"
    assert any(path.endswith(other) for path in paths(tmp_path / "copy")), paths(tmp_path / "copy")


@pytest.mark.parametrize(
    "url",
    [
        "ssh://-oProxyCommand=x/data", "ssh://host;reboot/data", "ssh://host", "ssh:///data", "ssh://ho st/data",
        "docker://-v/data", "docker://c", "docker://a b/data", "k8s://ns/pod", "k8s://-n/pod/data", "k8s://ns/--x/data",
    ],
)  # fmt: skip
def test_an_address_that_is_none_is_refused(url: str, tmp_path: Path) -> None:
    with pytest.raises(BadValue):
        address_of(url)
    assert rows("collect", "--to", tmp_path / "copy", url).status == 2
    assert not (tmp_path / "copy").exists()


def test_names_that_a_shell_would_run_are_names(broker: Path, docker: dict[str, str], tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    odd = tmp_path / f'it\'s $(touch {marker.name}); `touch {marker.name}` "&" *'
    shutil.copytree(broker, odd)
    (odd / "data" / "orders-0" / "$(touch x);'").write_bytes(b"x")
    (odd / "data" / "orders-0" / "-rf").write_bytes(b"x")
    before = digest(tmp_path / odd.name)
    ran = rows("collect", "--to", tmp_path / "copy", f"docker://b7{odd}", env=docker)
    assert ran.status == 0, ran.err
    assert not marker.exists() and digest(odd) == before
    assert {"broker-7/data/orders-0/$(touch x);'", "broker-7/data/orders-0/-rf"} <= paths(tmp_path / "copy")


# --- hosts that lie -----------------------------------------------------------------------------------

LIAR = """
import re, subprocess, sys
shell = subprocess.Popen(["sh"], stdin=subprocess.PIPE)
for line in sys.stdin.buffer:
    if b" -cf - " in line and b"orders-0" in line:
        sys.stdout.buffer.write(open({tar!r}, "rb").read())
        if {status}:
            sys.exit({status})
        mark = re.search(rb"kctl-[0-9a-f]+", line)[0]
        sys.stdout.buffer.write(b"\\n" + mark + b" 0\\n")
        sys.stdout.buffer.flush()
    else:
        shell.stdin.write(line)
        shell.stdin.flush()
"""


def liar(tmp_path: Path, tar: bytes, status: int = 0) -> dict[str, str]:
    """An environment whose docker answers with this tar where the files of orders-0 are asked for."""
    (tmp_path / "lie.tar").write_bytes(tar)
    (tmp_path / "liar.py").write_text(LIAR.format(tar=str(tmp_path / "lie.tar"), status=status))
    return stand_ins(tmp_path / "bin", shell=shlex.join([sys.executable, str(tmp_path / "liar.py")]))


def member(name: str, data: bytes = b"", **attributes: object) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.size = len(data)
    for key, value in attributes.items():
        setattr(info, key, value)
    return info, data


def tar_of(*members: tuple[tarfile.TarInfo, bytes], format: int = tarfile.GNU_FORMAT) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=format) as tar:
        for info, data in members:
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def lied_to(tmp_path: Path, broker: Path, tar: bytes, status: int = 0) -> Ran:
    env = liar(tmp_path, tar, status)
    outside = set(tmp_path.rglob("*"))
    ran = rows("collect", "--to", tmp_path / "copy", f"docker://b7{broker}", env=env)
    new = set(tmp_path.rglob("*")) - outside
    assert all(path.is_relative_to(tmp_path / "copy") for path in new), new
    assert all(
        path.is_dir() or (path.is_file() and not path.is_symlink()) for path in (tmp_path / "copy").rglob("*")
    )
    return ran


def test_a_tar_with_other_members_than_asked_for_writes_none_of_them(broker: Path, tmp_path: Path) -> None:
    tar = tar_of(
        member("../../../evil", b"x"),
        member("/etc/cron.d/evil", b"x"),
        member("./../evil", b"x"),
        member(f"./{BASE}.log", type=tarfile.SYMTYPE, linkname="/etc/passwd"),
        member("./leader-epoch-checkpoint", type=tarfile.FIFOTYPE),
        member("./more", b"x"),
        member("./x" * 50, b"x"),
    )
    ran = lied_to(tmp_path, broker, tar)
    assert ran.status == 3, ran.err  # they are there, and tar did not give them
    assert not [path for path in paths(tmp_path / "copy") if "orders-0" in path]
    assert left_out(tmp_path / "copy")[f"broker-7/data/orders-0/{BASE}.log"] == "tar could not read it there"


def test_a_member_that_comes_twice_is_taken_once(broker: Path, tmp_path: Path) -> None:
    twice = [member(f"./{BASE}.log", LOG), member(f"./{BASE}.log", b"other")]
    assert lied_to(tmp_path, broker, tar_of(*twice)).status == 3  # without the epochs, which are there
    assert (tmp_path / "copy" / "broker-7" / "data" / "orders-0" / f"{BASE}.log").read_bytes() == LOG


@pytest.mark.parametrize("cut", [300, 512 + 100, 700])
def test_a_source_that_breaks_off_leaves_what_was_copied(cut: int, broker: Path, tmp_path: Path) -> None:
    tar = tar_of(member("./leader-epoch-checkpoint", b"0\n1\n0 0\n"), member(f"./{BASE}.log", LOG))
    ran = lied_to(tmp_path, broker, tar[:cut], status=255)
    assert ran.status == 3
    (done,) = ran.of("collected")
    assert done["incomplete"]
    lines = manifest(tmp_path / "copy")
    planned = {line["path"] for line in lines if line["kind"] == "planned"}
    whole = {line["path"] for line in lines if line["kind"] == "whole"}
    assert "broker-7/data/orders-0" in planned - whole
    assert "broker-7/data/clicks-0" in whole
    assert verified(tmp_path / "copy") == (0, [])
    ran = rows(
        "collect",
        "--to",
        tmp_path / "copy",
        "--resume",
        f"docker://b7{broker}",
        env=stand_ins(tmp_path / "bin"),
    )
    assert ran.status == 0, ran.err
    assert (tmp_path / "copy" / "broker-7" / "data" / "orders-0" / f"{BASE}.log").read_bytes() == LOG
    assert verified(tmp_path / "copy") == (0, [])


def test_a_file_that_is_said_to_be_huge_is_taken_up_to_its_listed_size(broker: Path, tmp_path: Path) -> None:
    info, _ = member("./leader-epoch-checkpoint")
    info.size = 1 << 40
    ran = lied_to(tmp_path, broker, info.tobuf(tarfile.GNU_FORMAT) + b"0\n1\n0 0\n".ljust(4096, b"x"))
    assert ran.status == 3
    assert sum(path.stat().st_size for path in (tmp_path / "copy").rglob("*") if path.is_file()) < 1 << 20


# --- the tar itself -----------------------------------------------------------------------------------


def read_tar(data: bytes, step: int = 1 << 20) -> list[tuple[str, bytes]]:
    stream = io.BytesIO(data)
    tar = TarStream(lambda most: stream.read(min(most, step)))
    found = []
    for one in tar.members():
        stored = b"".join(tar.data())
        content = bytearray(one.size)
        at = 0
        for offset, length in one.runs:
            content[offset : offset + length] = stored[at : at + length]
            at += length
        found.append((one.name, bytes(content)))
    return found


@pytest.mark.parametrize("format", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
@pytest.mark.parametrize("step", [1, 511, 1 << 20])
def test_members_of_every_format(format: int, step: int) -> None:
    names = ["a", "x" * 90 + "/" + "y" * 80]
    names += [] if format == tarfile.USTAR_FORMAT else ["z" * 200, "größe"]
    content = [(name, name.encode() * 40) for name in names] + [("empty", b"")]
    assert read_tar(tar_of(*(member(*one) for one in content), format=format), step) == content


@pytest.mark.skipif(not shutil.which("tar"), reason="no tar")
def test_a_sparse_file_as_gnu_tar_writes_it(tmp_path: Path) -> None:
    import subprocess

    path = tmp_path / "sparse"
    with path.open("wb") as file:
        for at in range(40):
            file.seek(at << 20)
            file.write(b"%d" % at)
        file.truncate(50 << 20)
    command = ["tar", "-cf", "-", "--format=gnu", "-S", "-C", str(tmp_path), "sparse"]
    ran = subprocess.run(command, capture_output=True, check=False)
    if ran.returncode:
        pytest.skip("this tar knows no holes")
    assert len(ran.stdout) < 1 << 20
    assert read_tar(ran.stdout) == [("sparse", path.read_bytes())]


def damaged_tars() -> Iterator[bytes]:
    whole = bytearray(tar_of(member("a", b"x" * 600), member("z" * 200, b"y")))
    for position in range(0, 520, 7):
        yield bytes(whole[:position] + bytes([whole[position] ^ 0x55]) + whole[position + 1 :])
    for length in range(0, len(whole), 97):
        yield bytes(whole[:length])
    info, _ = member("a")
    for size in (1 << 40, 1 << 62):
        info.size, info.type = size, tarfile.XHDTYPE
        yield info.tobuf(tarfile.GNU_FORMAT) + bytes(2048)
        info.type = tarfile.GNUTYPE_LONGNAME
        yield info.tobuf(tarfile.GNU_FORMAT) + bytes(2048)


def test_a_damaged_tar_ends_in_a_sentence() -> None:
    ends = 0
    for data in damaged_tars():
        try:
            read_tar(data)
        except BadTar:
            ends += 1
    assert ends > 50
