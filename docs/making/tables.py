"""The columns of docs/tables.md, from the schemas that audits are written by: `python -m docs.making.tables` writes them."""

import re
from collections.abc import Iterator
from pathlib import Path

from docs.making.reference import plain, table
from kctl.audit.tables import TABLES
from kctl.rows import RowField, row_type
from kctl.scan.tables import arrow_schema

PAGE = Path(__file__).parents[1] / "tables.md"
MADE = re.compile(r"(?s)(?<=<!-- made by docs/making/tables.py -->\n).*(?=<!-- end -->)")

WHOSE = ("evidence", "moment", "broker_id")
KEYS: dict[str, tuple[str, ...]] = {
    "files": ("evidence", "moment", "file"),
    "findings": (),
    "segments": ("evidence", "moment", "file"),
    "batches": ("evidence", "moment", "file", "position"),
    "checkpoints": (*WHOSE, "file", "topic", "partition", "epoch", "offset"),
    "lineages": (*WHOSE, "topic", "partition"),
    "divergences": ("moment", "topic", "partition", "from_offset", "broker_ids"),
    "verdicts": ("moment", "topic", "partition"),
    "losses": ("topic", "partition", "from_offset"),
    "judgements": ("question", "moment", "broker_id", "topic", "partition"),
    "leaders": ("cluster", "topic", "partition", "leader_epoch"),
    "broker_states": ("broker_id", "time", "state"),
    "groups": ("group",),
    "members": ("group", "member_id"),
    "committed_offsets": ("group", "topic", "partition"),
    "transactions": ("transactional_id",),
    "open_transactions": ("topic", "partition", "producer_id"),
    "metadata": (),
    "metadata_brokers": ("broker_id",),
    "metadata_topics": ("topic",),
    "metadata_partitions": ("topic", "partition"),
    "remote_segments": ("remote_log_segment_id",),
    "tier_partitions": ("topic", "partition"),
}
"""The columns that tell a row of a table from every other; a test holds them against audits."""
IN_LOG_ORDER = ("batches",)
BY_KEY = (
    "leaders", "losses", "groups", "committed_offsets", "transactions", "open_transactions", "metadata_brokers",
    "metadata_topics", "metadata_partitions",
)  # fmt: skip
"""Tables whose rows are sorted by their keys."""
UNITS = (
    ("horizon_ms", "ms since 1970"),
    ("_ms", "ms"),
    ("timestamp", "ms since 1970"),
    ("bytes", "bytes"),
    ("position", "byte in the file"),
)


def unit(column: str, field: RowField) -> str:
    """In what a number is, where its name or its text does not say it by itself."""
    if field.types and field.types[0] not in ("integer", "number"):
        return ""
    return next((said for ending, said in UNITS if column.endswith(ending)), "")


def order(name: str) -> str:
    """How the rows of a file lie."""
    if name in IN_LOG_ORDER:
        return "log by log, each in log order; logs in the order in which the evidence is read"
    return "by the key" if name in BY_KEY else "in the order in which the evidence is read"


def columns(name: str) -> Iterator[str]:
    """One table: what a row is, key, order, columns."""
    rows = row_type(TABLES[name])
    key = ", ".join(f"`{column}`" for column in KEYS[name]) or "none: every row counts"
    yield f"### {name}\n\n{plain(rows.doc)} Key: {key}. Order: {order(name)}.\n"
    cells = []
    for column in arrow_schema(rows):
        field = rows.fields.get(column.name, RowField(()))
        said = plain(field.doc or ", ".join(f"`{choice}`" for choice in field.choices))
        kind = f"`{column.type}`" + (" (JSON)" if {"array", "object"} & set(field.types) else "")
        cells.append((f"`{column.name}`", kind, unit(column.name, field), said))
    yield from table("Column", "Type", "Unit", "What it holds", rows=cells)


def text() -> str:
    """The page as it ought to be."""
    made = "\n".join(line for name in TABLES for line in columns(name))
    return MADE.sub(lambda _: f"\n{made}\n", PAGE.read_text("utf-8"))


if __name__ == "__main__":
    PAGE.write_text(text(), encoding="utf-8")
