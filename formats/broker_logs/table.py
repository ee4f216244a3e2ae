"""Which template of `templates/` a sentence in a log is, and its fields."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache, cached_property, lru_cache
from pkgutil import get_data
from typing import NamedTuple

from formats.broker_logs.template import Template, compiled, first_words, landmark, templates_of

FILES = (
    "AbstractFetcherThread",
    "ControllerChannelManager",
    "GroupCoordinator",
    "KafkaApis",
    "KafkaController",
    "KafkaRaftClient",
    "KafkaServer",
    "LeaderEpochFileCache",
    "Log",
    "LogCleaner",
    "LogManager",
    "MetadataLoader",
    "MigrationPropagator",
    "NetworkClient",
    "Partition",
    "PartitionStateMachine",
    "QuorumController",
    "RemoteLogManager",
    "ReplicaManager",
    "ReplicaStateMachine",
    "ShutdownableThread",
    "TopicDeletionManager",
    "TransactionCoordinator",
    "ZkMetadataCache",
    "ZooKeeperClient",
)
STATE_CHANGES = "state.change.logger"
OWN_PACKAGES = ("kafka.", "org.apache.kafka.", "state.change.")
# Where sentences of two logs are alike, what is printed to the first is meant.
LOGS = ("state-change.log", "server.log", "controller.log")
# First words with the class that printed them, for each of which the templates are chosen once.
MOST_CHOICES = 4096


class TemplateMatch(NamedTuple):
    """A template that a sentence is, and where its fields stand in it."""

    template: Template
    spans: tuple[tuple[str, str, int, int], ...]
    """Name, type, start and end of each field that is there."""


class Table:
    """Templates, found by the first words of a sentence."""

    def __init__(self, templates: Iterable[Template]) -> None:
        self.templates = tuple(templates)
        self.by_id = {template.id: template for template in self.templates}
        self._of_class = lru_cache(MOST_CHOICES)(self._chosen)

    @cached_property
    def _by_words(self) -> dict[str, list[Template]]:
        by_words: dict[str, list[Template]] = {}
        for template in self.templates:
            if template.pattern.startswith(("{", "«")) and not template.words:
                continue  # any text: what it is shows in the lines that follow it
            by_words.setdefault(first_words(template.pattern), []).append(template)
        return by_words

    def candidates(
        self, sentence: bytes, class_name: str = "", *, is_other: bool = False
    ) -> tuple[Template, ...]:
        """The templates that may be this sentence: those of the class that prints it first, then by log; in each log
        the one with most fixed characters first. Few words mean something only of Kafka's own classes: `is_other`."""
        words = sentence[:200].split(b" ", 2)
        first = words[0].decode("latin-1").lower()
        two = f"{first} {words[1].decode('latin-1').lower()}" if len(words) > 1 else first
        begins = tuple(key for key in (two, first, "") if key in self._by_words)
        return self._of_class(begins, class_name, is_other)

    def _chosen(self, begins: tuple[str, ...], class_name: str, is_other: bool) -> tuple[Template, ...]:
        templates = [template for key in dict.fromkeys(begins) for template in self._by_words[key]]
        if class_name:
            templates = [
                t
                for t in templates
                if class_name in printers(t.classes) or not (_needs_class(t) or (is_other and not t.fields))
            ]
        return tuple(sorted(templates, key=lambda t: (class_name not in printers(t.classes), _rank(t))))

    def find(self, sentence: bytes, logger: str | None = None) -> TemplateMatch | None:
        """The first template that is the whole sentence; None when there is none."""
        # Layouts may leave out the package; Scala's objects and nested classes have a dollar sign.
        class_name = logger.rpartition(".")[2].partition("$")[0] if logger else ""
        is_other = bool(logger) and "." in str(logger) and not str(logger).startswith(OWN_PACKAGES)
        for template in self.candidates(sentence, class_name, is_other=is_other):
            if landmark(template) not in sentence:
                continue
            match = compiled(template).fullmatch(sentence)
            if match:
                spans = tuple(
                    (name, kind, *match.span(name))
                    for name, kind in template.fields
                    if match.start(name) >= 0
                )
                return TemplateMatch(template, spans)
        return None


