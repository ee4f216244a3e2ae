"""The partitions: pictures of those that are lost, diverged or damaged, worst first, then an index of all."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

from formats.values import Struct, field
from formats.words import counted
from kctl.audit.tables import Tables
from kctl.model import StoredRow
from kctl.replica.loss.words import cause_words, listed, offsets_of, still_on
from kctl.report.html import Html, element, join, link, more_rows, slug, table
from kctl.report.lineage import MOST_MARKS, is_damage, legend, lineage_picture

MOST_PICTURES = 40
MOST_INDEXED = 10_000
WRONG = frozenset({"diverged", "damaged", "hole"})
Key = tuple[str, int]
Rows = list[StoredRow]


class PartitionTally(Struct):
    """How many losses, findings and verdicts the tables have of a partition."""

    losses: int = 0
    damages: int = 0
    errors: int = 0
    warnings: int = 0
    verdicts: list[str] = field(default_factory=list)
    unjudged_questions: set[str] = field(default_factory=set)  # questions that are open

    @property
    def is_pictured(self) -> bool:
        return bool(self.losses or self.damages or WRONG.intersection(self.verdicts))

    def rank(self) -> tuple[int, ...]:
        """The sort key: the worst partition first."""
        wrong = len(WRONG.intersection(self.verdicts))
        return (-self.losses, -self.damages, -wrong, -self.errors, -self.warnings)


def partitions_section(tables: Tables) -> Html | None:
    """Pictures of the worst partitions, and the index of all."""
    tallies = _tallies(tables)
    if not tallies:
        return None
    order = sorted(tallies, key=lambda key: (tallies[key].rank(), key))
    faulty = [key for key in order if tallies[key].is_pictured]
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
            text = f"{counted(more, 'more partition')} with something wrong in the index"
            parts.append(element("p", text, class_="quiet"))
    return element("section", join(parts), _index(order, tallies, set(pictured)))


def _pictures(tables: Tables, keys: list[Key]) -> dict[Key, Html]:
    rows_by_table = {
        name: _by_partition(tables, name, set(keys))
        for name in ("lineages", "divergences", "losses", "segments")
    }
    damage = _by_partition(tables, "findings", set(keys), _drawn())
    verdicts = _verdicts(tables, set(keys))
    pictures: dict[Key, Html] = {}
    for key in keys:
        segments = rows_by_table["segments"].get(key, [])
        lineages = rows_by_table["lineages"].get(key) or _from_segments(segments)
        if not lineages:
            continue
        losses = rows_by_table["losses"].get(key, [])
        picture = lineage_picture(
            lineages,
            rows_by_table["divergences"].get(key, ()),
            losses,
            damage.get(key, ()),
            rows_by_table["segments"].get(key, ()),
        )
        name = f"{key[0]}-{key[1]}"
        pictures[key] = element(
            "article",
            element("h3", name),
            *(element("p", sentence) for sentence in verdicts.get(key, [])),
            *(loss_words(row) for row in losses),
            element("div", picture, class_="scroll"),
            id=slug(name),
        )
    return pictures


def _index(order: list[Key], tallies: dict[Key, PartitionTally], pictured: set[Key]) -> Html:
    """Every partition by name with its tally; the page's search filters it."""
    shown = sorted(order[:MOST_INDEXED])
    rows: list[list[object]] = []
    ids: list[str] = []
    for key in shown:
        name, tally = f"{key[0]}-{key[1]}", tallies[key]
        rows.append([
            link(slug(name), name) if key in pictured else name, ", ".join(dict.fromkeys(tally.verdicts)),
            tally.losses or "", tally.errors or "", tally.warnings or "", ", ".join(sorted(tally.unjudged_questions)),
        ])  # fmt: skip
        ids.append(f"index-{slug(name)}" if key in pictured else slug(name))
    titles = ["partition", "comparison", "losses", "errors", "warnings", "not judged"]
    used = [column for column in range(len(titles)) if column == 0 or any(row[column] for row in rows)]
    header, rows = [titles[column] for column in used], [[row[column] for column in used] for row in rows]
    numeric = frozenset(number for number, column in enumerate(used) if column in (2, 3, 4))
    rest = more_rows(len(order) - len(shown), "SELECT DISTINCT topic, partition FROM segments")
    return element(
        "div",
        element("h2", "Index of partitions", id="index"),
        element(
            "details", element("summary", counted(len(order), "partition")),
            element("div", table(header, rows, numeric, ids=ids), class_="searched"), rest,
            open="open" if len(order) <= 50 else None, class_="bulk" if len(order) > 200 else None,
        ),
    )  # fmt: skip


