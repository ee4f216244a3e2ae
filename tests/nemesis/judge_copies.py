"""Rows about bytes, of `segment verify` and `replica compare`, against the bytes and what was done to them."""

from __future__ import annotations

import re
from collections.abc import Collection
from itertools import combinations
from pathlib import Path

from tests.nemesis.statements import UNBOUNDED, Copies, Row, Statement, partition_of, ranges
from tests.nemesis.story import IDS, Story
from tests.nemesis.truth import batches, checkpoint, recorded_epochs

# What a cluster under faults may well be in, whatever its bytes.
OF_STATE = {"isr-below-minimum", "stale-controller-request"}
LOG_START_EVERY = 60_000
"""Milliseconds between which a broker writes where its logs start."""
CUT_WITHIN = {"recovery-point-above-log-end", "segment-missing"}
CUT_AND_CLEANED = {"recovery-point-above-log-end", "snapshot-beyond-log-end"}


def touched(story: Story, before: float) -> set[tuple[int, str | None]]:
    """Broker and partition whose bytes were cut or wiped up to a time; partition None: all of a broker."""
    return {
        (fault.broker, fault.detail.get("partition"))
        for fault in story.of("power-loss", "wipe")
        if fault.broker is not None and fault.time <= before
    }


def judge_damage(
    story: Story, found: list[Row], command: str, cuts: Collection[tuple[int, str, int]] = ()
) -> list[Statement]:
    """Errors and warnings about bytes, in rows of one command: only where bytes were touched.

    `cuts` are brokers, partitions and the offsets that they cut them to.
    """
    end = max(moment.done for moment in story.moments)
    done = {moment.name: moment.done for moment in story.moments}
    running = {moment.name: moment.running for moment in story.moments}
    said = []
    for row in found:
        if row["kind"] != "finding" or row["severity"] == "info" or row["code"] in OF_STATE:
            continue
        marks = touched(story, done.get(row.get("moment") or "", end))
        broker = row.get("broker_id")
        right = (
            bool({(broker, partition_of(row)), (broker, None)} & marks) if broker is not None else bool(marks)
        )
        # A follower was cut back by an unclean leader; of a compacted log newer records were cut, and older ones cleaned.
        is_compacted = row["topic"] in story.compacted
        if row["code"] == "high-watermark-above-log-end" or (is_compacted and row["code"] in CUT_AND_CLEANED):
            states = story.history.get(partition_of(row), [])
            right |= any(
                state.is_unclean and state.time <= done.get(row.get("moment") or "", end) for state in states
            )
        # A cleaner puts new files in the place of old ones while a running broker's folder is copied.
        if is_compacted and row["code"].startswith(("index-", "timeindex-")):
            right |= broker in running.get(row.get("moment") or "", ())
        # A cut in the middle of a batch takes it whole, and the broker goes on from where it meant to cut.
        if row["code"] in CUT_WITHIN and broker is not None:
            offsets = map(int, re.findall(r"\d+", row["message"]))
            right |= any((broker, partition_of(row), offset) in cuts for offset in offsets)
        if row["code"] == "cleaner-point-above-log-end":  # until 2.2 no cut takes the point back
            point = int(re.findall(r"\d+", row["message"])[0])
            right |= any(cut[:2] == (broker, partition_of(row)) and cut[2] < point for cut in cuts)
        # Records were deleted, and the broker was killed before it wrote the new log start, which its epochs begin with.
        if row["code"] == "epoch-entry-missing":
            right |= any(
                partition_of(row) == deleted.detail["partition"]
                and deleted.time < killed.time < deleted.time + LOG_START_EVERY
                for deleted in story.of("delete-records")
                for killed in story.of("kill", broker=broker)
            )
        if "made anew after the checkpoint" in row["message"] and row["severity"] == "warning":
            right |= partition_of(row) in story.before
        what = f"{row['severity']} {row['code']} {row.get('file')}: {row['message'][:200]}"
        said.append(
            Statement(right, f"{command} {row.get('moment')} broker {broker} {what}; nobody touched it")
        )
    return said


def judge_torn(story: Story, found: list[Row]) -> list[Statement]:
    """Segments that were cut within a batch, in copies made before the broker ran again, have a finding."""
    said = []
    for fault in story.of("power-loss"):
        if not fault.detail["is_torn"]:
            continue
        again = [f.time for f in story.of("start", "wipe", broker=fault.broker) if f.time > fault.time]
        for moment in story.moments:
            if not fault.time < moment.time < moment.done < min(again, default=moment.done + 1):
                continue
            named = any(
                row["kind"] in ("finding", "damage")
                and row.get("broker_id") == fault.broker
                and row.get("moment") in (moment.name, None)
                and partition_of(row) == fault.detail["partition"]
                and fault.detail["file"] in str(row.get("file"))
                for row in found
            )
            where = f"broker {fault.broker} {fault.detail['partition']}/{fault.detail['file']}"
            said.append(Statement(named, f"verify {moment.name}: {where} was torn, and nothing says so"))
    return said


