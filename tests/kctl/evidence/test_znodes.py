"""Znode exports with and without a chroot, and lines that are no znode."""

import json
from pathlib import Path

import pytest

from kctl.errors import UnreadableFile
from kctl.evidence.znodes import greatest_zxid, read_znodes
from tests.conftest import recording


def test_the_chroot_comes_off() -> None:
    with_chroot = read_znodes(recording("tier/a-healthy") / "znodes.jsonl")
    without = read_znodes(recording("incidents/unclean-2.8") / "moments/after/znodes.jsonl")
    for znodes in (with_chroot, without):
        assert "/brokers/ids/1" in znodes
        assert znodes["/brokers/ids/1"].ephemeral_owner != 0
        assert znodes["/brokers/ids/1"].path == "/brokers/ids/1"
        assert json.loads(znodes["/controller_epoch"].data or b"")


def test_the_greatest_zxid_grows_from_moment_to_moment() -> None:
    moments = recording("incidents/unclean-2.8") / "moments"
    before, during, after = (
        greatest_zxid(moments / m / "znodes.jsonl") for m in ("before", "during", "after")
    )
    assert 0 < before < during < after


@pytest.mark.parametrize(
    "line",
    ["{", "[]", '"x"', "{}", '{"path": 3}', '{"path": "/a", "data": "!"}', '{"path": "/a", "czxid": "x"}'],
)
def test_a_line_that_is_no_znode_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "znodes.jsonl"
    path.write_text('{"path": "/", "data": null}\n' + line + "\n")
    with pytest.raises(UnreadableFile, match="line 2"):
        read_znodes(path)
