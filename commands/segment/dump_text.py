"""How the rows of `kctl segment dump` look on a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from commands.cli.leaving import visible
from commands.cli.render import Page, Row, aligned


def dump_text(rows: Iterable[Row], page: Page) -> Iterator[str]:
    """A line a batch, its records indented below it, damage marked; entries in columns."""
    file: object = None
    run: list[Row] = []
    for row in rows:
        if row["kind"] == "entry" and len(run) < 1000 and (not run or row.keys() == run[0].keys()):
            run.append(row)
            continue
        yield from entries(run, page)
        run = [row] if row["kind"] == "entry" else []
        if run:
            continue
        if row.get("file") != file:
            file = row.get("file")
            yield page.style(str(file), "bold")
        yield from LINES[str(row["kind"])](row, page)
    yield from entries(run, page)


def entries(run: list[Row], page: Page) -> Iterator[str]:
    """Entries of one file after another."""
    files = dict.fromkeys(row["file"] for row in run)
    for file in files:
        yield page.style(str(file), "bold")
        yield from aligned(
            [{k: v for k, v in row.items() if k != "file"} for row in run if row["file"] == file], page
        )


def number(value: object) -> str:
    """With thousands separators; a dash for null."""
    return f"{value:,}" if isinstance(value, int) else "-"


def moment(value: object) -> str:
    """To the millisecond; a dash for null."""
    from commands.cli.clock import shown

    return (shown(value) if isinstance(value, int) else "") or "-"


def batch(row: Row, page: Page) -> Iterator[str]:
    """Offsets, position, time and unusual attributes, those on a second line if they do not fit."""
    base = "?" if row["base_offset"] is None else row["base_offset"]
    count = row["records_count"]
    span = f"[{base}, {int(str(row['last_offset'])) + 1})"
    main = (
        f"{span:<12} {number(row['position']):>10}+{number(row['size_in_bytes']):<7}"
        f" {number(count):>4} {'record ' if count == 1 else 'records'}  {moment(row['max_timestamp'])}"
    )
    more = "  ".join(_unusual(row))
    if more and len(main) + 2 + len(more) > page.width:
        main, more = main + "\n", f"{'':<13}{more}"
    elif more:
        main += "  "
    wrong = "" if row["crc_valid"] else page.style("  CRC WRONG", "error")
    yield from (main + more + wrong).split("\n")


def _unusual(row: Row) -> Iterator[str]:
    """Attributes that not every batch has."""
    if row["magic"] != 2:
        yield f"magic {row['magic']}"
    if row["partition_leader_epoch"] is not None:
        yield f"epoch {row['partition_leader_epoch']}"
    if row["codec"] != "none":
        yield str(row["codec"])
    if row["producer_id"] not in (None, -1):
        yield f"producer {row['producer_id']}/{row['producer_epoch']}"
    if row["base_sequence"] not in (None, -1):
        yield f"sequence {row['base_sequence']}-{row['last_sequence']}"
    if row["is_control"]:
        yield "control"
    elif row["is_transactional"]:
        yield "transactional"
    if row["delete_horizon_ms"] is not None:
        yield f"delete horizon {moment(row['delete_horizon_ms'])}"


def record(row: Row, page: Page) -> Iterator[str]:
    """Offset, time, key and value, cut to the page."""
    head = f"  {row['offset']!s:<10} {moment(row['timestamp'])}  "
    parts = [f"{named(row, 'key')} = {named(row, 'value')}"]
    if row.get("decoded") is not None:
        parts = [decoded(row["decoded"])]
    headers = row["headers"]
    if isinstance(headers, list) and headers:
        parts.append("headers " + ", ".join(f"{named(h, 'key')}: {named(h, 'value')}" for h in headers))
    text = visible("  ".join(parts))
    room = max(20, page.width - len(head))
    yield head + (text if len(text) <= room else text[: room - 1] + "…")


def decoded(value: object) -> str:
    """A decoded record; a control record by its name."""
    import json

    if isinstance(value, dict) and "name" in value:
        fields = (f"{key} {json.dumps(field)}" for key, field in value.items() if key not in ("name", "type"))
        return " ".join([str(value["name"]), *fields])
    return json.dumps(value, ensure_ascii=False)


def named(row: Row, name: str) -> str:
    """A key or value for people."""
    if row.get(f"{name}_base64") is not None:
        return f"base64:{row[f'{name}_base64']}"
    value = row.get(name)
    return "null" if value is None else value if isinstance(value, str) else repr(value)


def finding(row: Row, page: Page) -> Iterator[str]:
    """Severity, code and place, then the message."""
    severity = str(row["severity"])
    place = ""
    if row["position"] is not None:
        place = f"bytes {number(row['position'])}+{number(row['size_in_bytes'])}"
    yield f"{page.style(f'{severity:<8}', severity)} {row['code']}  {place}".rstrip()
    yield f"         {row['message']}"


LINES = {"batch": batch, "record": record, "finding": finding}
