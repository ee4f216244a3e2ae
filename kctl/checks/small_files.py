"""Small text files: read whole, refused where Kafka refuses them."""

from __future__ import annotations

import os
from pathlib import Path

from formats.errors import FormatError, MalformedLine
from formats.log_dir.checkpoints import MalformedCheckpoint
from formats.log_dir.state_files import parse_partition_metadata, parse_quorum_state, strange_label
from kctl.checks.report import FileReport
from kctl.errors import reason_of
from kctl.files import LARGEST_TABLE, ROWS, read_padded, read_whole
from kctl.findings import evidence as evidence_codes
from kctl.findings import small_files as codes
from kctl.stores.mirror import mirror_of


def say_missing(report: FileReport, path: Path) -> None:
    """Report a file that vanished after it was listed: a running broker deletes files; nobody deletes those of a store."""
    if mirror_of(os.fspath(path)):
        report.say(evidence_codes.UNREADABLE, reason="the object was deleted after it was listed")
    else:
        report.say(evidence_codes.VANISHED)


def read_small(path: Path, report: FileReport, *, is_padded: bool = False) -> bytes | None:
    """The bytes of a snapshot, checkpoint or, padded, an index; None, and a finding, where it cannot be read."""
    try:
        data = read_padded(path) if is_padded else read_whole(path)
    except FileNotFoundError:
        say_missing(report, path)
        return None
    except OSError as error:
        report.say(evidence_codes.UNREADABLE, reason=reason_of(error))
        report.damaged_bytes = report.size_in_bytes
        return None
    take_small(data, report, is_padded=is_padded)
    return data


def take_small(data: bytes, report: FileReport, *, is_padded: bool = False) -> None:
    """Note the size and the digest of a file that was read."""
    report.size_in_bytes = max(len(data), report.size_in_bytes if is_padded else 0)
    if report.digest and len(data) <= LARGEST_TABLE - ROWS:  # more may be less than the whole file
        report.digest.take(data)


def read_text(path: Path, report: FileReport) -> str | None:
    """The text of a file; None, and a finding, where it cannot be read."""
    data = read_small(path, report)
    return None if data is None else data.decode("utf-8", "replace")


def say_malformed(report: FileReport, error: MalformedCheckpoint) -> None:
    """The finding about a checkpoint that Kafka would refuse."""
    is_count = "promises" in error.what
    type_ = codes.CHECKPOINT_COUNT if is_count else codes.CHECKPOINT_MALFORMED
    report.say(type_, what=error.what, line=error.position, refusal=str(error.refusal))
    report.damaged_bytes = report.size_in_bytes


def check_partition_metadata(report: FileReport, path: Path) -> str | None:
    """The topic id, or None and a finding."""
    text = read_text(path, report)
    if text is None:
        return None
    try:
        metadata = parse_partition_metadata(text)
    except MalformedLine as error:
        report.say(codes.PARTITION_METADATA_BAD, what=error.what, line=error.position)
        report.damaged_bytes = report.size_in_bytes
        return None
    strange = strange_label(text)
    if strange is not None:
        report.say(codes.PARTITION_METADATA_LABEL, line=strange[0], label=strange[1][:80])
    return metadata.topic_id


def check_remote_log_snapshot(report: FileReport, path: Path) -> None:
    """A finding where the tier's metadata cache of 3.5 and 3.6 cannot be read; it is often empty."""
    data = read_small(path, report)
    if not data:
        return
    from formats.tier.broker_files import read_remote_log_snapshot  # few brokers have such a file

    try:
        read_remote_log_snapshot(data)
    except FormatError as error:
        report.say(codes.REMOTE_LOG_SNAPSHOT_BAD, what=str(error))
        report.damaged_bytes = report.size_in_bytes


def check_quorum_state(report: FileReport, path: Path) -> None:
    """A finding where a KRaft node could not read its vote."""
    text = read_text(path, report)
    if text is None:
        return
    try:
        parse_quorum_state(text)
    except MalformedLine as error:
        report.say(codes.QUORUM_STATE_BAD, what=error.what, line=error.position)
        report.damaged_bytes = report.size_in_bytes
