"""Lines behind a mark of any kind."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

from formats.broker_logs.carrier_names import carrier_name
from formats.broker_logs.exports.carried import (
    ANY_HEAD,
    LOGGER_AT_END,
    QUOTED,
    STAMP,
    STAMP_EXPRESSION,
    CarriedLine,
    Document,
    head_at,
    lines_of,
    of_second,
    of_stamp,
    within_quotes,
)
from formats.broker_logs.exports.copied_lines import FENCE
from formats.broker_logs.exports.origins import name_of, origin_in

_CRI = re.compile(
    rf"(?P<stamp>{STAMP_EXPRESSION})\.(?P<fraction>\d{{1,9}})(?P<zone>Z|[+-]\d\d:\d\d) std(?:out|err) (?P<tag>[FP]) ?(?P<text>.*)"
)


def node_document(text: str) -> Document | None:
    lines = [line for line in text.split("\n") if line.strip()][:200]
    if 2 * sum(_CRI.match(line) is not None for line in lines) <= len(lines):
        return None
    return Document("lines of a Kubernetes node", _cri_lines)


def _cri_lines(chunks: Iterator[bytes]) -> Iterator[CarriedLine]:
    for number, line in enumerate(lines_of(chunks), 1):
        match = _CRI.match(line)
        if match is None:
            yield CarriedLine(number, line)
        else:
            stamp, fraction, zone, tag, text = match.groups()
            second = of_second(stamp, zone)
            millis = second * 1000 + int(f"{fraction:0<3}"[:3]) if isinstance(second, int) else None
            yield CarriedLine(number, text, "", millis, tag == "P")


def marked_document(text: str) -> Document | None:
    lines = [line for line in text.split("\n") if line.strip()][:200]
    heads = [(line, at) for line in lines if (at := head_at(line)) is not None]
    begun = [line for line in lines if not line[:1].isspace()]
    # A line that a text quotes makes no log of it.
    if len(heads) < 2 or 3 * len(heads) < len(begun) or all(at == 0 for _, at in heads):
        return None
    marks = _marks([line[:at] for line, at in heads])
    tails = [_behind_logger(line[at:]) for line, at in heads]
    is_framed = 2 * sum(map(bool, tails)) > len(tails)
    example = heads[0][0][: heads[0][1]].strip()
    return Document(
        f"lines behind a mark like '{name_of(example)[:60]}'",
        partial(_marked_lines, marks=marks, tails=set(tails) if is_framed else None),
    )


def _marks(examples: list[str]) -> list[re.Pattern[str]]:
    """Expressions of the marks of lines, by which lines without a head lose theirs too: the words that all have stay."""
    by_shape: dict[tuple[str, ...], list[list[str]]] = {}
    for example in examples:
        parts = re.split(r"(\s+|[\[\](){}<>|\"'=])", example)
        by_shape.setdefault(tuple(part if i % 2 else "" for i, part in enumerate(parts)), []).append(parts)
    shapes = sorted(by_shape.values(), key=len, reverse=True)[:8]
    out = []
    for parts_of_all in shapes:
        expression = ""
        for place, part in enumerate(parts_of_all[0]):
            words = {parts[place] for parts in parts_of_all}
            if place % 2:
                # A tab behind the mark belongs to the line.
                is_same = len(words) == 1 or not part.isspace()
                expression += re.escape(part) if is_same else " +"
            elif words == {""}:
                pass
            elif len(words) == 1 and not re.search(r"\d", part):
                expression += re.escape(part)
            else:
                expression += r"[\w.:,;/+@#-]*"
        if expression:
            out.append(re.compile(expression))
    return out


# The head of a line before its text, and the signs that an export puts around a line.
_BEFORE_TEXT = re.compile(rf"(?:{ANY_HEAD.pattern})\s*(?:\[[^\]]*\]\s*)?")
_SIGNS = re.compile(r"(?:[^\w\s]|\s|</?\w+ ?/?>)+")
_OPENING = {"]": "[", "}": "{", ")": "(", ">": "<"}


def _behind_logger(text: str) -> str:
    """What stands behind the logger at the end of a line; nothing of one that has its logger before its text."""
    loggers = [logger for logger in LOGGER_AT_END.finditer(text) if "." in logger[0]]
    head = _BEFORE_TEXT.match(text)
    if not loggers or (head and loggers[-1].start() < head.end()):
        return ""
    return text[loggers[-1].end() :].strip()


def _is_of_mark(tail: str, mark: str, tails: set[str]) -> bool:
    """Whether what stands behind a line is put there with its mark, as it is behind each or ends what the mark begins."""
    if _SIGNS.fullmatch(tail):
        return True
    if tail[:1] == "[" and tail[-1:] == "]":
        return False  # the thread, which some layouts have there
    opening = _OPENING.get(tail[-1:])
    return tails == {tail} or (opening is not None and mark.count(opening) > mark.count(tail[-1]))


def _marked_lines(
    chunks: Iterator[bytes], marks: list[re.Pattern[str]], tails: set[str] | None
) -> Iterator[CarriedLine]:
    """`tails`: what stands behind the first lines, where something stands behind most; it may name the process."""
    mark = tail = ""
    for number, line in enumerate(lines_of(chunks), 1):
        at = head_at(line)
        if (
            at is None
            and mark
            and line.startswith(mark[:-1])
            and line[len(mark) - 1 :][:1] in (mark[-1], "-")
        ):
            text = line[len(mark) :]  # the same mark; `grep -A` ends it with a hyphen
        else:
            if at is None:
                matches = (match for expression in marks if (match := expression.match(line)))
                longest = max(matches, key=lambda match: match.end(), default=None)
                at = longest.end() if longest else 0
            mark, text = line[:at], line[at:]
        text = text.rstrip()
        if at is None and FENCE.fullmatch(text):
            continue
        if mark[-1:] in QUOTED and (at is not None or tail):
            text = within_quotes(mark[-1], text)
        if tails is not None and at is not None:
            tail = _behind_logger(text)
            if tail and not _is_of_mark(tail, mark, tails):
                tail = ""
        if tail and text.endswith(tail):
            text = text[: -len(tail)].rstrip()
        stamp = STAMP.search(mark)
        time = of_stamp(stamp) if stamp else None
        origin = origin_in(f"{mark} {tail}" if tail and carrier_name(tail) else mark)
        yield CarriedLine(number, text, origin, time[0] if time else None)
