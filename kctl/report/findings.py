"""The findings, worst first, those of one code together, with what they mean and what to do."""

from collections import Counter
from collections.abc import Callable
from typing import Any

from kctl.audit.tables import Tables
from kctl.findings import all_findings
from kctl.report.html import Html, count, element, prose, table

SHOWN_OF_A_CODE = 25
RANK = {"error": 0, "warning": 1, "info": 2}


def section(tables: Tables) -> Html:
    """A box for each code; of many places the first are shown and the rest counted."""
    amounts: Counter[tuple[str, str]] = Counter()
    places: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in tables.rows("findings"):
        key = (row["severity"], row["code"])
        amounts[key] += 1
        if amounts[key] <= SHOWN_OF_A_CODE:
            places.setdefault(key, []).append(row)
    meanings = {one.code: one for one in all_findings()}
    boxes = [
        _box(severity, code, places[severity, code], amounts[severity, code], meanings.get(code))
        for severity, code in sorted(amounts, key=lambda key: (RANK[key[0]], -amounts[key], key[1]))
    ]
    if not boxes:
        return element(
            "section", element("h2", "Findings"), element("p", "Nothing was found that needs to be said.")
        )
    return element("section", element("h2", "Findings"), *boxes)


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
        for title, said in (
            ("What it means: ", meaning.meaning),
            ("Where it comes from: ", meaning.cause),
            ("What to do: ", meaning.action),
        ):
            parts.append(element("p", element("b", title), prose(said)))
    columns: list[tuple[str, Callable[[dict[str, Any]], object]]] = [
        ("where", _where),
        ("offsets", _offsets),
        ("bytes", _bytes),
        ("what", lambda row: row["message"]),
    ]
    used = [(name, cell) for name, cell in columns if any(cell(row) for row in rows)]
    shown = table([name for name, _ in used], [[cell(row) for _, cell in used] for row in rows])
    more = amount - len(rows)
    rest = (
        element(
            "p", f"and {more:,} more; `kctl audit sql` or the table `findings` has them all", class_="quiet"
        )
        if more
        else None
    )
    places = element(
        "details",
        element("summary", count(amount, "place")),
        shown,
        rest,
        open="open" if severity != "info" else None,
    )
    return element("div", *parts, places, class_=f"finding {severity}")


def _where(row: dict[str, Any]) -> Html:
    named = f"{row['topic']}-{row['partition']}" if row["topic"] is not None else None
    broker = f"broker {row['broker_id']}" if row["broker_id"] is not None else None
    first = " · ".join(filter(None, (named, broker, row["moment"])))
    return Html(element("div", first) + element("div", element("code", row["file"]), class_="quiet"))


def _offsets(row: dict[str, Any]) -> str:
    if row["base_offset"] is None:
        return ""
    return (
        f"[{row['base_offset']:,}, {row['last_offset'] + 1:,})"
        if row["last_offset"] is not None
        else f"from {row['base_offset']:,}"
    )


def _bytes(row: dict[str, Any]) -> str:
    if row["position"] is None:
        return ""
    return f"{row['position']:,}" + (f" + {row['size_in_bytes']:,}" if row["size_in_bytes"] else "")
