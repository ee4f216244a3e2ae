"""Rows of `remote audit` and `remote segments --all`, against the tier and what a consumer was served."""

from __future__ import annotations

from pathlib import Path

from tests.nemesis.statements import Row, Statement, partition_of, ranges, text
from tests.nemesis.story import Story
from tests.nemesis.truth import stored


class RemoteLogs:
    """The objects with records of a tier, by partition and segment id; each is read once."""

    def __init__(self, folder: Path) -> None:
        self.paths: dict[tuple[str, str], Path] = {}
        for path in folder.glob("kafka-tiered-storage/*/*.log"):
            partition = path.parent.name[:-23]  # TOPIC-N-ID, the id of 22 characters
            self.paths[partition, path.stem[21:]] = path

    def of(self, partition: str, segment_id: str) -> dict[int, str]:
        """Values by offset; none where there is no such object."""
        path = self.paths.get((partition, segment_id))
        return {s.offset: text(s.value) for s in stored(path.read_bytes())} if path else {}


def judge_tier(
    story: Story,
    audited: list[Row],
    segments: list[Row],
    tier: RemoteLogs,
    local_starts: dict[str, int],
) -> list[Statement]:
    """Rows of `remote audit` and `remote segments --all` against the objects and what a consumer was served.

    `local_starts` are the first offsets of the leaders' own logs: below them a consumer reads from the tier.
    """
    said: list[Statement] = []
    for partition, served in sorted(story.served.items()):
        rows = [r for r in segments if r["kind"] == "remote_segment" and partition_of(r) == partition]
        findings = [r for r in audited if r["kind"] == "finding" and partition_of(r) == partition]
        remote = {offset for offset in served if offset < local_starts.get(partition, 0)}
        covered = {
            offset
            for row in rows
            if row["state"] == "COPY_SEGMENT_FINISHED"
            for offset in range(row["start_offset"], row["end_offset"] + 1)
        }
        said.append(
            Statement(
                remote <= covered,
                f"tier {partition}: {ranges(remote - covered)} were served from the tier, and no segment holds them",
            )
        )
        is_sound = any(
            r["verdict"] == "sound"
            for r in audited
            if r["kind"] == "judgement" and partition_of(r) == partition
        )
        start = min(
            [
                r["log_start_offset"]
                for r in audited
                if r["kind"] == "tier_partition" and partition_of(r) == partition
            ]
            or [0]
        )
        holes = set(range(start or 0, local_starts.get(partition, 0))) - served.keys()
        said.append(
            Statement(
                not (is_sound and holes),
                f"tier {partition}: called sound, and nobody could read {ranges(holes)}",
            )
        )
        known = {r["remote_log_segment_id"] for r in (*rows, *findings)}
        for segment_id in sorted(id for name, id in tier.paths if name == partition):
            where = f"tier {partition} segment {segment_id}"
            said.append(Statement(segment_id in known, f"{where} lies in the tier, and nothing says so"))
        for row in rows:
            segment_id = row["remote_log_segment_id"]
            where = f"tier {partition} segment {segment_id} [{row['start_offset']}, {row['end_offset'] + 1})"
            about = {f["code"] for f in findings if f["remote_log_segment_id"] == segment_id}
            values = tier.of(partition, segment_id)
            if row["state"] == "COPY_SEGMENT_FINISHED":
                said.append(Statement(bool(values or about), f"{where} has no object, and nothing says so"))
                other = {o for o, value in values.items() if o in remote and served[o] != value}
                said.append(
                    Statement(
                        bool(about) or not other,
                        f"{where}: a consumer is served other records at {ranges(other)}, and nothing says so",
                    )
                )
        for finding in findings:
            said.append(_of_tier(story, finding, served, tier))
    return said


def _of_tier(story: Story, finding: Row, served: dict[int, str], tier: RemoteLogs) -> Statement:
    """A finding about a tier whose objects nobody touched."""
    partition, code = partition_of(finding), finding["code"]
    cut = [f for f in story.of("power-loss") if f.detail["partition"] == partition] + story.of("wipe")
    is_unclean = any(state.is_unclean for state in story.history[partition])
    claimed = range(finding["base_offset"] or 0, (finding["last_offset"] or -1) + 1)
    if finding["severity"] == "info" or code in ("remote-copy-failed", "remote-deletion-interrupted"):
        right = True  # brokers were killed at any time
    elif code in ("remote-gap", "remote-local-deleted-before-copy"):
        right = any(offset not in served for offset in claimed)
    elif code in ("remote-segment-outside-lineage", "remote-log-differs-from-local"):
        values = tier.of(partition, finding["remote_log_segment_id"])
        right = any(served.get(offset) != value for offset, value in values.items())
    elif code == "remote-segment-hidden":
        right = bool(cut) or is_unclean
    else:
        lost_metadata = ("remote-metadata", "remote-object-orphan", "remote-segment-forgotten")
        right = code.startswith(lost_metadata) and bool(story.of("wipe"))
    what = f"{finding['severity']} {code} {finding['remote_log_segment_id']} {claimed}: {finding['message'][:200]}"
    return Statement(right, f"tier {partition}: {what}; nobody touched it")
