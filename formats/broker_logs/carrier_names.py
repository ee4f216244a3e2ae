"""What the name of a pod, container or host tells of the broker that it runs.

A StatefulSet numbers its pods from 0, and who runs Kafka in one makes the broker id of that number: Strimzi takes the
number itself (`my-cluster-kafka-0`), as Bitnami's chart does for controllers and for brokers on ZooKeeper. The chart adds
100 for brokers of KRaft (`kafka-broker-0`), Confluent's operator what its user says (`kafka-0`, 9990 for controllers),
and Docker Compose numbers the containers of a service from 1 whatever their ids. Koperator and Amazon MSK have the id in
the name (`kafka-101-x2k9z`, `prod-Broker-3`).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

_WORDS = re.compile(r"[\s/\[\]:,@|]+")
# What generates names of pods has no vowels in them; what follows a point is a domain or a tag.
_NUMBERED = re.compile(
    r"(?P<family>(?:.*[._-])?(?P<kind>[A-Za-z]+))-?(?P<number>\d{1,9})"
    r"(?P<end>-[bcdfghjklmnpqrstvwxz2456789]{5}|[._][A-Za-z].*|_[0-9a-f-]{4,})?"
)
OF_KAFKA = re.compile(r"kafka|brokers?|(?:kraft)?controllers?", re.IGNORECASE)


class CarrierName(NamedTuple):
    """The name of what printed lines, as far as it may tell a broker."""

    name: str
    """The word of the text that has a number."""
    family: str
    """The same for names that differ by their numbers alone."""
    number: int
    is_id: bool
    """Whether the number is the broker's id as long as nothing speaks against it; else something may be added to it."""


@lru_cache(4096)
def carrier_name(text: str, *, is_service: bool = False) -> CarrierName | None:
    """The one numbered name of Kafka in what names a process; None where there is none or several differ.

    `is_service`: Docker Compose made the name, whose number counts the containers of a service.
    """
    names = [name for word in words_of(text) if (name := _of_word(word, is_service)) is not None]
    return names[0] if len({name.number for name in names}) == 1 else None


def words_of(text: str) -> list[str]:
    """The parts of what names a process, such as its host, its pod and its container."""
    return [word for word in _WORDS.split(text) if word]


def _of_word(word: str, is_service: bool) -> CarrierName | None:
    match = _NUMBERED.fullmatch(word)
    if match is None or not OF_KAFKA.fullmatch(match["kind"]):
        return None
    # The names of MSK's streams begin a word with a capital letter.
    is_id = match["kind"].lower() == "kafka" or match["family"].endswith(("-Broker", "kafka-controller"))
    return CarrierName(word, match["family"], int(match["number"]), is_id and not is_service)
