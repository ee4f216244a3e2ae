"""`kctl inventory`, also `kctl FOLDER`: what evidence holds, by broker, and what kctl makes of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import cast

from commands.cli.evidence_options import EvidenceOptions, evidence
from commands.cli.frame import Frame, command
from commands.cli.leaving import NEXT, visible
from commands.cli.render import Outcome, Page, Row, size
from formats.words import counted
from kctl.errors import KctlError
from kctl.model import command_line
from kctl.stores.mirror import given_name

SHOWN = 8  # files of one kind that are named
SHOWN_BROKERS = 12
HEADINGS = (("log-dirs", "log directories"), ("logs", "logs"), ("settings", "settings"), ("tier", "tier"), ("znodes", "znodes"))  # fmt: skip


@command("inventory", status="0 listed · 3 a path, or something below it, could not be opened")
@evidence("broker")
def inventory(frame: Frame, options: EvidenceOptions) -> Outcome:
    """List what evidence holds: each file, what it was recognised as, what was understood of it.

    `kctl FOLDER` does the same. At most 256 KiB at the start of each file are read, and 64 KiB further on in
    logs that several processes print into; nothing is written.

    $ kctl evidence/
    $ kctl inventory evidence/ --output jsonl | jq 'select(.kind == "evidence_file" and .is_read == false)'
    """
    from kctl.evidence.discover import given_broker_folders
    from kctl.evidence.inventory import Inventory
    from kctl.evidence.walk import opened_roots

    failures: list[KctlError] = []
    folders = given_broker_folders(options.brokers)
    roots = tuple(opened_roots(options.paths, failures))
    for failure in failures:
        frame.report(failure)
    if not roots:
        return Outcome()

    def rows() -> Iterator[Row]:
        for row in Inventory(roots, folders).rows():
            if row.get("what") == "unreadable":
                frame.raise_status(3)
            yield row

    return Outcome(rows(), text=lambda rows, page: picture(rows, page, options.paths))


def picture(
    rows: Iterable[Row], page: Page, paths: tuple[str, ...], *, next_command: bool = True
) -> Iterator[str]:
    """What is there by broker, then by name what was not understood and what no command reads."""
    odd, left = _Named(), _Named()
    groups: list[Row] = []
    total: Row = {}
    for row in rows:
        if row["kind"] == "evidence_file":
            looked_at, understood = cast("int", row["looked_at"]), cast("int", row["understood"])
            if row["is_read"] and 10 * understood < 9 * looked_at:
                odd.add(row)
            elif not row["is_read"] and row["what"] != "empty":
                left.add(row)
        elif row["kind"] == "evidence_group":
            groups.append(row)
        else:
            total = row
    brokers = cast("list[int]", total["brokers"])
    of_brokers = f" of {counted(len(brokers), 'broker')}" if brokers else ""
    name = given_name(" ".join(paths))
    yield page.style(
        f"{name}: {counted(cast('int', total['files']), 'file')}, {size(total['bytes'])}{of_brokers}", "bold"
    )
    yield ""
    yield from _table_of(groups, page)
    yield ""
    read = [row for row in groups if row["group"] != "other"]
    looked_at, understood = (
        sum(cast("int", row[name]) for row in read) for name in ("looked_at", "understood")
    )
    if not read:
        yield page.style("no file here is one of Kafka's: nothing that kctl can judge", "warning")
    elif looked_at:
        yield f"understood  {_share(understood, looked_at)} of the starts of the files that commands read ({size(looked_at)})"
    else:
        yield "understood  nothing was read: names alone tell what the files are"
    yield from odd.lines("not understood", page)
    yield from left.lines("read by no command", page)
    if next_command and (proposed := _next(groups, [given_name(path) for path in paths])):
        yield f"{NEXT}{proposed}"


def _share(part: int, whole: int) -> str:
    return "all" if part == whole else f"{min(part / whole, 0.999):.1%}"


class _Named:
    """The first files of a kind, and how many more there are."""

    def __init__(self) -> None:
        self.first: list[Row] = []
        self.count = 0

    def add(self, row: Row) -> None:
        self.count += 1
        if len(self.first) < SHOWN:
            self.first.append(row)

    def lines(self, title: str, page: Page) -> Iterator[str]:
        """A line a file, under a title."""
        if not self.count:
            return
        yield ""
        yield page.style(f"{title}: {counted(self.count, 'file')}", "warning")
        cells = [(visible(str(row["file"])), size(row["size_in_bytes"]), _why(row)) for row in self.first]
        room = max(page.width - 15 - max(len(why) for _, _, why in cells), 24)
        widest = min(max(len(name) for name, _, _ in cells), room)
        for name, bytes_, why in cells:
            shown = name if len(name) <= widest else f"…{name[1 - widest :]}"
            yield f"  {shown:<{widest}}  {bytes_:>9}  {why}"[: max(page.width, 60)]
        if self.count > len(self.first):
            yield f"  and {self.count - len(self.first):,} more, which `--output jsonl` lists"


def _why(row: Row) -> str:
    what = str(row["what"])
    if row["lines"] is not None and row["is_read"]:
        return f"{row['lines_understood']:,} of {counted(row['lines'], 'line')}" + (
            f"; {row['note']}" if row["note"] else ""
        )
    return visible(str(row["note"])) if row["note"] else what


def _table_of(groups: list[Row], page: Page) -> Iterator[str]:
    """A line a broker, a column a group that any of them has; groups of no broker below."""
    by_broker: dict[int | None, dict[str, Row]] = {}
    for row in groups:
        by_broker.setdefault(cast("int | None", row["broker_id"]), {})[str(row["group"])] = row
    of_brokers = {broker: of for broker, of in by_broker.items() if broker is not None}
    columns = [pair for pair in HEADINGS if any(pair[0] in of for of in of_brokers.values())]
    lines = [["", *(heading for _, heading in columns)]]
    for broker, of in islice(of_brokers.items(), SHOWN_BROKERS):
        lines.append([f"broker {broker}", *(_cell(of.get(group)) for group, _ in columns)])
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for i, line in enumerate(lines if of_brokers else ()):
        text = "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        yield page.style(text, "dim") if i == 0 else text
    if len(of_brokers) > SHOWN_BROKERS:
        yield f"and {counted(len(of_brokers) - SHOWN_BROKERS, 'more broker')}"
    titles = {**dict(HEADINGS), "other": "other"}
    rest = [(titles[group], row) for group, row in by_broker.get(None, {}).items()]
    rest += [("other", row) for of in of_brokers.values() for group, row in of.items() if group == "other"]
    if rest and of_brokers:
        yield ""
    merged: dict[str, list[Row]] = {}
    for title, row in rest:
        merged.setdefault(title, []).append(row)
    width = max(map(len, merged), default=0)
    for title, rows in merged.items():
        summed = {name: sum(cast("int", row[name]) for row in rows) for name in ("files", "bytes", "folders")}
        of_whom = "  of no known broker" if title in ("log directories", "logs") else ""
        yield f"{title:<{width}}  {_cell(cast('Row', summed))}{of_whom}"


def _cell(row: Row | None) -> str:
    if row is None:
        return "-"
    folders = cast("int", row["folders"])
    what = counted(folders, "partition") if folders else counted(cast("int", row["files"]), "file")
    return f"{what}, {size(row['bytes'])}"


def _next(groups: list[Row], names: list[str]) -> str | None:
    have = {str(row["group"]) for row in groups}
    if have & {"log-dirs", "tier"}:
        return command_line("kctl audit run", names, ["--out", "report"])
    return command_line("kctl state-log timeline", names) if "logs" in have else None
