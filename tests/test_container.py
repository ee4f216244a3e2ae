"""The steps of the Dockerfile, carried out in a system of Debian with the image's Python: no container runtime is needed.

Then kctl as the image's user, with the whole system for reading, as `docker run --read-only` has it. `make test-matrix` runs this.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.conftest import HERE, UNPACKED

pytestmark = [pytest.mark.slow, pytest.mark.matrix]
ROOT = HERE.parent
EXAMPLE = ROOT / "examples" / "unclean-election"
DEBIAN, PYTHON = "trixie", "3.13"  # the release that has the Python of the image
READ_ONLY = """
system=$1 user=$2; shift 2
mount --bind "$system" "$system" && mount -o remount,ro,bind "$system" &&
mount -t tmpfs tmpfs "$system/tmp" && mount -t tmpfs tmpfs "$system/dev/shm" && mount -t proc proc "$system/proc" &&
mount --bind "$EVIDENCE" "$system/evidence" && mount -o remount,ro,bind "$system/evidence" &&
exec chroot --userspec="$user:$user" "$system" env -i "HOME=$HOME" "PATH=$PATH" $SET sh -c 'cd "$HOME" && exec "$@"' sh "$@"
"""
Steps = Sequence[tuple[str, str]]


def steps() -> list[tuple[str, str]]:
    """The instructions of the Dockerfile and their arguments."""
    text = (ROOT / "Dockerfile").read_text("utf-8").replace("\\\n", "")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(line.split()[0], line.split(maxsplit=1)[1]) for line in lines]


def last(instruction: str) -> str:
    return [argument for name, argument in steps() if name == instruction][-1]


def inside(system: Path, command: str, directory: str = "/") -> None:
    """A command as root in the system."""
    index = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    subprocess.run(
        ["chroot", system, "sh", "-ec", f"cd {directory}; {command}"],
        check=True,
        env={"PATH": "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", **index},
    )


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `docker build` makes, but for the base: Debian's Python instead of the image's."""
    if os.getuid() != 0 or not shutil.which("debootstrap"):
        pytest.skip("needs root and debootstrap")
    base = UNPACKED.parent / f"system-{DEBIAN}-python"
    if not (base / "made").exists():
        shutil.rmtree(base, ignore_errors=True)
        include = "--include=python3-venv,ca-certificates"
        subprocess.run(["debootstrap", "--variant=minbase", include, DEBIAN, base], check=True)
        (base / "made").touch()
    system = tmp_path_factory.mktemp("image") / "system"
    subprocess.run(["cp", "-a", base, system], check=True)
    for name in ("/etc/resolv.conf", "/etc/hosts", "/etc/pip.conf", "/etc/ssl/certs/ca-certificates.crt"):
        if Path(name).exists():
            shutil.copy(name, system / name[1:])
    (system / "usr/local/bin/python").symlink_to("/usr/bin/python3")
    directory = "/"
    for name, argument in steps():
        if name == "FROM":
            assert argument.startswith(f"python:{PYTHON}-"), (
                "the base and the system of this test have one Python"
            )
        elif name == "WORKDIR":
            directory = argument
            (system / directory[1:]).mkdir(parents=True, exist_ok=True)
        elif name == "COPY" and not argument.startswith("--from="):  # both stages are one system here
            *sources, target = argument.split()
            for source in sources:
                at = system / directory[1:] / target
                if (ROOT / source).is_dir():
                    shutil.copytree(ROOT / source, at, ignore=shutil.ignore_patterns("__pycache__"))
                else:
                    shutil.copy(ROOT / source, at)
        elif name == "RUN":
            inside(system, argument, directory)
    shutil.rmtree(system / "source")
    (system / "evidence").mkdir()
    return system


def ran(image: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """A command in a container that is read-only but for /tmp."""
    path, *settings = last("ENV").split()
    environment = {
        **os.environ,
        "EVIDENCE": str(EXAMPLE),
        "HOME": last("WORKDIR"),
        "PATH": path.removeprefix("PATH=").replace("$PATH", "/usr/bin:/bin"),
        "SET": " ".join(settings),
    }
    unshare = [
        "/usr/bin/unshare",
        "--mount",
        "--net",
        "/bin/sh",
        "-c",
        READ_ONLY,
        "sh",
        str(image),
        last("USER"),
    ]
    environment["PATH"] += ":/usr/sbin:/sbin"
    return subprocess.run([*unshare, *words], capture_output=True, text=True, env=environment)


def test_a_read_only_container_without_a_network_answers(image: Path) -> None:
    who = ran(image, "sh", "-c", "id -u; touch /home/kctl/file")
    assert who.stdout == "10001\n" and "Read-only file system" in who.stderr
    health = ran(image, "sh", "-c", last("HEALTHCHECK").partition(" CMD ")[2])
    assert health.returncode == 0, health.stderr
    (entry,) = json.loads(last("ENTRYPOINT"))
    assert "Commands:" in ran(image, entry, *json.loads(last("CMD"))).stdout
    loss = ran(image, entry, "replica", "loss", "/evidence")
    assert loss.returncode == 5 and loss.stdout.count("\nloss\t") == 3, loss.stderr
    audit = ran(image, entry, "audit", "run", "/evidence", "--out", "/tmp/report", "--jobs", "2")
    assert audit.returncode == 5 and "Traceback" not in audit.stderr, audit.stderr
