"""Losses in words: how many records, why, and which copies still hold them, from rows of kind `loss`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from formats import bounded_json
from formats.values import Struct
from kctl.copies.spans import joined

CAUSES = {
    "unclean_election": "unclean election",
    "high_watermark_truncation": "truncation to a stale high watermark",
    "power_failure_tail": "unflushed tail lost in a power failure",
    "disk_lost": "a broker led whose disk had been lost or replaced",
    "handover": "a leader told to stop had records that no follower had fetched",
    "zombie_leader": "a leader that was cut off kept accepting records",
    "unknown": "cause unknown",
}
HANDOVER = "handover"  # drops no committed record
# Classes of losses: the noun for their records, and what happened to these.
KINDS = {
    "committed": ("committed {}", "are gone from the cluster"),
    "unknown": ("{}", "are gone from the cluster; the evidence does not show whether they were committed"),
    "uncommitted": ("{} that were never committed", "were dropped, acknowledged with acks=1 at most"),
    HANDOVER: (
        "{} that were never committed",
        "were dropped at a handover, lost to producers with acks=0 or acks=1",
    ),
}
MOST_COPIES = 4  # in a sentence


def cause_words(cause: object) -> str:
    return CAUSES.get(str(cause), str(cause).replace("_", " "))


class Amount(Struct, frozen=True):
    """The total of some losses."""

    partitions: int
    offsets: int  # in the union of the ranges; one for a range without a known end
    is_at_least: bool  # the end of a range is unknown, or every copy may lack its tail
    compacted: int  # offsets of compacted topics
    records_held: int  # records that copies are known to still hold
    is_complete: bool  # copies hold a record for every offset
    copies: tuple[str, ...]
    in_tier: bool

    def words(self, noun: str = "{}") -> str:
        """The amount with its noun. Offsets that no copy holds may be fewer records."""
        unit = f"{'record' if self.is_complete else 'offset'}{'' if self.offsets == 1 else 's'}"
        if self.compacted and not self.is_complete:  # a cleaner may have removed some of them before
            topics = "a compacted topic" if self.partitions == 1 else "compacted topics"
            is_all = self.compacted == self.offsets
            unit += f" of {topics}" if is_all else f" ({self.compacted:,} of compacted topics)"
        at_least = "at least " if self.is_at_least else ""
        return f"{at_least}{self.offsets:,} {noun.format(unit)}"


def amount_of(losses: Iterable[Mapping[str, Any]]) -> Amount:
    """The total of rows of kind `loss`, as printed or from tables; overlapping ranges count once."""
    rows = list(losses)
    ranges: dict[tuple[object, object], list[tuple[int, int]]] = defaultdict(list)
    compacted: set[tuple[object, object]] = set()
    copies: list[Mapping[str, Any]] = []
    for row in rows:
        end = row["from_offset"] + 1 if row["to_offset"] is None else row["to_offset"]
        partition = row["topic"], row["partition"]
        ranges[partition].append((row["from_offset"], end))
        if row.get("is_compacted"):
            compacted.add(partition)
        copies += listed(row["recoverable_from"])
    covered = {
        partition: sum(end - start for start, end in joined(spans)) for partition, spans in ranges.items()
    }
    offsets = sum(covered.values())
    is_open = any(row["to_offset"] is None for row in rows)
    records_held = sum(row["records"] or 0 for row in rows if listed(row["recoverable_from"]))
    return Amount(
        len(ranges), offsets, is_open or any(row.get("is_at_least") for row in rows),
        sum(covered[partition] for partition in compacted), min(records_held, offsets), records_held == offsets and not is_open, tuple(copy_names(copies)),
        any(listed(row["recoverable_from_tier"]) for row in rows),
    )  # fmt: skip


def listed(value: object) -> list[Any]:
    """A list, also from JSON text as tables hold it."""
    items = bounded_json.loads(value) if isinstance(value, str) else value
    return list(items) if isinstance(items, (list, tuple)) else []


def lost_sentence(losses: Iterable[Mapping[str, Any]]) -> str:
    """How many records are lost and where they still are; empty without losses."""
    return " ".join(lost_sentences(losses))


def lost_sentences(losses: Iterable[Mapping[str, Any]]) -> list[str]:
    """How many records are lost and where they still are, a sentence for each kind, the committed ones first."""
    kinds: dict[str, list[Mapping[str, Any]]] = {kind: [] for kind in KINDS}
    for row in losses:
        kinds[HANDOVER if row["cause"] == HANDOVER else row["class"]].append(row)
    sentences: list[str] = []
    for kind, rows in kinds.items():
        if rows:
            amount, (noun, gone) = amount_of(rows), KINDS[kind]
            if amount.offsets == 1:
                gone = (
                    gone.replace("are", "is", 1) if gone.startswith("are") else gone.replace("were", "was", 1)
                )
                noun, gone = noun.replace("were", "was"), gone.replace("they were", "it was")
            if sentences and kind == "unknown":
                noun = f"more {noun}"
            words = amount.words(noun)
            sentences.append(f"{words[0].upper()}{words[1:]} {gone}; {_still(amount)}.")
    return sentences


def where_else(losses: Iterable[Mapping[str, Any]]) -> str:
    """What not to start, and where to look for records that no copy has; empty where copies have all that may be committed."""
    rows = list(losses)
    if not any(row["class"] != "uncommitted" and not still_on(row) for row in rows):
        return ""
    is_part = any(map(still_on, rows))
    begin = "Not all of these records are in a copy here" if is_part else "No copy here holds these records"
    return (
        f"{begin}. Before you start a broker, see what its start would cut; look for the records on disks of brokers "
        "that are down or were replaced, in backups and mirrors."
    )


def _still(amount: Amount) -> str:
    if not amount.copies and not amount.in_tier:
        return f"no copy in this evidence holds {'it' if amount.offsets == 1 and not amount.is_at_least else 'them'}"
    more = len(amount.copies) - MOST_COPIES
    places = [
        *amount.copies[:MOST_COPIES],
        *([f"{more:,} more"] if more > 0 else []),
        *(["the tier"] if amount.in_tier else []),
    ]
    where = ", ".join(places)
    if amount.is_complete:
        return (
            f"all {amount.offsets:,} are still on {where}"
            if amount.offsets > 1
            else f"it is still on {where}"
        )
    return (
        f"at least {amount.records_held:,} of them are still on {where}"
        if amount.records_held
        else f"some may still be on {where}"
    )


def copy_names(copies: Iterable[Mapping[str, Any]]) -> list[str]:
    """Copies by broker: `broker 1 (copies 'before', 'during')`."""
    moments_by_broker: dict[object, dict[object, None]] = {}
    for copy in copies:
        moments_by_broker.setdefault(copy["broker_id"], {})[copy["moment"]] = None
    names = []
    for broker_id, moments in moments_by_broker.items():
        quoted = ", ".join(f"'{moment}'" for moment in moments if moment)
        noun = "copies" if len(moments) > 1 else "copy"
        names.append(f"broker {broker_id} ({noun} {quoted})" if quoted else f"broker {broker_id}")
    return names


def offsets_of(row: Mapping[str, Any]) -> str:
    """The range as `[40, 70)`; `[40, ?)` if its end is unknown."""
    return f"[{row['from_offset']:,}, {'?' if row['to_offset'] is None else format(row['to_offset'], ',')})"


def still_on(row: Mapping[str, Any], most: int = 4) -> list[str]:
    """Where records of a loss still are: copies, then remote segments; empty if nowhere."""
    copies, segments = copy_names(listed(row["recoverable_from"])), listed(row["recoverable_from_tier"])
    tier = [f"remote segment {segment['remote_log_segment_id']}" for segment in segments]
    return copies[:most] + tier[:most]