def judge_divergence(story: Story, found: list[Row], moment: str, copies: Copies) -> list[Statement]:
    """Rows of `replica compare` on one moment against the records of the copies."""
    said = []
    for partition in sorted(story.held):
        brokers = [id for id in IDS if copies.path(moment, partition, id)]
        for a, b in combinations(brokers, 2):
            differ = differing(copies, moment, partition, a, b)
            told: set[int] = set()
            for row in found:
                if (
                    row["kind"] == "divergence"
                    and partition_of(row) == partition
                    and row["broker_ids"] == [a, b]
                ):
                    span = range(row["from_offset"], row["to_offset"])
                    told |= set(span)
                    epochs = [epochs_in(copies, moment, partition, id, span) for id in (a, b)]
                    shown = f"says epochs {row['epochs']}, the batches {epochs}"
                    right = [sorted(side) for side in row["epochs"]] == epochs and row["moments"] is None
                    said.append(Statement(right, f"compare {moment} {partition} of {a} and {b}: {shown}"))
            # A range that begins where they differ may go on over offsets that compaction took from one.
            right = told == differ or (bool(differ) and differ <= told and min(differ) == min(told))
            text = f"compare {moment} {partition} of {a} and {b}: says {ranges(told)}, the bytes {ranges(differ)}"
            said.append(Statement(right, text))
    return said


def epochs_in(copies: Copies, moment: str, partition: str, broker: int, span: range) -> list[int]:
    """The epochs of a copy's batches that lie in a range of offsets."""
    return sorted(
        {
            batch.epoch
            for batch in copies.batches(moment, partition, broker)
            if batch.epoch is not None and batch.base_offset < span.stop and batch.last_offset >= span.start
        }
    )


# --- every key of compare -----------------------------------------------------------------------------

FIRST_EXACT = (2, 0)  # followers have truncated to where leaders differ since KIP-279


def log_starts(copies: Copies, moment: str, partition: str, broker: int) -> set[int]:
    """Where a copy's log may be said to begin: by its checkpoint, by its first segment, or by its first batch."""
    folder = copies.path(moment, partition, broker)
    assert folder
    segments = sorted(int(path.stem) for path in folder.glob("*.log"))
    first = [batch.base_offset for batch in copies.batches(moment, partition, broker)][:1]
    least = copies.log_start(moment, partition, broker)
    return {max(least, at) for at in (*segments[:1], *first, 0 if not segments else segments[0])}


def log_end(copies: Copies, moment: str, partition: str, broker: int) -> int:
    """Where a copy's log ends: after its last whole batch, else where its last segment begins."""
    folder = copies.path(moment, partition, broker)
    assert folder
    ends = [batch.last_offset + 1 for batch in copies.batches(moment, partition, broker)[-1:]]
    return max([*ends, *(int(path.stem) for path in sorted(folder.glob("*.log"))[-1:])], default=0)


def judge_lineages(story: Story, found: list[Row], moment: str, copies: Copies) -> list[Statement]:
    """Rows of lineages of one moment against the files of the copies."""
    said = []
    for row in found:
        if row["kind"] != "lineage" or row["topic"].startswith("__") or row["topic"] in story.tiered:
            continue
        partition, broker = partition_of(row), row["broker_id"]
        where = f"compare {moment} {partition} broker {broker}"
        folder = copies.path(moment, partition, broker)
        if folder is None:
            said.append(Statement(False, f"{where}: there is no such copy"))
            continue
        rebuilt: list[list[int]] = []
        for batch in copies.batches(moment, partition, broker):
            if batch.epoch is not None and (not rebuilt or batch.epoch > rebuilt[-1][0]):
                rebuilt.append([batch.epoch, batch.base_offset])
        ids = folder / "partition.metadata"
        topic_id = ids.read_text().split("topic_id:")[-1].strip() if ids.is_file() else None
        high_watermark = checkpoint(folder, "replication-offset-checkpoint")
        truth: dict[str, list[object]] = {
            "log_end_offset": [log_end(copies, moment, partition, broker)],
            "high_watermark": [high_watermark],
            "recorded": [recorded_epochs(folder)],
            "rebuilt": [rebuilt],
            "topic_id": [topic_id, None],
            "folder": [str(folder.relative_to(copies.folder / "moments" / moment))],
            "log_start_offset": list(log_starts(copies, moment, partition, broker)),
            "local_log_start_offset": list(log_starts(copies, moment, partition, broker)),
        }
        said += [
            Statement(row[key] in values, f"{where}: says {key} {row[key]}, the files {values}")
            for key, values in truth.items()
        ]
        ascending = sorted(row["epochs"]) == row["epochs"] and sorted(e[1] for e in row["epochs"]) == [
            e[1] for e in row["epochs"]
        ]
        known = {entry[0] for entry in (*rebuilt, *(recorded_epochs(folder) or ()))}
        said.append(
            Statement(
                ascending and {epoch for epoch, _ in row["epochs"]} <= known,
                f"{where}: says epochs {row['epochs']}, the files {rebuilt} {recorded_epochs(folder)}",
            )
        )
    return said


