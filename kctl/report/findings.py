"""The findings: incidents with their consequences, then other findings by code, worst first, then notes, folded."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import Any
from zlib import crc32

from formats.words import counted
from kctl.audit.tables import Tables
from kctl.findings import all_findings
from kctl.replica.loss.words import amount_of
from kctl.report.html import Html, element, link, more_rows, prose, slug, table
from kctl.report.incidents import Incident, Key, is_consequence

SHOWN_OF_A_CODE = 10
MOST_PARTITIONS = 60  # of an incident
TIME = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"
Alike = tuple[object, ...]
Place = tuple[dict[str, Any], int]
"""A finding that is shown, and how many more are like it."""
RANK = {"error": 0, "warning": 1, "info": 2}


def findings_section(tables: Tables, causes: Sequence[Incident]) -> Html:
    """A box for each incident and each code; the first places are shown and the others counted."""
    of_incidents = {key for cause in causes for key in cause.partitions}
    amounts: Counter[tuple[str, str]] = Counter()
    places: dict[tuple[str, str], dict[Alike, Place]] = defaultdict(dict)
    consequences: dict[Key, Counter[str]] = defaultdict(Counter)
    for row in tables.rows("findings"):
        if is_consequence(row, of_incidents):
            consequences[row["topic"], row["partition"]][row["code"]] += 1
            continue
        group = (row["severity"], row["code"])
        amounts[group] += 1
        alike = _alike(row)
        if row["severity"] != "info" and (alike in places[group] or len(places[group]) < SHOWN_OF_A_CODE):
            first, more = places[group].get(alike, (row, -1))
            places[group][alike] = first, more + 1
    meanings = {finding.code: finding for finding in all_findings()}
    parts: list[Html] = [_incident(cause, consequences) for cause in causes]
    parts += [
        _box(
            severity, code, list(places[severity, code].values()), amounts[severity, code], meanings.get(code)
        )
        for severity, code in sorted(
            filter(places.__getitem__, places), key=lambda key: (RANK[key[0]], -amounts[key], key[1])
        )
    ]
    notes = {code: amount for (severity, code), amount in amounts.items() if severity == "info"}
    if notes:
        parts.append(_notes(notes, meanings))
    if not parts:
        parts.append(element("p", "There are no findings."))
    return element("section", element("h2", "What happened"), *parts, id="findings")


def _incident(cause: Incident, consequences: dict[Key, Counter[str]]) -> Html:
    """An incident: what happened, and its partitions with their losses and the findings that follow from it."""
    rows: list[list[object]] = []
    for key in cause.partitions[:MOST_PARTITIONS]:
        lost = [row for row in cause.losses if (row["topic"], row["partition"]) == key]
        name = f"{key[0]}-{key[1]}"
        follows = ", ".join(
            f"{code} {amount}" for code, amount in sorted(consequences.get(key, Counter()).items())
        )
        rows.append([link(slug(name), name), amount_of(lost).words() if lost else "nothing known", follows])
    header = ["partition", "lost", "findings that follow from it"]
    more = len(cause.partitions) - len(rows)
    time = f"#time={cause.from_time}/{cause.to_time}" if cause.from_ms is not None else None
    return element(
        "div",
        element("h3", element("span", "incident", class_="tag"), cause.sentence()),
        table(header, rows[:SHOWN_OF_A_CODE]),
        element(
            "details",
            element("summary", counted(folded, "more partition")),
            table(header, rows[SHOWN_OF_A_CODE:]),
        )
        if (folded := len(rows) - SHOWN_OF_A_CODE) > 0
        else None,
        element("p", f"and {counted(more, 'more partition')}", class_="quiet") if more else None,
        element("p", element("a", "On the timeline", href=time)) if time else None,
        class_=f"finding {'error' if cause.losses else 'warning'}",
        id=cause.anchor,
    )


def _notes(notes: dict[str, int], meanings: dict[str, Any]) -> Html:
    """The findings of severity info, folded, with the meaning of each code."""
    rows: list[list[object]] = [
        [element("code", code), amount, prose(meanings[code].meaning) if code in meanings else ""]
        for code, amount in sorted(notes.items(), key=lambda note: (-note[1], note[0]))
    ]
    summary = f"{counted(sum(notes.values()), 'note')} of {counted(len(notes), 'kind')}"
    return element(
        "details", element("summary", element("span", "info", class_="tag info"), summary),
        table(["code", "places", "meaning"], rows, frozenset({1})), id="notes",
    )  # fmt: skip


def finding_anchor(row: dict[str, Any]) -> str:
    """The id of a finding in the page, equal in every report of the same evidence."""
    keys = (
        "code",
        "evidence",
        "moment",
        "broker_id",
        "topic",
        "partition",
        "file",
        "position",
        "base_offset",
        "remote_log_segment_id",
    )
    identity = "\0".join(str(row.get(key)) for key in keys)
    return f"finding-{crc32(identity.encode('utf-8', 'replace')):08x}"


def _alike(row: dict[str, Any]) -> Alike:
    """What findings have in common that are one row: all that it shows, but for times."""
    shown = (row["topic"], row["partition"], row["broker_id"], row["moment"], row["file"], row["base_offset"])
    return (*shown, row["last_offset"], row["position"], re.sub(TIME, "", row["message"]))


def _what(row: dict[str, Any], more: int) -> object:
    """The sentence of a finding, and how many more there are of it."""
    if not more:
        return row["message"]
    others = element(
        "div", f"and {more:,} more that {'differs' if more == 1 else 'differ'} in time alone", class_="quiet"
    )
    return Html(element("div", row["message"]) + others)


def _box(severity: str, code: str, places: list[Place], amount: int, meaning: Any) -> Html:
    parts: list[object] = [
        element(
            "h3",
            element("span", severity, class_="tag"),
            element("code", code),
            f" · {counted(amount, 'place')}",
        )
    ]
    if meaning:
        for title, text in (
            ("What it means: ", meaning.meaning),
            ("Where it comes from: ", meaning.cause),
            ("What to do: ", meaning.action),
        ):
            parts.append(element("p", element("b", title), prose(text)))
    columns: list[tuple[str, Callable[[dict[str, Any]], object]]] = [
        ("where", _where),
        ("offsets", _offsets),
        ("bytes", _bytes),
    ]
    rows = [row for row, _ in places]
    used = [(title, cell) for title, cell in columns if any(cell(row) for row in rows)]
    ids = [finding_anchor(row) for row in rows]
    shown = table(
        [*(title for title, _ in used), "what"],
        [[*(cell(row) for _, cell in used), _what(row, more)] for row, more in places],
        ids=[title if title not in ids[:number] else f"{title}-{number}" for number, title in enumerate(ids)],
        stacked=True,
    )  # fmt: skip
    statement = f"SELECT * FROM findings WHERE code = '{code}'"  # noqa: S608  # it is shown, not run
    rest = more_rows(amount - sum(1 + more for _, more in places), statement)
    listed = element("details", element("summary", counted(amount, "place")), shown, rest, open="open")
    return element("div", *parts, listed, class_=f"finding {severity}", id=slug(f"code-{code}"))


def _where(row: dict[str, Any]) -> Html:
    partition = f"{row['topic']}-{row['partition']}" if row["topic"] is not None else None
    broker = f"broker {row['broker_id']}" if row["broker_id"] is not None else None
    first = " · ".join(filter(None, (partition, broker, row["moment"])))
    return Html(element("div", first) + element("div", element("code", row["file"]), class_="quiet"))


def _offsets(row: dict[str, Any]) -> object:
    if row["base_offset"] is None:
        return ""
    offsets = (
        f"[{row['base_offset']:,}, {row['last_offset'] + 1:,})"
        if row["last_offset"] is not None
        else f"from {row['base_offset']:,}"
    )
    return element("span", offsets, class_="offsets")


def _bytes(row: dict[str, Any]) -> str:
    if row["position"] is None:
        return ""
    return f"{row['position']:,}" + (f" + {row['size_in_bytes']:,}" if row["size_in_bytes"] else "")
