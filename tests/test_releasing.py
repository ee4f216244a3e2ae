"""What a release is made of: what the standalone folder may need of a host, its launcher, and the version that a release writes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from releasing.needs import OF_COMPILER, compiled, faults
from releasing.version import of_changelog, of_module
from tests.conftest import HERE

RELEASING = HERE.parent / "releasing"
OPEN = {"GLIBC": "9.0", **dict.fromkeys(OF_COMPILER, "99.0")}


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """A folder with one compiled module of a library that every test environment has."""
    if not shutil.which("readelf"):
        pytest.skip("no readelf (binutils)")
    import msgspec._core

    (tmp_path / "lib").mkdir()
    shutil.copy(msgspec._core.__file__, tmp_path / "lib" / "module.so")
    (tmp_path / "lib" / "text.so").write_text("not compiled")
    (tmp_path / "link.so").symlink_to(tmp_path / "lib" / "module.so")
    return tmp_path


def test_a_glibc_above_the_floor_is_found(bundle: Path) -> None:
    assert [path.name for path in compiled(bundle)] == ["module.so"]
    assert faults(bundle, OPEN) == []
    (fault, *_) = faults(bundle, {**OPEN, "GLIBC": "2.0"})
    assert fault.startswith(f"{bundle}/lib/module.so needs GLIBC 2.") and fault.endswith("above 2.0")
    assert faults(bundle / "none", OPEN) == [f"{bundle}/none: no compiled code is there"]


def test_a_library_that_no_host_must_have_is_found(bundle: Path) -> None:
    source = bundle / "lib" / "module.so"
    data = source.read_bytes()
    assert b"libc.so.6\0" in data
    source.write_bytes(data.replace(b"libc.so.6\0", b"libq.so.6\0"))
    assert f"{source} needs libq.so.6, which is not in the folder" in faults(bundle, OPEN)
    (bundle / "libq.so.6").symlink_to("lib/module.so")
    assert faults(bundle, OPEN) == []


def test_the_launcher_takes_the_python_beside_it_and_nothing_of_the_hosts(tmp_path: Path) -> None:
    folder = tmp_path / "with a space" / "bin"
    folder.mkdir(parents=True)
    shutil.copy(RELEASING / "kctl", folder / "kctl")
    python = folder / "python3"
    python.write_text(
        f'#!/bin/sh\necho "$SSL_CERT_FILE" > {tmp_path}/authorities\nexec {sys.executable} "$@"\n'
    )
    python.chmod(0o755)
    link = tmp_path / "kctl"
    link.symlink_to(folder / "kctl")
    few = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": "/nowhere",
        "PYTHONHOME": "/nowhere",
        "SSL_CERT_FILE": "/mine",
    }
    ran = subprocess.run([link, "replica", "loss"], capture_output=True, text=True, env=few)
    assert ran.returncode == 2 and "`kctl replica loss --help`" in ran.stderr, ran.stderr
    assert (tmp_path / "authorities").read_text() == "/mine\n"


def test_a_release_moves_the_version_the_date_and_what_was_unreleased() -> None:
    module = (HERE.parent / "kctl" / "version.py").read_text("utf-8")
    values: dict[str, object] = {}
    exec(of_module(module, "7.8.9", "2031-02-03"), values)
    assert (values["__version__"], values["__date__"]) == ("7.8.9", "2031-02-03")
    before = (HERE.parent / "CHANGELOG.md").read_text("utf-8")
    after = of_changelog(before, "7.8.9", "2031-02-03")
    assert after.replace("\n## 7.8.9 - 2031-02-03\n", "", 1) == before
    assert "## Unreleased\n\n## 7.8.9 - 2031-02-03\n" in after
    with pytest.raises(ValueError, match="nothing under"):
        of_changelog(after, "7.9.0", "2031-02-04")