def differing(copies: Copies, moment: str, partition: str, a: int, b: int) -> set[int]:
    """The offsets at which two copies hold different records."""
    first, second = (copies.of(moment, partition, id) or {} for id in (a, b))
    low = max(copies.log_start(moment, partition, id) for id in (a, b))
    return {
        offset for offset in first.keys() & second.keys() if offset >= low and first[offset] != second[offset]
    }


def grows(copies: Copies, moment: str, partition: str, a: int, b: int) -> bool:
    """Whether the epochs of the batches of two copies grow with their offsets, as those of one log do.

    A record that a producer sent again may be the same at an offset, and of another epoch (2.8, seed 924).
    """
    both = [
        (offset, batch.epoch)
        for id in (a, b)
        for batch in copies.batches(moment, partition, id)
        for offset in (batch.base_offset, batch.last_offset)
        if batch.epoch is not None
    ]
    epochs = [epoch for _, epoch in sorted(both)]
    return epochs == sorted(epochs) and len({offset for offset, _ in both}) == len({*both})


def judge_verdicts(story: Story, found: list[Row], moment: str, copies: Copies) -> list[Statement]:
    """Rows of verdicts of one moment against the records of the copies."""
    said = []
    for row in found:
        partition = partition_of(row) if row.get("topic") else ""
        if row["kind"] != "verdict" or partition not in story.held or row["topic"] in story.tiered:
            continue
        where = f"compare {moment} {partition}: verdict {row['verdict']}"
        brokers = [id for id in IDS if copies.path(moment, partition, id)]
        ends = {id: log_end(copies, moment, partition, id) for id in brokers}
        pairs = {
            pair: differing(copies, moment, partition, *pair) for pair in combinations(sorted(brokers), 2)
        }
        differ = {
            pair for pair, offsets in pairs.items() if offsets or not grows(copies, moment, partition, *pair)
        }
        of_verdict = {
            "equal": not differ and len(set(ends.values())) == 1,
            "behind": not differ and len(set(ends.values())) > 1,
            "diverged": bool(differ),
        }
        said.append(Statement(of_verdict.get(row["verdict"], True), f"{where}: ends {ends}, differ {differ}"))
        said.append(Statement(row["broker_ids"] == sorted(brokers), f"{where}: of {row['broker_ids']}"))
        contradicting = [
            pair for branch in row["branches"] for pair in combinations(sorted(branch), 2) if pair in differ
        ]
        said.append(Statement(not contradicting, f"{where}: branches {row['branches']}, differ {differ}"))
        late = [id for id in row["behind"] if ends.get(id) == max(ends.values(), default=0)]
        said.append(Statement(not late, f"{where}: says behind {row['behind']}, ends {ends}"))
        for key in ("best_source", "current_lineage", "most_committed"):
            right = row[key] is None or row[key] in brokers
            said.append(Statement(right, f"{where}: says {key} {row[key]}, of {brokers}"))
        newest = {
            id: max(
                (b.epoch for b in copies.batches(moment, partition, id) if b.epoch is not None), default=-1
            )
            for id in brokers
        }
        best = row["best_source"]
        if best is not None and best in brokers and number_of(story) >= FIRST_EXACT:
            said.append(
                Statement(
                    newest[best] == max(newest.values()),
                    f"{where}: best_source {best}, newest epochs {newest}",
                )
            )
        for source in row["recover_from"] or ():
            right = (source != best and any(source in pair for pair in differ)) or (
                source in ends and (best is not None and ends[source] > ends[best])
            )
            said.append(Statement(right, f"{where}: recover_from {source}, differ {differ}, ends {ends}"))
        said.append(
            Statement(
                row["branch_point"] is None and row["moments"] is None,
                f"{where}: branch_point {row['branch_point']}, moments {row['moments']} of one moment",
            )
        )
    return said


