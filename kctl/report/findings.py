"""The findings: incidents with their consequences, then other findings by code, worst first, then notes, folded."""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import Any
from zlib import crc32

from kctl.audit.tables import Tables
from kctl.findings import all_findings
from kctl.replica.loss.words import amount_of
from kctl.report.html import Html, count, element, link, more_rows, prose, slug, table
from kctl.report.incidents import Incident, Key, is_consequence

SHOWN_OF_A_CODE = 10
MOST_PARTITIONS = 60  # of an incident
RANK = {"error": 0, "warning": 1, "info": 2}


def findings_section(tables: Tables, causes: Sequence[Incident]) -> Html:
    """A box for each incident and each code; the first places are shown and the others counted."""
    of_incidents = {key for cause in causes for key in cause.partitions}
    amounts: Counter[tuple[str, str]] = Counter()
    places: dict[tuple[str, str], list[dict[str, Any]]] = {}
    consequences: dict[Key, Counter[str]] = defaultdict(Counter)
    for row in tables.rows("findings"):
        if is_consequence(row, of_incidents):
            consequences[row["topic"], row["partition"]][row["code"]] += 1
            continue
        group = (row["severity"], row["code"])
        amounts[group] += 1
        if amounts[group] <= SHOWN_OF_A_CODE and row["severity"] != "info":
            places.setdefault(group, []).append(row)
    meanings = {finding.code: finding for finding in all_findings()}
    parts: list[Html] = [_incident(cause, consequences) for cause in causes]
    parts += [
        _box(severity, code, places[severity, code], amounts[severity, code], meanings.get(code))
        for severity, code in sorted(places, key=lambda key: (RANK[key[0]], -amounts[key], key[1]))
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
            element("summary", count(folded, "more partition")),
            table(header, rows[SHOWN_OF_A_CODE:]),
        )
        if (folded := len(rows) - SHOWN_OF_A_CODE) > 0
        else None,
        element("p", f"and {count(more, 'more partition')}", class_="quiet") if more else None,
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
    summary = f"{count(sum(notes.values()), 'note')} of {count(len(notes), 'kind')}"
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


def _box(severity: str, code: str, rows: list[dict[str, Any]], amount: int, meaning: Any) -> Html:
    parts: list[object] = [
        element(
            "h3",
            element("span", severity, class_="tag"),
            element("code", code),
            f" · {count(amount, 'place')}",
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
        ("what", lambda row: row["message"]),
    ]
    used = [(title, cell) for title, cell in columns if any(cell(row) for row in rows)]
    ids = [finding_anchor(row) for row in rows]
    shown = table(
        [title for title, _ in used], [[cell(row) for _, cell in used] for row in rows],
        ids=[title if title not in ids[:number] else f"{title}-{number}" for number, title in enumerate(ids)],
        stacked=True,
    )  # fmt: skip
    statement = f"SELECT * FROM findings WHERE code = '{code}'"  # noqa: S608  # it is shown, not run
    rest = more_rows(amount - len(rows), statement)
    places = element("details", element("summary", count(amount, "place")), shown, rest, open="open")
    return element("div", *parts, places, class_=f"finding {severity}", id=slug(f"code-{code}"))


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
