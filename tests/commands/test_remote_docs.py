"""The pages about tiered storage: the diagram has the transitions there are, the runbooks run as written."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from formats.messages.remote_log_metadata import PartitionDeleteState, SegmentState
from kctl.findings import all_findings
from kctl.tier.metadata.remote_log_metadata_cache import PARTITION_DELETE_TRANSITIONS, SEGMENT_TRANSITIONS
from tests.commands.test_replica_docs import commands_of
from tests.conftest import HERE, kctl, recording

DOCS = HERE.parent / "docs"
STATES = DOCS / "tiered-storage-states.md"
WHOLE = DOCS / "runbooks" / "is-my-tier-whole.md"
WHICH = DOCS / "runbooks" / "which-object-holds-offset.md"


def test_the_page_of_states_has_every_transition_and_no_other() -> None:
    text = STATES.read_text(encoding="utf-8")
    found = set(re.findall(r"(?m)^\| (nothing|[A-Z_]+) \| ([A-Z]+_[A-Z_]+) \|", text))
    wanted = {
        ("nothing" if before is None else before.name, after.name)
        for table in (SEGMENT_TRANSITIONS, PARTITION_DELETE_TRANSITIONS)
        for after, befores in table.items()
        for before in befores
        if before is not after
    }
    assert found == wanted
    pictures = "".join(re.findall(r"```text\n(.*?)```", text, re.DOTALL))
    assert all(state.name in pictures for state in (*SegmentState, *PartitionDeleteState))


def test_the_pages_name_findings_that_there_are() -> None:
    codes = {one.code for one in all_findings()}
    for page in (STATES, WHOLE, WHICH):
        named = set(re.findall(r"`((?:remote|tier)-[a-z-]+)`", page.read_text(encoding="utf-8")))
        assert named <= codes, page


def run(page: Path, **folders: Path) -> int:
    ran = 0
    for spoken, status in commands_of(page):
        for name, folder in folders.items():
            spoken = spoken.replace(f"${name}", str(folder))
        ended = kctl(*shlex.split(spoken)[1:])
        assert ended.status == status, (spoken, ended.err, ended.out[-500:])
        ran += 1
    return ran


@pytest.mark.slow
def test_is_my_tier_whole_runs_as_written(tmp_path: Path) -> None:
    brokers, tier = recording("tier/a-healthy") / "brokers", recording("tier/f-damage") / "tier"
    assert run(WHOLE, EVIDENCE=brokers, TIER=tier, OUT=tmp_path) == 7
    assert (tmp_path / "cleanup.jsonl").read_text() and (tmp_path / "report" / "report.html").exists()


@pytest.mark.slow
def test_which_object_holds_an_offset_runs_as_written(tmp_path: Path) -> None:
    case = recording("tier/e-unclean-election")
    (copied,) = re.findall(
        r'cp "\$EVIDENCE"/(\S+) "\$OUT/00000000000000000080.log"', WHICH.read_text("utf-8")
    )
    (log,) = case.glob(copied)
    asked = kctl("remote", "lookup", case, "--topic", "sensor.raw", "--partition", "0", "--offset", "85")
    assert log.name.encode() in asked.out
    shutil.copy(log, tmp_path / "00000000000000000080.log")
    assert run(WHICH, EVIDENCE=case, OUT=tmp_path) == 10
