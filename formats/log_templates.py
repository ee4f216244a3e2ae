"""Which template of the table a log line is: patterns to regular expressions, and the fields with their types.

A pattern is the sentence that Kafka prints with `{name:type}` for what varies and «» around what is not
always there. The first letter stands for either case: sentences that began in lower case after the identity
of Kafka 0.8 begin in upper case after the bracketed one of 1.0. The rows of the table stand in the modules
`log_templates_...` beside this one, by log file and subject; a line that Kafka prints and the table lacks is
one more row there.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

FIELD_TYPES = {
    "i": r"-?\d+",
    "w": r"\S+",
    "s": r".*?",
    "L": r"[-\d, ]*",
    "b": r"true|false",
    "tp": r"\[[\w.-]+, ?\d+\]|[\w.-]+-\d+",
    "tid": r"Some\([\w-]{22}\)|None|[\w-]{22}",
    "st": r"[A-Z]\w+",
    "opt": r"Some\(-?\d+\)|None",
    "um": r"\(under-min-isr\)|",
}
PIECES = re.compile(r"(\{\w+:\w+\}|[«»])")


class Template(NamedTuple):
    """One sentence that brokers print."""

    id: str
    versions: str
    """Minor versions whose last patch release prints it, as `0.9–3.9`."""
    level: str
    """T, D, I, W, E, F and where the level changed; `+S`: a stack trace follows."""
    source: str
    """The class that prints it."""
    pattern: str
    meaning: str
    before: str = ""
    """Ids of what normally comes before it."""
    after: str = ""
    """Ids of what normally follows it."""
    sign: str = ""
    """What it is a sign of, where it is more than ordinary work."""

    @property
    def fields(self) -> tuple[tuple[str, str], ...]:
        """Name and type of each field, in order."""
        return tuple(re.findall(r"\{(\w+):(\w+)\}", self.pattern))

    @property
    def words(self) -> int:
        """How many characters of the pattern are fixed: the more, the more a match says."""
        return len(PIECES.sub("", self.pattern))


class Found(NamedTuple):
    """A template that a sentence is, and where its fields stand in it."""

    template: Template
    spans: tuple[tuple[str, str, int, int], ...]
    """Name, type, start and end of each field that is there."""


def expression(pattern: str) -> str:
    """The regular expression of a pattern, groups named as the fields."""
    out = []
    for number, piece in enumerate(PIECES.split(pattern)):
        if piece.startswith("{") and PIECES.fullmatch(piece):
            name, kind = piece[1:-1].split(":")
            out.append(f"(?P<{name}>{FIELD_TYPES[kind]})")
        elif piece == "«":
            out.append("(?:")
        elif piece == "»":
            out.append(")?")
        elif number == 0 and piece[:1].isalpha():
            out.append(f"[{piece[0].upper()}{piece[0].lower()}]{re.escape(piece[1:])}")
        else:
            out.append(re.escape(piece))
    return "".join(out)


@cache
def compiled(template: Template) -> re.Pattern[bytes]:
    """The template as a pattern over bytes; a field's text may hold any byte but a line end or more lines."""
    return re.compile(expression(template.pattern).encode(), re.DOTALL)


def first_words(text: str) -> str:
    """What templates are looked up by: the first two words in lower case, or the first where a field follows."""
    head = re.split(r"[{«»]", text, maxsplit=1)
    words = head[0].split(" ")
    if len(head) > 1:
        # The last word touches a field or an optional part, so that it is not known whole.
        words = words[:-1]
    return " ".join(words[:2]).lower()


class Table:
    """Templates in order, found by the first words of a sentence."""

    def __init__(self, templates: tuple[Template, ...]) -> None:
        self.templates = templates
        self.by_id = {t.id: t for t in templates}
        self._by_words: dict[str, list[Template]] = {}
        for template in templates:
            self._by_words.setdefault(first_words(template.pattern), []).append(template)
        self._place = {t.id: n for n, t in enumerate(templates)}

    def candidates(self, sentence: bytes) -> list[Template]:
        """The templates that may be this sentence, in the order of the table."""
        words = sentence[:200].split(b" ", 2)
        first = words[0].decode("latin-1").lower()
        two = f"{first} {words[1].decode('latin-1').lower()}" if len(words) > 1 else first
        found = [t for key in {two, first, ""} for t in self._by_words.get(key, ())]
        return sorted(found, key=lambda t: self._place[t.id]) if len(found) > 1 else found

    def find(self, sentence: bytes) -> Found | None:
        """The first template that is the whole sentence; None when there is none."""
        for template in self.candidates(sentence):
            match = compiled(template).fullmatch(sentence)
            if match:
                spans = tuple(
                    (name, kind, *match.span(name))
                    for name, kind in template.fields
                    if match.start(name) >= 0
                )
                return Found(template, spans)
        return None


@cache
def state_change_table() -> Table:
    """What `state.change.logger` prints: controllers and brokers."""
    from formats.log_templates_broker_side import BROKER_SIDE
    from formats.log_templates_controller_side import CONTROLLER_SIDE
    from formats.log_templates_replicas import REPLICAS

    return Table((*CONTROLLER_SIDE, *BROKER_SIDE, *REPLICAS))


@cache
def controller_table() -> Table:
    """What the controller's own loggers print, ZooKeeper and KRaft."""
    from formats.log_templates_controller import CONTROLLER
    from formats.log_templates_controller_steps import CONTROLLER_STEPS
    from formats.log_templates_kraft_controller import KRAFT_CONTROLLER
    from formats.log_templates_machine_steps import MACHINE_STEPS

    return Table((*CONTROLLER, *KRAFT_CONTROLLER, *CONTROLLER_STEPS, *MACHINE_STEPS))


@cache
def server_table() -> Table:
    """What every other logger of a broker prints that says something about replication."""
    from formats.log_templates_brokers import BROKERS
    from formats.log_templates_logs import LOGS
    from formats.log_templates_partitions import PARTITIONS

    # Before 0.11 the election of a controller, and before 3.3.2 the whole KRaft controller, wrote to server.log.
    return Table((*PARTITIONS, *LOGS, *BROKERS, *controller_table().templates))


@cache
def every_table() -> Table:
    """All templates, for a sentence whose logger is not known."""
    return Table((*state_change_table().templates, *server_table().templates))


def table_of(logger: str | None) -> Table:
    """The templates of a logger; all of them where the logger is not known."""
    if not logger:
        return every_table()
    if logger == "state.change.logger":
        return state_change_table()
    if is_controller(logger):
        return controller_table()
    return server_table()


def is_controller(logger: str) -> bool:
    """Whether a logger is the controller's, so that every line of it has a template."""
    return logger.startswith(("kafka.controller.", "org.apache.kafka.controller."))
