"""The partitions, worst first: a picture of their replicas, the verdict on them, and what they lost."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

from kctl.audit.tables import Tables
from kctl.report.html import Html, count, element, join, prose, table
from kctl.report.lineage import is_damage, lineage_picture, listed

MOST_PICTURES = 40
MOST_ROWS = 500
MOST_COPIES = 6
WEIGHT = {
    "loss": 1_000_000,
    "diverged": 10_000,
    "damaged": 10_000,
    "hole": 1_000,
    "error": 100,
    "warning": 10,
}
Key = tuple[str, int]
Rows = list[dict[str, Any]]


def section(tables: Tables) -> Html | None:
    """A picture for each of the worst, then the verdicts of the others as a table; the rest is in the tables."""
    scores = _scores(tables)
    if not scores:
        return None
    order = sorted(scores, key=lambda key: (-scores[key], key))
    pictured = order[:MOST_PICTURES]
    held = {
        name: _by_partition(tables, name, set(pictured))
        for name in ("lineages", "divergences", "losses", "segments")
    }
    damage = _by_partition(tables, "findings", set(pictured), is_damage)
    verdicts = _verdicts(tables, set(order[:MOST_ROWS]))
    parts = [element("h2", "Partitions"), element("p", LEGEND, class_="quiet")]
    for key in pictured:
        lineages = held["lineages"].get(key) or _from_segments(held["segments"].get(key, []))
        if not lineages:
            continue
        parts.append(element("h3", f"{key[0]}-{key[1]}"))
        parts += [element("p", said) for said in verdicts.get(key, [])]
        parts += [_loss(row) for row in held["losses"].get(key, ())]
        picture = lineage_picture(
            lineages,
            held["divergences"].get(key, ()),
            held["losses"].get(key, ()),
            damage.get(key, ()),
            held["segments"].get(key, ()),
        )
        parts.append(element("div", picture, class_="scroll"))
    parts += _others(order[MOST_PICTURES:], verdicts)
    return element("section", join(parts)) if len(parts) > 2 else None


LEGEND = (
    "A lane for each copy, offsets from left to right. Bands are leader epochs with their number; notches are where "
    "segments begin; the thick tick is the high watermark; hatched is damaged; outlined is lost; a dashed line is where copies part."
)


def _scores(tables: Tables) -> Counter[Key]:
    """How bad it is with each partition; those with nothing wrong have 0."""
    scores: Counter[Key] = Counter()
    for name in ("segments", "lineages"):
        for row in tables.rows(name, columns=["topic", "partition"]):
            if row["topic"] is not None and row["partition"] is not None:
                scores.setdefault((row["topic"], row["partition"]), 0)
    for row in tables.rows("losses", columns=["topic", "partition"]):
        scores[row["topic"], row["partition"]] += WEIGHT["loss"]
    for row in tables.rows("verdicts", columns=["topic", "partition", "verdict"]):
        scores[row["topic"], row["partition"]] += WEIGHT.get(row["verdict"], 0)
    for row in tables.rows("findings", columns=["topic", "partition", "severity"]):
        if row["topic"] is not None and row["partition"] is not None:
            scores[row["topic"], row["partition"]] += WEIGHT.get(row["severity"], 0)
    return scores


def _by_partition(
    tables: Tables, name: str, wanted: set[Key], keep: Any = lambda row: True
) -> dict[Key, Rows]:
    found: dict[Key, Rows] = defaultdict(list)
    for row in tables.rows(name):
        if (row["topic"], row["partition"]) in wanted and keep(row):
            found[row["topic"], row["partition"]].append(row)
    return found


def _verdicts(tables: Tables, wanted: set[Key]) -> dict[Key, list[str]]:
    found: dict[Key, list[str]] = defaultdict(list)
    for row in tables.rows("verdicts"):
        key = row["topic"], row["partition"]
        if key in wanted:
            at = f"{row['moment']}: " if row["moment"] else ""
            best = f"; best copy: broker {row['best_source']}" if row["best_source"] is not None else ""
            reason = f" ({row['reason']})" if row["reason"] else ""
            found[key].append(f"{at}{row['verdict']}{reason}{best}")
    return found


def _loss(row: dict[str, Any]) -> Html:
    """A loss in words: what, by whom it was dropped, and who still has it."""
    end = "…" if row["to_offset"] is None else f"{row['to_offset']:,}"
    said = [f"offsets [{row['from_offset']:,}, {end}), {row['class']}, {str(row['cause']).replace('_', ' ')}"]
    if row["dropped_by"] is not None:
        epoch = "" if row["lost_in_epoch"] is None else f" from leader epoch {row['lost_in_epoch']} on"
        said.append(f"dropped when broker {row['dropped_by']} led{epoch}")
    copies = [
        f"broker {copy['broker_id']}" + (f" ({copy['moment']})" if copy["moment"] else "")
        for copy in listed(row["recoverable_from"])
    ]
    tier = [str(one["remote_log_segment_id"]) for one in listed(row["recoverable_from_tier"])]
    if copies:
        said.append(f"still on {', '.join(copies[:MOST_COPIES])}")
    if tier:
        said.append(f"still in the tier, remote segments {', '.join(tier[:MOST_COPIES])}")
    if not copies and not tier:
        said.append("no copy in this evidence holds them")
    how = prose("; `kctl replica loss EVIDENCE --export DIR` writes them out") if copies else None
    return element("p", element("b", "Lost: ", class_="lost"), "; ".join(said), how)


def _from_segments(segments: Rows) -> Rows:
    """What is known of copies that nothing was compared with: where their logs begin and end."""
    copies: dict[tuple[Any, Any], Rows] = defaultdict(list)
    for row in segments:
        copies[row["broker_id"], row["moment"]].append(row)
    return [
        {
            "topic": rows[0]["topic"], "partition": rows[0]["partition"], "broker_id": broker_id, "moment": moment,
            "epochs": [], "high_watermark": None,
            "log_start_offset": min(row["base_offset"] for row in rows if row["base_offset"] is not None),
            "log_end_offset": max(row["next_offset"] for row in rows if row["next_offset"] is not None),
        }
        for (broker_id, moment), rows in copies.items()
        if any(row["base_offset"] is not None and row["next_offset"] is not None for row in rows)
    ]  # fmt: skip


def _others(rest: list[Key], verdicts: dict[Key, list[str]]) -> list[Html]:
    if not rest:
        return []
    rows: list[list[object]] = [
        [f"{topic}-{number}", "; ".join(verdicts.get((topic, number), []))]
        for topic, number in rest[: MOST_ROWS - MOST_PICTURES]
    ]
    more = len(rest) - len(rows)
    said = [element("p", f"and {more:,} more; the tables have them all", class_="quiet")] if more > 0 else []
    title = element("summary", count(len(rest), "more partition"))
    return [element("details", title, table(["partition", "verdict"], rows), *said)]
