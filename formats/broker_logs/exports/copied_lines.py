"""Lines of Kafka's own layout that people put together or copied: below headings that name their processes, or wrapped."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from functools import partial

from formats.broker_logs.carrier_names import carrier_name
from formats.broker_logs.exports.carried import (
    LOGGER_AT_END,
    OWN_HEAD,
    QUOTED,
    CarriedLine,
    Document,
    head_at,
    lines_of,
    within_quotes,
)
from formats.broker_logs.exports.origins import LONGEST_ORIGIN, NOBODY, name_of, origin_in, place_of

# What `tail`, Ansible, a prompt, and what people print between the logs of several hosts look like.
_RUN = r"-=#*~+:>"
_TAG = r"</?(?:h\d|b|strong|summary|details|p|div|title|code|tt)(?: [^<>]*)?>"
HEADING = re.compile(
    rf"==> (?P<file>.+) <=="
    rf"|(?:ok|changed|fatal|failed): \[(?P<host>[\w.-]+)\].*|\[\d+\] [\d:]+ \[(?:SUCCESS|FAILURE)\] (?P<ssh>[\w.@:-]+).*|(?P<task>\S+) \| [A-Z]+!? \| rc=-?\d+ >>|\[?\w+@(?P<prompt>[\w.-]+)[: ][^\]$#]*\]?[$#] .*"
    rf"|(?P<run>[{_RUN}])(?P=run)+ ?(?!BEGIN|END)(?P<framed>[\w/@][\w./:@-]*)(?:[: ].{{0,80}}?)? ?(?P=run){{2,}}"
)
NAMED_HEADING = re.compile(
    rf"(?:{_TAG})+(?P<markup>[\w.-]+)(?:{_TAG})+|{{code:(?:.*\|)?title=(?P<code>[\w.-]+)(?:\|.*)?}}"
    rf"|(?P<person>[\w.-]+)(?: APP)?  ?\d\d?:\d\d(?: [AP]M)?|[{_RUN}<|\s]*(?:(?:\w*host|(?:host|computer|node|pod|container|ps_?computer)_?name|node|server|broker|pod|container|source|instance)"
    rf"\s*[:=]\s*)?[\"'\[(]?(?P<name>[\w./@-]+?)[\])\"']?:?(?:[ :]+[\w./-]+\.(?:log|out)\S*)?[{_RUN}<|\s]*",
    re.IGNORECASE,
)
FIELD = re.compile(r"[ \t]*(?:[\w-]+\s*[:=]\s*)?(?:['\"]?|```|(?:<[^<>]+>)+)")
KEY = re.compile(r"[ \t]*(?:(?:-|->) +)?[\"']?[\w.@/-]+[\"']?[ \t]*(?::|=>|=)")
FENCE = re.compile(r"```\w*|~~~+|\{code\}|(?:</?[a-z]\w*(?: [^<>]*)?>)+")
"""A line that begins or ends a part of a text, and is none of a log."""
RULE = re.compile(rf"([{_RUN}])\1{{4,}}\s*")
NAME_ALONE = re.compile(r"[\w./:@-]+")
MOST_WAITING = 1000
"""Blank lines and rules that may belong to a heading."""


def _heading(line: str, before: str) -> str | None:
    """What a line names that stands above lines of one process, behind a line; None for any other."""
    if (
        not line
        or len(line) > LONGEST_ORIGIN
        or line[0].isspace()
        or (line[0] == "[" and line[1:5].isdigit())
    ):
        return None
    match = HEADING.fullmatch(line) or NAMED_HEADING.fullmatch(line)
    name = next(group for key, group in match.groupdict().items() if group and key != "run") if match else ""
    if match and (match.re is HEADING or carrier_name(name) is not None):
        pass
    elif RULE.fullmatch(before) and NAME_ALONE.fullmatch(line):
        name = line
    else:
        return None
    return place_of(name) or NOBODY


def headed_document(text: str) -> Document | None:
    lines = text.split("\n")
    headings = [
        line
        for before, line in itertools.pairwise(["", *lines])
        if _heading(line.rstrip("\r"), before.rstrip("\r"))
    ]
    heads = [line[:at] for line in lines if (at := head_at(line)) is not None]
    # A mark before the lines themselves tells more.
    if not headings or 2 * sum(not FIELD.fullmatch(mark) and origin_in(mark) != "" for mark in heads) >= len(
        heads
    ):
        return None
    fields = [line for line in headings if KEY.match(line) and not line.rstrip().endswith(":")]
    if 2 * len(fields) > len(headings) and 2 * sum(map(bool, map(KEY.match, heads))) > len(heads):
        # Fields of records, any of which may stand behind the text. What reads them is loaded for them alone.
        from formats.broker_logs.exports.records import records_document

        if records := records_document(text):
            return records
    return Document(
        f"lines below headings like '{name_of(headings[0].strip())[:60]}'", _headed_lines, is_plain=True
    )


def _headed_lines(chunks: Iterator[bytes]) -> Iterator[CarriedLine]:
    origin, before, indent = NOBODY, "", 0
    waiting: list[CarriedLine] = []  # blank lines and rules, which may belong to a heading
    for number, line in enumerate(lines_of(chunks), 1):
        name = _heading(line, before)
        if name is not None:
            origin, waiting = name, []
        elif FENCE.fullmatch(line):
            pass
        elif not line or RULE.fullmatch(line):
            if not RULE.fullmatch(line) or not before or _heading(before, "") is None:
                waiting.append(CarriedLine(number, line, origin))
            if len(waiting) > MOST_WAITING:
                yield from waiting
                waiting = []
        else:
            yield from waiting
            waiting = []
            at = head_at(line)
            if at is not None and FIELD.fullmatch(line, 0, at):
                indent = at
            # Further lines of a record are indented as its first one is, or follow what stands before that.
            is_cut = at == indent or not line[:indent].strip()
            text = line[indent:] if is_cut else line
            if at == indent and indent and (quote := line[indent - 1]) in QUOTED:
                text = within_quotes(quote, text)
            yield CarriedLine(number, text.removesuffix("```"), origin)
        before = line
    yield from waiting


def wrapped_document(text: str) -> Document | None:
    """Lines of Kafka's own layout that were copied from a screen of some width."""
    lines = [line.rstrip("\r") for line in text.split("\n")]
    width = max(map(len, lines))
    full = [place for place, line in enumerate(lines[:-1]) if len(line) == width]
    cut = [
        place
        for place in full
        if not OWN_HEAD.match(lines[place + 1]) and not LOGGER_AT_END.search(lines[place][-80:] + "$")
    ]
    ended = sum(bool(re.search(r" \([\w.$]+(?::\d+)?\)\s*$", line)) for line in lines if OWN_HEAD.match(line))
    heads = sum(bool(OWN_HEAD.match(line)) for line in lines)
    if width < 60 or width > 1000 or len(full) < 2 or 2 * len(cut) < len(full) or 2 * ended > heads:
        return None
    return Document(f"lines wrapped at {width} columns", partial(_unwrapped, width=width), is_plain=True)


def _unwrapped(chunks: Iterator[bytes], width: int) -> Iterator[CarriedLine]:
    first, parts = 1, list[str]()
    for number, line in enumerate(lines_of(chunks), 1):
        if parts and (len(parts[-1]) != width or OWN_HEAD.match(line) or len(parts) > 10_000):
            yield CarriedLine(first, "".join(parts))
            parts = []
        if not parts:
            first = number
        parts.append(line)
    if parts:
        yield CarriedLine(first, "".join(parts))
