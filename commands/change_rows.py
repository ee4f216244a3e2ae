"""How a change looks: its rows, the diff of a plan, and the sentence at the end."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from commands.render import Page, Row, aligned

if TYPE_CHECKING:
    from kctl.changes.entry import Entry, RecordedStage
    from kctl.changes.plan import Plan, Stage
    from kctl.errors import KctlError


def change_row(entry: Entry) -> Row:
    """The `change` row of a journal entry."""
    from kctl.rows.changes import CHANGE

    return CHANGE(
        id=entry.id,
        time=entry.time,
        who=entry.who,
        command=entry.command,
        cluster_id=entry.cluster_id,
        reason=entry.reason,
        state=entry.state,
        title=entry.title,
        finished=entry.is_finished,
        undoes=entry.undoes,
        outcome=entry.outcome,
    )


def refused_rows(error: KctlError) -> Iterator[Row]:
    """A row for each item of a request that a broker refused."""
    from kctl.rows.changes import REFUSED

    for item in error.items:
        yield REFUSED(**item._asdict())


def write_rows(plan: Plan | Entry) -> Iterator[Row]:
    """A row for each write of a plan or of a journal entry, secrets redacted."""
    from formats.znode_secrets import redact
    from kctl.rows.changes import WRITE

    stages: Sequence[Stage | RecordedStage] = plan.stages
    for index, stage in enumerate(stages):
        for write in stage.writes:
            shown = [
                None if data is None else redact(write.target, data).decode("utf-8", "replace")
                for data in (write.before, write.after)
            ]
            yield WRITE(
                stage=index,
                intent=str(stage.intent),
                action=write.action,
                target=write.target,
                version=write.version,
                before=shown[0],
                after=shown[1],
                size_in_bytes=write.size_in_bytes,
            )


def dry_run_text(rows: Iterable[Row], page: Page) -> Iterator[str]:
    """The writes of a plan as a diff; other rows in columns before it. Checks are left out."""
    listed = list(rows)
    others = [row for row in listed if row["kind"] != "write"]
    yield from aligned(others, page)
    stage: object = None
    for row in listed:
        if row["kind"] != "write" or row["action"] == "check":
            continue
        if row["stage"] != stage:
            stage = row["stage"]
            yield page.style(str(row["intent"]), "bold")
        size = f", {row['size_in_bytes']:,} bytes" if row["size_in_bytes"] else ""
        yield f"  {row['target']}   {row['action']}{size}"
        yield from difference(row["before"], row["after"], page)


def difference(before: object, after: object, page: Page) -> Iterator[str]:
    """What changes from one JSON to another, a line a value."""
    was, becomes = _flat(before), _flat(after)
    for key in sorted(was.keys() | becomes.keys(), key=lambda key: (len(key.split(".")), key)):
        if was.get(key) != becomes.get(key):
            old, new = was.get(key, "(none)"), becomes.get(key, "(none)")
            yield (
                f"      {key or 'content'}   {page.style(old, 'dim')} -> {new}"
                if before
                else f"      {key}   {new}"
            )


def _flat(content: object) -> dict[str, str]:
    if not content:
        return {}
    try:
        value = json.loads(str(content))
    except ValueError:
        return {"": str(content)}
    found: dict[str, str] = {}

    def into(prefix: str, one: object) -> None:
        if isinstance(one, dict):
            for key, below in one.items():
                into(f"{prefix}.{key}" if prefix else str(key), below)
        elif isinstance(one, list) and any(isinstance(below, dict) for below in one):
            for index, below in enumerate(one):
                into(f"{prefix}[{index}]", below)
        else:
            found[prefix] = json.dumps(one, separators=(",", ":"))

    into("", value)
    return found


def change_text(rows: Iterable[Row], page: Page) -> Iterator[str]:
    """Rows of other kinds in columns, then a sentence about the change."""
    listed = list(rows)
    yield from aligned([row for row in listed if row["kind"] not in ("change", "refused")], page)
    for row in listed:
        if row["kind"] == "refused":
            said = f": {row['reason']}" if row["reason"] else ""
            yield f"{row['what']}: {page.style(str(row['error']), 'error')}{said}"
        elif row["kind"] == "change":
            done = "done" if row["finished"] else str(row["state"]).replace("_", " ")
            yield f"{row['title']}: {page.style(done, 'good' if row['finished'] else 'warning')}"
            if row["outcome"]:
                yield f"  {row['outcome']}"
            back = f"; `kctl journal undo {row['id']}` takes it back" if row["state"] != "planned" else ""
            yield page.style(f"journal entry {row['id']}{back}", "dim")


def journal_rows(entry: Entry) -> Iterator[Row]:
    """The change, its stages, and every write of them."""
    from kctl.rows.changes import JOURNAL_ENTRY

    yield change_row(entry)
    for index, stage in enumerate(entry.stages):
        yield JOURNAL_ENTRY(
            id=entry.id,
            stage=index,
            intent=str(stage.intent),
            state=stage.state,
            writes=len(stage.writes),
            undo=[str(intent) for intent in stage.undo] or [stage.undo_refused],
        )
    yield from write_rows(entry)


def journal_text(rows: Iterable[Row], page: Page) -> Iterator[str]:
    """Who, when and why, then each stage with its writes and its way back."""
    for row in rows:
        if row["kind"] == "change":
            yield page.style(str(row["title"]), "bold")
            yield f"  {row['state']}; {row['time']} by {row['who']}" + (
                f": {row['reason']}" if row["reason"] else ""
            )
            yield f"  {row['command']}"
            if row["outcome"]:
                yield f"  {row['outcome']}"
        elif row["kind"] == "change_stage":
            undo = row["undo"]
            assert isinstance(undo, list)
            yield f"stage {row['stage']}: {row['intent']}, {row['state']}"
            yield page.style(f"  back: {'; '.join(map(str, undo)) or 'nothing to do'}", "dim")
        elif row["action"] != "check":
            yield f"  {row['target']}   {row['action']}"
            yield from difference(row["before"], row["after"], page)