@cache
def printers(classes: str) -> frozenset[str]:
    """The names of classes, without their packages and versions."""
    return frozenset(name.rpartition(".")[2] for name in re.findall(r"[\w.$]+", classes))


@cache
def _needs_class(template: Template) -> bool:
    """Whether only its own classes mean this: others that start and stop print the same few words, or another one
    where a sentence begins with any text."""
    if template.log == "state-change.log":
        return False
    is_bare = template.log == "server.log" and not template.fields and len(template.pattern.split()) <= 3
    return is_bare or template.pattern.startswith("{")


@cache
def _rank(template: Template) -> tuple[int, int, str]:
    return LOGS.index(template.log), -template.words, template.id


@cache
def every_table() -> Table:
    """All templates, for a sentence whose logger is not known."""
    return Table(template for text in _texts() for template in templates_of(text))


def _texts() -> Iterator[str]:
    texts = (get_data("formats.broker_logs", f"templates/{name}.txt") for name in FILES)
    return (text.decode() for text in texts if text)


@cache
def _full_names() -> dict[str, tuple[str, ...]]:
    """The classes of each bare name, with their packages."""
    names_by_class: dict[str, set[str]] = {"logger": {STATE_CHANGES}}
    for text in _texts():
        for classes in re.findall(r"^\[(.*) in ", text, re.MULTILINE):
            for name in re.findall(r"[A-Za-z][\w$]*(?:\.[\w$]+)+", classes):
                if name.startswith(OWN_PACKAGES):
                    names_by_class.setdefault(name.rpartition(".")[2], set()).add(name)
    return {bare: tuple(sorted(names)) for bare, names in names_by_class.items()}


@lru_cache(4096)
def full_name(logger: str) -> str:
    """The name of one of Kafka's classes with its package, where a layout shortens it (`%c{1}`, `%c{1.}`).

    Of classes of one name in several versions the first is as good as any: one table has their sentences. What is none
    of Kafka's classes, or already has its package, stays as it is.
    """
    if logger.startswith(OWN_PACKAGES):
        return logger
    outer, dollar, inner = logger.partition("$")
    *shown, bare = outer.split(".")
    for name in _full_names().get(bare, ()):
        package = name.split(".")[:-1]
        pairs = zip(reversed(package), reversed(shown), strict=False)
        if len(shown) <= len(package) and all(whole.startswith(part) for whole, part in pairs):
            return f"{name}{dollar}{inner}"
    return logger


@cache
def state_change_table() -> Table:
    """What `state.change.logger` prints: controllers and brokers; read alone, since merging needs no other."""
    log = "state-change.log"
    return Table(row for text in _texts() if f" in {log}]" in text for row in templates_of(text, log))


@cache
def table_of_ids(ids: frozenset[str]) -> Table:
    """Some templates, read alone, in a tenth of the time and memory that all of them take."""
    return Table(row for text in _texts() for row in templates_of(text, ids=ids))


@cache
def controller_table() -> Table:
    """What the controller's own loggers print, ZooKeeper and KRaft."""
    return _table("controller.log")


@cache
def server_table() -> Table:
    """What every other logger of a broker prints that says something about replication."""
    # Before 0.11 the election of a controller, and before 3.3.2 the whole KRaft controller, wrote to server.log.
    return _table("server.log", "controller.log")


def _table(*logs: str) -> Table:
    return Table(template for template in every_table().templates if template.log in logs)


def table_of(logger: str | None) -> Table:
    """The templates of a logger; all of them where the logger is not known."""
    if not logger:
        return every_table()
    if logger == STATE_CHANGES:
        return state_change_table()
    if is_controller(logger):
        return controller_table()
    return server_table()


def is_controller(logger: str) -> bool:
    """Whether a logger is the controller's, so that every line of it has a template."""
    return logger.startswith(("kafka.controller.", "org.apache.kafka.controller."))