def judge_rejoins(story: Story, found: list[Row], moment: str, copies: Copies) -> list[Statement]:
    """Rows of what a replica would drop under a leader, against the records of the two copies."""
    said = []
    for row in found:
        if row["kind"] != "rejoin" or partition_of(row) not in story.held or row["topic"] in story.tiered:
            continue
        partition, leader, broker = partition_of(row), row["leader"], row["broker_id"]
        where = f"compare {moment} {partition}: {broker} under {leader} truncates to {row['truncate_to']}"
        folder = copies.path(moment, partition, broker)
        if folder is None or copies.path(moment, partition, leader) is None:
            said.append(Statement(False, f"{where}: there is no such copy"))
            continue
        end = log_end(copies, moment, partition, broker)
        to = end if row["truncate_to"] is None else row["truncate_to"]
        said.append(
            Statement(
                row["offsets_dropped"] == max(end - to, 0),
                f"{where}: drops {row['offsets_dropped']} of {end}",
            )
        )
        high_watermark = checkpoint(folder, "replication-offset-checkpoint")
        if high_watermark is not None:
            said.append(
                Statement(
                    row["below_own_high_watermark"] == (to < min(high_watermark, end)),
                    f"{where}: below own {row['below_own_high_watermark']}, high watermark {high_watermark}",
                )
            )
        differ = differing(copies, moment, partition, *sorted((leader, broker)))
        if number_of(story) >= FIRST_EXACT and not row["full_truncation"]:
            said.append(
                Statement(
                    not differ or to <= min(differ),
                    f"{where}: they differ from {min(differ, default=None)} on",
                )
            )
    return said


def number_of(story: Story) -> tuple[int, int]:
    """The version as numbers."""
    major, minor, *_ = map(int, story.version.partition("-")[0].split("."))
    return major, minor


# --- every key of verify ------------------------------------------------------------------------------

OF_PARTITION = re.compile(r"moments/([^/]+)/(?:broker|controller)-(\d+)/data[^/]*/([^/]+)-(\d+)/[^/]+")


def judge_files(story: Story, found: list[Row], evidence: Path) -> list[Statement]:
    """Rows of files against the files themselves."""
    said = []
    for row in found:
        if row["kind"] != "file":
            continue
        path = evidence / row["file"]
        size = path.stat().st_size if path.is_file() else None
        wrong = {} if row["size_in_bytes"] == size else {"size_in_bytes": size}
        if row["good_bytes"] + row["damaged_bytes"] != size:
            wrong["good_bytes"] = size
        whose = OF_PARTITION.fullmatch(row["file"])
        if whose:
            place = {
                "moment": whose[1],
                "broker_id": int(whose[2]),
                "topic": whose[3],
                "partition": int(whose[4]),
            }
            if "." not in whose[3] and "-" not in whose[3]:
                wrong |= {key: value for key, value in place.items() if row[key] != value}
        if row["type"] == "log" and whose and whose[3] in topics_of(story):
            wrong |= _of_log(row, path.read_bytes())
            is_touched = {(int(whose[2]), f"{whose[3]}-{whose[4]}"), (int(whose[2]), None)} & touched(
                story, UNBOUNDED
            )
            if row["damaged_bytes"] and not is_touched:
                wrong["damaged_bytes"] = 0
        shown = {key: row.get(key) for key in wrong}
        said.append(Statement(not wrong, f"verify {row['file']}: says {shown}, the file has {wrong}"))
    return said


def topics_of(story: Story) -> set[str]:
    """The topics with a load."""
    return {partition.rpartition("-")[0] for partition in story.held}


def _of_log(row: Row, data: bytes) -> dict[str, object]:
    """What the bytes of a segment say otherwise."""
    held = list(batches(data))
    end = held[-1].position + held[-1].size if held else 0
    if data[end:].strip(b"\0") and not row["damaged_bytes"]:
        return {}  # a torn tail, which is a finding
    base = held[0].base_offset if held else int(Path(row["file"]).name.partition(".")[0])
    truth = {
        "batches": len(held),
        "records": sum(batch.records for batch in held),
        "base_offset": base,
        "next_offset": held[-1].last_offset + 1 if held else None,
    }
    if row["damaged_bytes"]:
        return {}
    return {key: value for key, value in truth.items() if row[key] != value}
