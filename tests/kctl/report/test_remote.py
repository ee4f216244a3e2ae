"""The picture of a tiered partition: segments, gaps, faults, and objects that no metadata know."""

from typing import Any
from xml.etree import ElementTree

from kctl.report.remote import tier_picture

PARTITION: dict[str, Any] = {
    "topic": "orders", "partition": 2, "topic_id": "t", "outside_segments": [], "gaps": [[40, 80]], "leader_epochs": [[0, 0]],
    "log_start_offset": 0, "local_log_start_offset": 100, "log_end_offset": 120,
}  # fmt: skip


def segment(name: str, start: int, end: int) -> dict[str, Any]:
    return {"remote_log_segment_id": name, "state": "COPY_SEGMENT_FINISHED", "start_offset": start, "end_offset": end - 1,
            "segment_leader_epochs": [[0, start]]}  # fmt: skip


def finding(
    code: str, segment_id: str, base_offset: int | None, last_offset: int | None = None
) -> dict[str, Any]:
    return {
        "code": code,
        "remote_log_segment_id": segment_id,
        "base_offset": base_offset,
        "last_offset": last_offset,
    }


def test_gaps_faults_and_orphans_are_drawn_and_told() -> None:
    findings = [
        finding("remote-object-size", "a", 0, 39), finding("remote-log-offsets", "a", None),
        finding("remote-object-orphan", "lost", 200),
    ]  # fmt: skip
    root = ElementTree.fromstring(
        tier_picture(PARTITION, [segment("a", 0, 40), segment("b", 80, 120)], findings)
    )
    said = [one.text for one in root.iter("title")]
    assert "offsets [0, 40): remote-object-size, remote-log-offsets" in said
    assert "offsets [200, 201): remote-object-orphan" in said
    assert "offsets [40, 80) are served by nothing" in said
    described = root.findtext("desc") or ""
    assert "Served by nothing: [40, 80)." in described
    assert "[0, 40): remote-object-size, remote-log-offsets." in described
    texts = [one.text for one in root.iter("text")]
    assert {"in the tier", "with faults", "no metadata", "local", "offset", "201"} <= set(texts)


def test_a_partition_without_faults_has_no_lane_for_them() -> None:
    markup = tier_picture({**PARTITION, "gaps": []}, [segment("a", 0, 120)])
    assert "with faults" not in markup
    assert "no metadata" not in markup
    assert "No gap." in markup


def test_copies_of_the_same_offsets_are_one_box_that_counts_them() -> None:
    again = [{**segment(name, 40, 80), "state": "COPY_SEGMENT_STARTED"} for name in "bcd"]
    root = ElementTree.fromstring(tier_picture(PARTITION, [segment("a", 0, 40), *again]))
    boxes = [one.findtext("title") for one in root.iter("rect")]
    assert [one for one in boxes if one and one.startswith("offsets [40, 80), epoch")] == [
        "offsets [40, 80), epoch 0, 3 times"
    ]