def _tallies(tables: Tables) -> dict[Key, PartitionTally]:
    tallies: dict[Key, PartitionTally] = defaultdict(PartitionTally)
    for name in ("segments", "lineages", "tier_partitions"):
        for row in tables.rows(name, columns=["topic", "partition"]):
            if row["topic"] is not None and row["partition"] is not None:
                tallies[row["topic"], row["partition"]]
    for row in tables.rows("losses", columns=["topic", "partition"]):
        tallies[row["topic"], row["partition"]].losses += 1
    for row in tables.rows("verdicts", columns=["topic", "partition", "verdict"]):
        tallies[row["topic"], row["partition"]].verdicts.append(row["verdict"])
    for row in tables.rows(
        "findings", columns=["topic", "partition", "severity", "code", "position", "remote_log_segment_id"]
    ):
        if row["topic"] is not None and row["partition"] is not None and row["severity"] != "info":
            tally = tallies[row["topic"], row["partition"]]
            tally.damages += is_damage(row)
            tally.errors += row["severity"] == "error"
            tally.warnings += row["severity"] == "warning"
    for row in tables.rows("judgements", columns=["topic", "partition", "question", "verdict"]):
        if (
            row["topic"] is not None
            and row["partition"] is not None
            and row["verdict"] in ("could_not_judge", "unreadable")
        ):
            tallies[row["topic"], row["partition"]].unjudged_questions.add(row["question"])
    return tallies


def _by_partition(
    tables: Tables, name: str, keys: set[Key], keep: Callable[[StoredRow], bool] = lambda row: True
) -> dict[Key, Rows]:
    by_partition: dict[Key, Rows] = defaultdict(list)
    for row in tables.rows(name):
        if (row["topic"], row["partition"]) in keys and keep(row):
            by_partition[row["topic"], row["partition"]].append(row)
    return by_partition


def _drawn() -> Callable[[StoredRow], bool]:
    """A filter for the findings that are drawn: of each copy the first `MOST_MARKS` damages."""
    damages: Counter[tuple[Any, ...]] = Counter()

    def keep(row: StoredRow) -> bool:
        copy = row["topic"], row["partition"], row["broker_id"], row["moment"]
        damages[copy] += is_damage(row)
        return is_damage(row) and damages[copy] <= MOST_MARKS

    return keep


def _verdicts(tables: Tables, keys: set[Key]) -> dict[Key, list[str]]:
    sentences: dict[Key, list[str]] = defaultdict(list)
    for row in tables.rows("verdicts"):
        key = row["topic"], row["partition"]
        if key in keys:
            newest = (
                f"; current records: broker {row['best_source']}" if row["best_source"] is not None else ""
            )
            most = (
                f"; most committed records: broker {row['most_committed']}"
                if row["most_committed"] is not None
                else ""
            )
            sentences[key].append(f"{_verdict_words(row)}{newest}{most}")
    return sentences


def _verdict_words(row: StoredRow) -> str:
    """`In copy 'found' some replicas are behind but agree`; a verdict without a sentence of its own with its reason."""
    agreed = {"behind": "some replicas are behind but agree", "equal": "the copies agree"}.get(row["verdict"])
    reason = f" ({row['reason']})" if row["reason"] and row["verdict"] != "behind" else ""
    if agreed is None:
        return f"{_place(row, 'copy {}: ')}{row['verdict']}{reason}"
    said = f"{_place(row, 'in copy {} ')}{agreed}{reason}"
    return f"{said[0].upper()}{said[1:]}"


def _place(row: StoredRow, form: str) -> str:
    return form.format(f"'{row['moment']}'") if row["moment"] else ""


def loss_words(row: dict[str, Any]) -> Html:
    """A loss in words: what, who dropped it, who still has it, and the log lines that prove it."""
    parts = [f"offsets {offsets_of(row)}, {row['class']}, {cause_words(row['cause'])}"]
    if row["dropped_by"] is not None:
        epoch = "" if row["lost_in_epoch"] is None else f" from leader epoch {row['lost_in_epoch']} on"
        parts.append(f"dropped when broker {row['dropped_by']} led{epoch}")
    places = still_on(row, 6)
    parts.append(f"still on {', '.join(places)}" if places else "no copy in this evidence holds them")
    lines: list[list[object]] = [
        [
            element("code", f"{proof['file']}:{proof['line']}" if proof["line"] else proof["file"]),
            proof["text"],
        ]
        for proof in listed(row["evidence"])
    ]
    proofs = element(
        "details", element("summary", counted(len(lines), "proof")), table(["where", "what it says"], lines)
    )
    return join(
        [element("p", element("b", "Lost: ", class_="lost"), "; ".join(parts)), proofs if lines else None]
    )


def _from_segments(segments: Rows) -> Rows:
    """Lineages of copies that were not compared: where their logs begin and end."""
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
