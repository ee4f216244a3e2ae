"""The partitions: a picture of each that is lost, diverged or damaged, worst first, then an index of all."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

from formats.values import Struct, field
from kctl.audit.tables import Tables
from kctl.replica.loss.words import cause_words, listed, offsets_of, still_on
from kctl.report.html import Html, count, element, join, link, slug, table
from kctl.report.lineage import MOST_MARKS, is_damage, legend, lineage_picture

MOST_PICTURES = 40
MOST_INDEXED = 10_000
WRONG = frozenset({"diverged", "damaged", "hole"})
Key = tuple[str, int]
Row = dict[str, Any]
Rows = list[Row]


class Standing(Struct):
    """What the tables say about a partition, in numbers."""

    losses: int = 0
    damages: int = 0
    errors: int = 0
    warnings: int = 0
    verdicts: list[str] = field(default_factory=list)
    judged: set[str] = field(default_factory=set)  # questions that are open

    @property
    def is_pictured(self) -> bool:
        """Whether there is something to see."""
        return bool(self.losses or self.damages or WRONG.intersection(self.verdicts))

    def rank(self) -> tuple[int, ...]:
        """The worst first."""
        wrong = len(WRONG.intersection(self.verdicts))
        return (-self.losses, -self.damages, -wrong, -self.errors, -self.warnings)


def partitions_section(tables: Tables) -> Html | None:
    """Pictures of the worst, and the index; the rest is in the tables."""
    standings = _standings(tables)
    if not standings:
        return None
    order = sorted(standings, key=lambda key: (standings[key].rank(), key))
    faulty = [key for key in order if standings[key].is_pictured]
    pictured = _pictures(tables, faulty[:MOST_PICTURES])
    parts: list[Html] = []
    if pictured:
        parts += [
            element("h2", "Partitions with something wrong", id="partitions"),
            legend(),
            *pictured.values(),
        ]
        more = len(faulty) - len(pictured)
        if more > 0:
            parts.append(
                element(
                    "p", f"{count(more, 'more partition')} with something wrong in the index", class_="quiet"
                )
            )
    return element("section", join(parts), _index(order, standings, set(pictured)))


def _pictures(tables: Tables, wanted: list[Key]) -> dict[Key, Html]:
    held = {
        name: _by_partition(tables, name, set(wanted))
        for name in ("lineages", "divergences", "losses", "segments")
    }
    damage = _by_partition(tables, "findings", set(wanted), _drawn())
    verdicts = _verdicts(tables, set(wanted))
    made: dict[Key, Html] = {}
    for key in wanted:
        lineages = held["lineages"].get(key) or _from_segments(held["segments"].get(key, []))
        if not lineages:
            continue
        losses = held["losses"].get(key, [])
        picture = lineage_picture(
            lineages,
            held["divergences"].get(key, ()),
            losses,
            damage.get(key, ()),
            held["segments"].get(key, ()),
        )
        name = f"{key[0]}-{key[1]}"
        made[key] = element(
            "article",
            element("h3", name),
            *(element("p", said) for said in verdicts.get(key, [])),
            *(loss_words(row) for row in losses),
            element("div", picture, class_="scroll"),
            id=slug(name),
        )
    return made


def _index(order: list[Key], standings: dict[Key, Standing], pictured: set[Key]) -> Html:
    """Every partition by name with what is known of it; the search box of the page filters it."""
    shown = sorted(order[:MOST_INDEXED])
    rows: list[list[object]] = []
    ids: list[str] = []
    for key in shown:
        name, one = f"{key[0]}-{key[1]}", standings[key]
        rows.append([
            link(slug(name), name) if key in pictured else name, ", ".join(dict.fromkeys(one.verdicts)),
            one.losses or "", one.errors or "", one.warnings or "", ", ".join(sorted(one.judged)),
        ])  # fmt: skip
        ids.append(f"index-{slug(name)}" if key in pictured else slug(name))
    titles = ["partition", "comparison", "losses", "errors", "warnings", "not judged"]
    used = [i for i in range(len(titles)) if i == 0 or any(row[i] for row in rows)]
    header, rows = [titles[i] for i in used], [[row[i] for i in used] for row in rows]
    numeric = frozenset(number for number, i in enumerate(used) if i in (2, 3, 4))
    more = len(order) - len(shown)
    rest = (
        element(
            "p",
            f"and {more:,} more: ",
            element("code", "SELECT DISTINCT topic, partition FROM segments"),
            class_="quiet",
        )
        if more > 0
        else None
    )
    return element(
        "div",
        element("h2", "Index of partitions", id="index"),
        element(
            "details", element("summary", count(len(order), "partition")),
            element("div", table(header, rows, numeric, ids=ids), class_="searched"), rest,
            open="open" if len(order) <= 50 else None, class_="bulk" if len(order) > 200 else None,
        ),
    )  # fmt: skip


def _standings(tables: Tables) -> dict[Key, Standing]:
    found: dict[Key, Standing] = defaultdict(Standing)
    for name in ("segments", "lineages", "tier_partitions"):
        for row in tables.rows(name, columns=["topic", "partition"]):
            if row["topic"] is not None and row["partition"] is not None:
                found[row["topic"], row["partition"]]
    for row in tables.rows("losses", columns=["topic", "partition"]):
        found[row["topic"], row["partition"]].losses += 1
    for row in tables.rows("verdicts", columns=["topic", "partition", "verdict"]):
        found[row["topic"], row["partition"]].verdicts.append(row["verdict"])
    for row in tables.rows(
        "findings", columns=["topic", "partition", "severity", "code", "position", "remote_log_segment_id"]
    ):
        if row["topic"] is not None and row["partition"] is not None and row["severity"] != "info":
            one = found[row["topic"], row["partition"]]
            one.damages += is_damage(row)
            one.errors += row["severity"] == "error"
            one.warnings += row["severity"] == "warning"
    for row in tables.rows("judgements", columns=["topic", "partition", "question", "verdict"]):
        if (
            row["topic"] is not None
            and row["partition"] is not None
            and row["verdict"] in ("could_not_judge", "unreadable")
        ):
            found[row["topic"], row["partition"]].judged.add(row["question"])
    return found


def _by_partition(
    tables: Tables, name: str, wanted: set[Key], keep: Callable[[Row], bool] = lambda row: True
) -> dict[Key, Rows]:
    found: dict[Key, Rows] = defaultdict(list)
    for row in tables.rows(name):
        if (row["topic"], row["partition"]) in wanted and keep(row):
            found[row["topic"], row["partition"]].append(row)
    return found


def _drawn() -> Callable[[Row], bool]:
    """Whether a finding is in the picture: a damaged log may have one for each of its batches."""
    seen: Counter[tuple[Any, ...]] = Counter()

    def keep(row: Row) -> bool:
        copy = row["topic"], row["partition"], row["broker_id"], row["moment"]
        seen[copy] += is_damage(row)
        return is_damage(row) and seen[copy] <= MOST_MARKS

    return keep


def _verdicts(tables: Tables, wanted: set[Key]) -> dict[Key, list[str]]:
    found: dict[Key, list[str]] = defaultdict(list)
    for row in tables.rows("verdicts"):
        key = row["topic"], row["partition"]
        if key in wanted:
            at = f"{row['moment']}: " if row["moment"] else ""
            now = (
                f"; the partition now: broker {row['best_source']}" if row["best_source"] is not None else ""
            )
            most = (
                f"; most committed records: broker {row['most_committed']}"
                if row["most_committed"] is not None
                else ""
            )
            reason = f" ({row['reason']})" if row["reason"] else ""
            found[key].append(f"{at}{row['verdict']}{reason}{now}{most}")
    return found


def loss_words(row: dict[str, Any]) -> Html:
    """A loss in words: what, by whom it was dropped, who still has it, and the lines that show it."""
    said = [f"offsets {offsets_of(row)}, {row['class']}, {cause_words(row['cause'])}"]
    if row["dropped_by"] is not None:
        epoch = "" if row["lost_in_epoch"] is None else f" from leader epoch {row['lost_in_epoch']} on"
        said.append(f"dropped when broker {row['dropped_by']} led{epoch}")
    kept = still_on(row, 6)
    said.append(f"still on {', '.join(kept)}" if kept else "no copy in this evidence holds them")
    lines: list[list[object]] = [
        [
            element("code", f"{proof['file']}:{proof['line']}" if proof["line"] else proof["file"]),
            proof["text"],
        ]
        for proof in listed(row["evidence"])
    ]
    proofs = element(
        "details", element("summary", count(len(lines), "proof")), table(["where", "what it says"], lines)
    )
    return join(
        [element("p", element("b", "Lost: ", class_="lost"), "; ".join(said)), proofs if lines else None]
    )


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
