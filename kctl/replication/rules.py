"""Which rule holds in which version of Kafka: one table, newest first.

Source: the modules named by each column; clients/src/main/resources/common/message/FetchRequest.json @ 2.8.2 for the
last fetched epoch; core/src/main/scala/kafka/server/KafkaConfig.scala @ 0.10.2.1, 0.11.0.0 for the unclean default.
"""

from __future__ import annotations

import re
from typing import NamedTuple, TypeVar

from kctl.errors import BadValue
from kctl.replication.epochs import Assign, EpochAnswers
from kctl.replication.high_watermark import Admission, Basis, FetchOrder
from kctl.replication.truncation import Algorithm

T = TypeVar("T")


class ReplicationRules(NamedTuple):
    """The rules of one version. `halts_when_ahead`: a follower ahead of its leader halts."""

    kafka_version: str
    algorithm: Algorithm
    basis: Basis
    admission: Admission
    assign: Assign
    answers: EpochAnswers
    entry_at_election: bool
    fetch_order: FetchOrder
    elects_by_isr_order: bool
    last_isr_member_always_stays: bool
    unclean_default: bool
    halts_when_ahead: bool

    @property
    def has_epochs(self) -> bool:
        return self.algorithm is not Algorithm.HIGH_WATERMARK


# First version of each rule, newest first.
ALGORITHMS = (
    ((2, 8), Algorithm.FETCH),
    ((2, 0), Algorithm.KIP_279),
    ((0, 11), Algorithm.KIP_101),
    ((0,), Algorithm.HIGH_WATERMARK),
)
BASES = (
    ((3, 7), Basis.ISR_OR_CAUGHT_UP_AND_MIN_ISR),
    ((0, 10, 2), Basis.ISR_OR_CAUGHT_UP),
    ((0,), Basis.ISR_ONLY),
)
ADMISSIONS = (((2, 0, 1), Admission.HW_AND_EPOCH_START), ((0,), Admission.HW_ONLY))
ASSIGNS = (((2, 0, 1), Assign.REPLACE_CONFLICTS), ((0,), Assign.IGNORE_CONFLICTS))
ANSWERS = (
    ((2, 0, 1), EpochAnswers.EPOCH_AND_OFFSET),
    ((2, 0), EpochAnswers.EPOCH_AND_OFFSET_2_0_0),
    ((1, 1, 1), EpochAnswers.OFFSET_ONLY),
    ((1, 1, 0), EpochAnswers.OFFSET_ONLY_NO_UNDEFINED_CHECK),
    ((1, 0, 2), EpochAnswers.OFFSET_ONLY),
    ((0,), EpochAnswers.OFFSET_ONLY_NO_UNDEFINED_CHECK),
)
FETCH_ORDERS = (((0, 8, 2), FetchOrder.READ_THEN_UPDATE), ((0,), FetchOrder.UPDATE_THEN_READ))


def parse_version(text: str) -> tuple[int, ...]:
    """A version as numbers; `2.8` or `0.10` stands for the last release of that line. Raises BadValue."""
    if not re.fullmatch(r"\d{1,9}(\.\d{1,9}){0,3}", text):
        raise BadValue(f"not a Kafka version: {text!r}", "give one such as 0.10.2.2, 1.1 or 3.9")
    numbers = tuple(int(part) for part in text.split("."))
    whole = 4 if numbers[0] == 0 else 3
    return numbers + (99,) * (whole - len(numbers))


def _pick(table: tuple[tuple[tuple[int, ...], T], ...], version: tuple[int, ...]) -> T:
    return next(rule for since, rule in table if version >= since)


def rules_for(kafka_version: str) -> ReplicationRules:
    """The rules of a version, with its own inter-broker protocol and message format."""
    version = parse_version(kafka_version)
    return ReplicationRules(
        kafka_version=kafka_version,
        algorithm=_pick(ALGORITHMS, version),
        basis=_pick(BASES, version),
        admission=_pick(ADMISSIONS, version),
        assign=_pick(ASSIGNS, version),
        answers=_pick(ANSWERS, version),
        entry_at_election=version >= (2, 0, 1),
        fetch_order=_pick(FETCH_ORDERS, version),
        elects_by_isr_order=version < (0, 8, 2),
        last_isr_member_always_stays=version >= (1, 1),
        unclean_default=version < (0, 11),
        halts_when_ahead=(0, 8, 2) <= version < (2, 0, 1),
    )
