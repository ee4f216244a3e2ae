"""The arguments of commands that read evidence, as one value.

@command("compare")
@evidence("broker", "moment", "topic", "partition")
def compare(frame: Frame, options: EvidenceOptions) -> Outcome:
    evidence = options.find(frame)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import click

from commands.cli.frame import Frame
from commands.cli.options import GIVEN, JOBS, PARTITION, TOPIC, Decorator, as_one_value, option
from kctl.errors import BadValue, KctlError, near_names
from kctl.model import command_line
from kctl.stores.mirror import given_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from kctl.evidence.model import Arriving, FoundEvidence
    from kctl.internal_topics.reading import AsOf
    from kctl.judging.judgement import Judgement
    from kctl.model import TopicPartition

OPTIONS: dict[str, Decorator] = {
    "broker": option("--broker ID=FOLDER...", "Set the broker id of a folder; repeatable.", into="brokers"),
    "moment": option(
        "--moment NAME=FOLDER...", "Name the moment that a folder was copied at; repeatable.", into="moments"
    ),
    "topic": TOPIC,
    "partition": PARTITION,
    "compacted": option("--compacted TOPIC...", "Treat this topic as compacted; repeatable."),
    "acks": option(
        "--acks",
        "acks of the producers. With 0 or 1, uncommitted records dropped by a change of leader count as lost.",
        type=click.Choice(["0", "1", "all"]),
        default="all",
    ),
    "jobs": JOBS,
    "as-of": option(
        "--as-of OFFSET|TIME",
        "Show the state before this offset of the internal topic, or at this time (ISO 8601, -2h, epoch ms).",
    ),
}

# Digits from here on are milliseconds, not an offset: 2001-09-09.
FIRST_MILLISECONDS = 1_000_000_000_000


NAMED = 5  # partitions that a line names


def bound_of(as_of: str | None) -> AsOf:
    """The bound that a text names: an offset or a time. Raises BadValue."""
    from formats.whole_numbers import whole_number
    from kctl.internal_topics.reading import NOW, AsOf
    from kctl.times import parse_time

    if as_of is None:
        return NOW
    offset = whole_number(as_of)
    if offset is not None and offset < FIRST_MILLISECONDS:
        return AsOf(offset=offset)
    return AsOf(timestamp=parse_time(as_of))


class EvidenceOptions(NamedTuple):
    """Which evidence to read and what of it, as given; what a command does not ask for is empty."""

    paths: tuple[str, ...]
    brokers: tuple[str, ...] = ()
    moments: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    partitions: tuple[int, ...] = ()
    compacted: tuple[str, ...] = ()
    acks: str = "all"
    jobs: int | None = None
    as_of: str | None = None

    def command_line(self, command: str, *options: str) -> str:
        """A command over the same evidence: the paths with `--broker` and `--moment`, and more options."""
        named = [word for option in self.named() for word in option]
        return command_line(command, map(given_name, self.paths), [*named, *options])

    def proposing(self, following: list[str]) -> Callable[..., None]:
        """What adds a command over the same evidence, with its options, to those that are proposed."""
        return lambda *words: following.append(self.command_line(*words))

    def named(self) -> tuple[tuple[str, str], ...]:
        """The options `--broker` and `--moment` with their values, as given."""
        return (
            *(("--broker", broker) for broker in self.brokers),
            *(("--moment", moment) for moment in self.moments),
        )

    @property
    def bound(self) -> AsOf:
        """What `--as-of` says about an internal topic."""
        return bound_of(self.as_of)

    def find(self, frame: Frame, *, may_be_nothing: bool = False, reads_once: bool = False) -> FoundEvidence:
        """What lies below the paths; those that cannot be opened are reported and the rest goes on.

        `reads_once`: logs are read from front to end by code that knows `Replica.arriving`, so that a topic of a
        running cluster need not be copied.
        """
        from kctl.evidence.discover import discover, refuse_nothing

        paths = self.paths
        arriving: dict[Path, Arriving] = {}
        if frame.names_brokers:
            from commands.cli.live_paths import with_arriving, with_live

            if reads_once:
                paths, arriving = with_arriving(frame, paths)
            else:
                paths = with_live(frame, paths)
        evidence = discover(paths, brokers=self.brokers, moments=self.moments).with_arriving(arriving)
        for failure in evidence.failures:
            frame.report(failure)
        if not may_be_nothing:
            refuse_nothing(evidence)
        self._note_strangers(frame, evidence)
        return evidence

    def fit(self, frame: Frame, evidence: FoundEvidence) -> Callable[[Judgement], Judgement]:
        """What gives judgements the commands that fetch what is missing: of ZooKeeper, of KRaft, or of a live cluster."""
        from kctl.judging.fetching import fitting

        if not frame.names_brokers:
            return fitting(evidence)
        from commands.cli.live_paths import live_names

        return fitting(evidence, is_live=bool(live_names(frame, self.paths)))

    def _note_strangers(self, frame: Frame, evidence: FoundEvidence) -> None:
        """Note topics of --compacted that the evidence lacks: a script may give every broker the same list.

        Where it has none of them, or one of almost the same name, they are misspelt.
        """
        known = {replica.topic for replica in evidence.replicas}
        for topic in self.compacted:
            if topic in known:
                continue
            hint = near_names(topic, known, otherwise="")
            what = f"--compacted {topic}: the evidence has no such topic"
            if known and (hint or known.isdisjoint(self.compacted)):
                frame.report(BadValue(what, hint or f"it has {', '.join(sorted(known)[:3])}"))
            else:
                frame.note(what)

    def require_broker(self, option: str, broker_id: int | None, evidence: FoundEvidence) -> None:
        """Raise `BadValue` where the broker of an option has no copy in the evidence."""
        brokers = {log_dir.broker_id for log_dir in evidence.log_dirs if log_dir.broker_id is not None}
        if broker_id is not None and brokers and broker_id not in brokers:
            raise BadValue(
                f"{option} {broker_id}: the evidence has no copy of broker {broker_id}",
                f"it has copies of brokers {', '.join(map(str, sorted(brokers)))}",
            )

    def report_absent(
        self, frame: Frame, evidence: FoundEvidence, with_metadata: Iterable[TopicPartition] = ()
    ) -> None:
        """Report topics and partitions that were asked for and that nothing has; the others go on.

        `told` are partitions that the evidence has metadata of. A name that nothing has is wrong usage, but where a
        path could not be opened: it may lie there.
        """
        absent = KctlError if evidence.unopened else BadValue
        known: dict[str, set[int]] = {}
        for partition in (*(replica.topic_partition for replica in evidence.replicas), *with_metadata):
            known.setdefault(partition.topic, set()).add(partition.partition)
        for topic in self.topics:
            if topic not in known:
                topics = ", ".join(sorted(known)[:3]) or "no topic"
                hint = near_names(topic, known, otherwise=f"the evidence holds copies of {topics}")
                frame.report(absent(f"no copy of topic {topic} is in the evidence", hint))
        numbers = [known[topic] for topic in self.topics or known if topic in known]
        for number in self.partitions:
            if numbers and not any(number in of_topic for of_topic in numbers):
                names = ", ".join(f"{topic}-{number}" for topic in self.topics) or f"a partition {number}"
                has = ", ".join(map(str, sorted(set().union(*numbers))[:10]))
                frame.report(absent(f"no copy of {names} is in the evidence", f"it has partitions {has}"))
        if not known and not evidence.failures and not self.topics:
            frame.fail("the evidence has no copy of any partition", "name brokers' log directories")

    def no_copy(self, topic: str) -> KctlError:
        """The error that there is no copy of an internal topic."""
        return KctlError(
            f"no copy of {topic} in {given_name(' '.join(self.paths))}", "name a broker's log directory"
        )

    def note_lacking(self, frame: Frame, evidence: FoundEvidence, topic: str, rows: str) -> None:
        """Note the partitions of an internal topic without a copy; `what` names the rows that are therefore missing."""
        from formats.words import counted
        from kctl.internal_topics.rows import partitions_without_copy

        if lacking := partitions_without_copy(evidence, topic):
            named = ", ".join(map(str, lacking[:NAMED])) + (", …" if lacking[NAMED:] else "")
            possessive = "its" if len(lacking) == 1 else "their"
            frame.note(
                f"no copy of {counted(len(lacking), 'partition')} of {topic} ({named}): "
                f"{possessive} {rows} are not shown"
            )


def evidence(*names: str, metavar: str = "EVIDENCE...", required: bool = True) -> Decorator:
    """Add the paths and the named options; the function gets them as `EvidenceOptions`, after the frame."""
    paths = click.argument("paths", nargs=-1, required=required, type=GIVEN, metavar=metavar)
    return as_one_value(EvidenceOptions, [paths, *(OPTIONS[name] for name in names)])
