"""Judgements: a verdict on one question about one subject, with what would have to be examined to be sure.

`sound` needs everything that the question needs to have been examined. What the evidence does not decide is
`could_not_judge`, and names what is missing and the command that fetches it.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from typing import NamedTuple

from formats.values import Struct, field
from kctl.model import Row
from kctl.rows.judging import COVERAGE, JUDGEMENT


class Question(StrEnum):
    """What a command can be asked about evidence."""

    INTEGRITY = "integrity"  # are the bytes whole
    DIVERGENCE = "divergence"  # do copies agree
    LOSS = "loss"  # is something committed gone
    LEADERSHIP = "leadership"  # who led when, was an election unclean
    TIER = "tier"  # do metadata, objects and local logs agree
    TRANSACTIONS = "transactions"  # is one hanging
    START = "start"  # would a broker start, and destroy nothing


class Verdict(StrEnum):
    """The answer to a question about a subject, the worst first."""

    LOST = "lost"  # something committed is gone
    DAMAGED = "damaged"  # bytes, copies, elections or the tier are wrong
    UNREADABLE = "unreadable"  # it is there and could not be read
    COULD_NOT_JUDGE = "could_not_judge"  # what decides is not in the evidence
    SOUND = "sound"  # everything that the question needs was examined, and nothing is wrong

    @property
    def is_wrong(self) -> bool:
        """Whether it makes the exit status 5."""
        return self in (Verdict.LOST, Verdict.DAMAGED)

    @property
    def is_open(self) -> bool:
        """Whether it makes the exit status 3 where nothing is wrong."""
        return self in (Verdict.UNREADABLE, Verdict.COULD_NOT_JUDGE)


class JudgementSubject(NamedTuple):
    """What a judgement is about; None where the subject is not one partition, broker or moment."""

    topic: str | None = None
    partition: int | None = None
    broker_id: int | None = None
    moment: str | None = None

    def __str__(self) -> str:
        named = [] if self.topic is None else [f"{self.topic}-{self.partition}"]
        named += [] if self.broker_id is None else [f"broker {self.broker_id}"]
        named += [] if self.moment is None else [f"moment {self.moment}"]
        return ", ".join(named) or "the evidence"


class MissingEvidence(NamedTuple):
    """One thing that would have to be examined: why it was not, and the command that fetches it."""

    what: str
    broker_id: int | None = None
    moment: str | None = None
    why: str = "not in the evidence"
    get: str = ""


class Judgement(NamedTuple):
    """The verdict on one question about one subject."""

    question: Question
    verdict: Verdict
    subject: JudgementSubject
    reason: str
    missing: tuple[MissingEvidence, ...] = ()

    def row(self) -> dict[str, object]:
        """The row of kind `judgement`."""
        return JUDGEMENT(
            question=str(self.question),
            **self.subject._asdict(),
            verdict=str(self.verdict),
            reason=self.reason,
            missing=[missing._asdict() for missing in self.missing],
        )


def selecting(topic: str, partition: int) -> str:
    """The options of `kctl collect` that choose a partition."""
    return f"--topic {shlex.quote(topic)} --partition {partition}"


def for_all(command: str, topic: str | None, partition: int | None) -> str:
    """A command that fetches something of a partition as the one for every partition: its name as PARTITION."""
    if topic is None or partition is None:
        return command
    command = command.replace(f"{selecting(topic, partition)} ", "")
    return command.replace(f"{topic}-{partition}", "PARTITION")


class Coverage(Struct):
    """How many subjects of one question got which verdict, and what was missing, grouped."""

    question: Question
    verdicts: Counter[Verdict] = field(default_factory=Counter)
    missing: Counter[MissingEvidence] = field(default_factory=Counter)
    """How many subjects lack each; the command is the one of all of them."""
    _first: dict[MissingEvidence, str] = field(default_factory=dict)
    """The command of the first subject."""

    def add(self, judgement: Judgement) -> None:
        """Count a judgement of this question."""
        self.verdicts[judgement.verdict] += 1
        for missing in dict.fromkeys(judgement.missing):  # each once, in their order
            of_all = missing._replace(get=for_all(missing.get, *judgement.subject[:2]))
            self.missing[of_all] += 1
            self._first.setdefault(of_all, missing.get)

    @property
    def judged(self) -> int:
        """Subjects with an answer: sound, damaged or lost."""
        return self.verdicts.total() - self.open

    @property
    def open(self) -> int:
        """Subjects without an answer: unreadable, or not decided by the evidence."""
        return sum(count for verdict, count in self.verdicts.items() if verdict.is_open)

    def row(self) -> dict[str, object]:
        """The row of kind `coverage`; of each missing thing `subjects` says how many need it."""
        return COVERAGE(
            question=str(self.question),
            judged=self.judged,
            **{str(verdict): self.verdicts[verdict] for verdict in Verdict},
            missing=[
                {
                    **missing._asdict(),
                    "get": self._first[missing] if count == 1 else missing.get,
                    "subjects": count,
                }
                for missing, count in self.missing.most_common()
            ],
        )


def judgement_rows(
    items: Iterable[Judgement | Row],
    questions: Iterable[Question] = (),
    fit: Callable[[Judgement], Judgement] = lambda judgement: judgement,
) -> Iterator[Row]:
    """The rows as they are, a row a judgement, then a `coverage` row a question, in the order of `Question`.

    `fit` gives each judgement the commands that fetch what is missing (`fetching.fitting`).
    A question that was asked and has no subject gets a coverage row of zeros.
    """
    coverages = {question: Coverage(question) for question in questions}
    for item in items:
        if isinstance(item, Judgement):
            judgement = fit(item)
            coverages.setdefault(judgement.question, Coverage(judgement.question)).add(judgement)
            yield judgement.row()
        else:
            yield item
    for question in Question:
        if question in coverages:
            yield coverages[question].row()
