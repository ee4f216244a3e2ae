"""Exports in XML: events of log4j and of Windows, and rows."""

from __future__ import annotations

import codecs
import html
import itertools
import re
from collections.abc import Iterator
from functools import partial

from formats.broker_logs.exports.carried import MOST_DEPTH, CarriedLine, Document
from formats.broker_logs.exports.fields import Fields, keys_in_words
from formats.broker_logs.exports.origins import trace_of

# Events of the XML layouts of log4j and log4j 2 and of Windows, and rows of exports. No document is built and no entity
# is looked up.
XML_EVENT = re.compile(r"<((?:log4j:)?event|result|row|record|entry|doc)\b(?=[^<>]{0,4000}>)", re.IGNORECASE)
XML_TAG = re.compile(
    r"<!\[CDATA\[(.*?)\]\]>|<(/?)([\w:.-]+)((?:\s+[\w:.-]+=(?:\"[^\"<]*\"|'[^'<]*'))*)\s*/?>", re.DOTALL
)
XML_ATTRIBUTE = re.compile(r"([\w:.-]+)=(?:\"([^\"]*)\"|'([^']*)')")
LONGEST_TAG = 5000
LONGEST_EVENT = 1 << 20
"""Characters of an event; a longer one is left out."""


def xml_document(text: str) -> Document | None:
    fields = Fields()
    if XML_EVENT.search(text) is None or next(_xml_lines(iter([text.encode()]), fields), None) is None:
        return None
    return Document(f"events in XML, the text in {keys_in_words(fields)}", partial(_xml_lines, fields=fields))


def _xml_lines(chunks: Iterator[bytes], fields: Fields) -> Iterator[CarriedLine]:
    """The lines of events, about one of which is held."""
    decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
    number, text = 1, ""
    for chunk in itertools.chain(chunks, (b"",)):
        text += decoder.decode(chunk, final=not chunk)
        place = 0
        while start := XML_EVENT.search(text, place):
            end = _end_of_event(text, start)
            if end < 0 and len(text) - start.start() <= LONGEST_EVENT:
                number += text.count("\n", place, start.start())
                place = start.start()
                break
            number += text.count("\n", place, start.start())
            # No event ends behind one that is too long: to look for the end of each would take long.
            place = end if end >= 0 else max(start.end(), len(text) - LONGEST_TAG)
            if end >= 0:
                yield from fields.lines(_of_event(text[start.start() : end]), number)
            number += text.count("\n", start.start(), place)
        else:
            # The beginning of an event may be cut.
            kept = max(place, len(text) - LONGEST_TAG)
            number += text.count("\n", place, kept)
            place = kept
        text = text[place:]


def _end_of_event(text: str, start: re.Match[str]) -> int:
    """Where an event ends; -1 where its end is not there yet."""
    place, closing = start.end(), f"</{start[1]}>"
    end = text.find(closing, place)
    while end >= 0:
        quoted = text.find("<![CDATA[", place, end)
        if quoted < 0:
            return end + len(closing)
        place = text.find("]]>", quoted)
        if place < 0:
            return -1
        if end < place:
            end = text.find(closing, place)
    return -1


def _of_event(text: str) -> dict[str, object]:
    """The attributes of an event and what its elements hold, by their names; those of a stack trace as its lines."""
    fields: dict[str, object] = {}
    names: list[str] = []
    trace: list[object] = []
    place = 0
    for token in XML_TAG.finditer(text):
        if names and token.start() > place:
            _append(fields, names[-1], _plain(text[place : token.start()]))
        place = token.end()
        cdata, closing, tag, attributes = token.groups()
        if cdata is not None:
            _append(fields, names[-1] if names else "event", cdata)
            continue
        if closing:
            if names:
                names.pop()
            continue
        values: dict[str, object] = {
            name: _plain(double or single) for name, double, single in XML_ATTRIBUTE.findall(attributes)
        }
        name = tag.rpartition(":")[2].lower()
        if not names:
            fields |= values
        elif name == "instant" and all(str(value).isdecimal() for value in values.values()):
            fields[name] = {key: int(str(value)[:19]) for key, value in values.items()}
        elif "class" in values and "method" in values:
            trace.append(values)
        elif "value" in values and ("key" in values or "name" in values):  # of a context or properties
            fields.setdefault(str(values.get("key") or values.get("name")), values["value"])
        elif name == "thrown":
            said = f": {values['message']}" if values.get("message") else ""
            fields["thrown"] = f"{values.get('name', '')}{said}"
        elif set(values) & {"k", "name", "key"} and not token[0].endswith("/>") and "value" not in values:
            name = str(values.get("k") or values.get("name") or values.get("key"))
        elif names and name in ("value", "text", "v", "sg"):  # what a field of an export holds
            name = names[-1]
        if not token[0].endswith("/>") and len(names) < MOST_DEPTH:
            names.append(name)
    if trace:
        fields["thrown"] = f"{fields.get('thrown', '')}{trace_of(trace)}"
    return {key: value.strip() if isinstance(value, str) else value for key, value in fields.items()}


def _append(fields: dict[str, object], name: str, text: str) -> None:
    before = fields.get(name, "")
    if isinstance(before, str) and (text.strip() or before):
        fields[name] = before + text


def _plain(text: str) -> str:
    """A text of XML without its references to characters."""
    return html.unescape(text) if "&" in text else text
