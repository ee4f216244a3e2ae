"""Rows of `reassign verify` as lines at once: of 10,000 partitions most are done, and differ in nothing but their name.

What follows the partition's number in the line of one that is done is written once for all that are alike in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from commands.reassign_rows import standing_row
from commands.render import Row, json_encoder, tab_separated, text_cell

if TYPE_CHECKING:
    from kctl.cluster.state import ClusterState, Replicas
    from kctl.cluster.verification import Standing

AT_ONCE = 1000  # lines


class Form(NamedTuple):
    """How a line is written: whole, and a topic's name in it; what is before the name and behind it."""

    header: bytes
    line: Callable[[Row], bytes]
    name: Callable[[str], bytes]
    begin: bytes
    between: bytes


def standing_lines(standings: Iterable[Standing], state: ClusterState, form: str) -> Iterator[bytes] | None:
    """What the rows of standings are in an output form, many lines in a part; None for a form without lines."""
    if form == "json":
        return None
    return _parts(standings, state, _json_lines() if form == "jsonl" else _tab_separated())


def _json_lines() -> Form:
    encode = json_encoder()
    return Form(
        b"",
        lambda row: encode(row) + b"\n",
        lambda name: encode({"": name})[len(b'{"":') : -1],
        b'{"kind":"partition","topic":',
        b',"partition":',
    )


def _tab_separated() -> Form:
    from kctl.rows.reassign import PARTITION

    def line(row: Row) -> bytes:
        _, found = tab_separated([row])
        return f"{found}\n".encode("utf-8", "surrogateescape")

    return Form(
        "\t".join(PARTITION.required).encode() + b"\n",
        line,
        lambda name: text_cell(name).encode("utf-8", "surrogateescape"),
        b"partition\t",
        b"\t",
    )


def _parts(standings: Iterable[Standing], state: ClusterState, form: Form) -> Iterator[bytes]:
    lines = _lines(standings, state, form)
    header = form.header
    while part := list(islice(lines, AT_ONCE)):
        yield header + b"".join(part)
        header = b""


def _lines(standings: Iterable[Standing], state: ClusterState, form: Form) -> Iterator[bytes]:
    names: dict[str, bytes] = {}
    tails: dict[tuple[Replicas, Replicas, Replicas, int | None], bytes] = {}
    for one in standings:
        (topic, number), verdict, target, replicas, isr, leader, *more = one
        name = names.get(topic)
        if name is None:
            name = names[topic] = form.begin + form.name(topic) + form.between
        if verdict != "done" or more.count(None) < len(more):
            yield form.line(standing_row(one, state))
            continue
        like = target, replicas, isr, leader
        tail = tails.get(like)
        if tail is None:
            tail = tails[like] = form.line(standing_row(one, state))[len(name) + len(str(number)) :]
        yield b"%b%d%b" % (name, number, tail)
