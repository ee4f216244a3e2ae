"""The messages of internal topics are those that Kafka defines: its jars hold the definitions as JSON."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Iterator
from typing import Any

import pytest

from formats.messages import cluster_metadata, consumer_offsets, remote_log_metadata, transaction_state
from formats.messages.schema import ZERO_UUID, Message, Struct
from kctl.cluster.requests import REQUESTS
from kctl.cluster.versions import parse_version
from kctl.wire.protocol.messages import message_class, names
from tests.brokers.jars import RELEASES, jars

pytestmark = pytest.mark.brokers
OLDER, NEWEST = "3.9", "4.3"
Definition = dict[str, Any]
Structs = dict[str, list[Definition]]
REQUESTS_PART = "requests"

# Messages by Kafka's name, the jar that defines them, and which of the jar's files count.
PARTS: dict[str, tuple[dict[str, Message], str, str]] = {
    "groups": (consumer_offsets.MESSAGES, "kafka-group-coordinator", "common/message/.*"),
    "members": (
        {m.name: m for m in (consumer_offsets.SUBSCRIPTION, consumer_offsets.ASSIGNMENT)},
        "kafka-clients",
        "common/message/ConsumerProtocol(Subscription|Assignment)",
    ),
    "transactions": (transaction_state.MESSAGES, "kafka-transaction-coordinator", "common/message/.*"),
    "metadata": (
        {m.name: m for m in cluster_metadata.RECORDS.values()},
        "kafka-metadata",
        "common/metadata/.*",
    ),
    "tier": (
        {m.name: m for m in remote_log_metadata.MESSAGES[remote_log_metadata.RecordLayout.WITH_CUSTOM_METADATA].values()},
        "kafka-storage",
        "message/Remote.*",
    ),
    REQUESTS_PART: (
        {name: message_class(name).MESSAGE for name in names()},
        "kafka-clients",
        f"common/message/({'|'.join(names())})",
    ),
}  # fmt: skip
# Fields of tier metadata that have other names here, where one name is enough for all types of records.
RENAMED = {
    "max_timestamp_ms": "max_timestamp",
    "event_timestamp_ms": "event_timestamp",
    "segment_size_in_bytes": "size_in_bytes",
    "segment_id": "remote_log_segment_id",
    "remote_log_segment_state": "state",
    "remote_partition_delete_state": "state",
}
RENAMED_IN_PARTITION = {"name": "topic", "id": "topic_id"}
# A tagged field of tier metadata that no question needs; reading skips it.
UNNAMED = {"txnindexempty"}
# Share groups were a preview in 3.9; their records have changed within the version.
PREVIEW = "ShareGroup"

# Where brokers and definitions differ: controllers answer FetchSnapshot, and a broker below 4.2 loses what
# AlterShareGroupOffsets asks for (core/src/main/scala/kafka/server/KafkaApis.scala @ 4.1.1).
EXCEPT = {"FetchSnapshot", "AlterShareGroupOffsets"}

ZEROS: dict[str, Any] = {"bool": False, "float64": 0.0, "string": "", "bytes": b"", "uuid": ZERO_UUID}


def definitions(release: str, jar: str, files: str) -> Iterator[Definition]:
    """What a jar of a release defines."""
    with zipfile.ZipFile(jars(release) / f"{jar}-{RELEASES[release].version}.jar") as opened:
        for name in opened.namelist():
            if re.fullmatch(f"{files}[.]json", name):
                text = opened.read(name).decode()
                yield json.loads(re.sub(r"^\s*//.*", "", text, flags=re.MULTILINE))


def versions_of(text: str) -> range:
    """`0-4`, `2`, `3+` or `none` as version numbers; 99 stands for later ones."""
    if text == "none":
        return range(0)
    first, dash, last = text.removesuffix("+").partition("-")
    return range(int(first), 100 if text.endswith("+") else int(last if dash else first) + 1)


def default_in(field: Definition) -> Any:
    """What Kafka's generated class starts with; for a struct, whether it is there."""
    kind, given = field["type"].replace("records", "bytes"), field.get("default")
    if given == "null":
        return None
    if kind.startswith("[]"):
        return []  # for a JSON null too
    if kind in ZEROS:
        return type(ZEROS[kind])({"true": True, "false": False}.get(given, given) or ZEROS[kind])
    return kind[0].isupper() or int(str(given or 0), 0)


def defined_fields(
    fields: list[Definition], structs: Structs, version: int, flexible: bool, path: str = ""
) -> Iterator[tuple[str, str]]:
    """Path and layout of each field of a definition, in the order of the bytes."""
    names = RENAMED_IN_PARTITION if {"Name", "Id", "Partition"} == {f["name"] for f in fields} else RENAMED
    for field in fields:
        name = re.sub("(?<=[a-z])(?=[A-Z])", "_", field["name"]).lower()
        name = path + names.get(name, name)
        kind = field["type"].removeprefix("[]").replace("records", "bytes")
        inner = field.get("fields") or structs.get(kind)
        if version not in versions_of(field.get("versions") or field["taggedVersions"]):
            yield name, f"absent = {default_in(field)}"
            continue
        array = "[]" * field["type"].startswith("[]")
        null = "?" * (version in versions_of(field.get("nullableVersions", "none")))
        tagged = flexible and version in versions_of(field.get("taggedVersions", "none"))
        tag = f" tag {field['tag']}" if tagged else ""
        yield name, f"{null}{array}{'struct' if inner else kind}{tag} = {default_in(field)}"
        if inner:
            yield from defined_fields(inner, structs, version, flexible, f"{name}.")


def fields_here(struct: Struct, version: int, flexible: bool, path: str = "") -> Iterator[tuple[str, str]]:
    """The same of a message here."""
    for field in struct:
        name, is_struct = path + field.name, isinstance(field.type, tuple)
        default = True if isinstance(field.default, dict) else field.default
        if version not in field.versions:
            yield name, f"absent = {default}"
            continue
        tag = f" tag {field.tag}" if flexible and field.tag is not None else ""
        kind = "struct" if is_struct else field.type
        yield name, f"{'?' * field.nullable}{'[]' * field.array}{kind}{tag} = {default}"
        if isinstance(field.type, tuple):
            yield from fields_here(field.type, version, flexible, f"{name}.")


def flat(fields: Iterator[tuple[str, str]]) -> dict[str, str]:
    """Fields by names in which it does not matter how words are put together."""
    return {name.replace("_", ""): layout for name, layout in fields}


def differences(release: str, part: str) -> Iterator[str]:
    """A line for each thing that a release defines otherwise."""
    messages, jar, files = PARTS[part]
    if (release, part) == (OLDER, REQUESTS_PART):
        return  # the newest jar has the fields of all versions that are left
    for definition in definitions(release, jar, files):
        name = definition["name"].removeprefix("Legacy")
        if release == OLDER and name.startswith(PREVIEW):
            continue
        if name not in messages:
            yield f"{name} is missing"
            continue
        message = messages[name]
        if definition["type"] == "metadata" and message.key != definition["apiKey"]:
            yield f"{name}: key {definition['apiKey']}, here {message.key}"
        structs = {one["name"]: one["fields"] for one in definition.get("commonStructs", ())}
        for version in versions_of(definition["validVersions"]):
            # Since 4.0 a key has version 0 alone, and the type of the record is a number of its own.
            here = definition["apiKey"] if definition["type"] == "coordinator-key" else version
            flexible = version in versions_of(definition["flexibleVersions"])
            if part == REQUESTS_PART and here > message.versions.last:
                continue  # kctl has no use for it
            if here not in message.versions or flexible != (here in message.flexible):
                yield f"{name}: version {here}{' flexible' * flexible} is missing"
                continue
            kafka = flat(defined_fields(definition["fields"], structs, version, flexible))
            ours = flat(fields_here(message.fields, here, flexible))
            for field in kafka | ours:
                in_kafka, in_ours = kafka.get(field), ours.get(field)
                came_later = in_kafka is None and (
                    str(in_ours).startswith("absent") or (release == OLDER and " tag " in str(in_ours))
                )
                # Of requests, null is taken in versions that do not have it yet, and what came later than all is left out.
                is_wider = part == REQUESTS_PART and (
                    in_ours == f"?{in_kafka}" or (in_ours is None and str(in_kafka).startswith("absent"))
                )
                if in_kafka != in_ours and not came_later and not is_wider and field not in UNNAMED:
                    yield f"{name} {here}: {field} is {in_kafka}, here {in_ours}"
            if [one for one in kafka if one in ours] != [one for one in ours if one in kafka]:
                yield f"{name} {here}: fields are in another order"


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("release", [OLDER, NEWEST])
def test_every_field_of_every_version_is_as_kafka_defines_it(release: str, part: str) -> None:
    missing = list(differences(release, part))
    assert not missing, "\n".join(missing)


@pytest.mark.parametrize("part", PARTS)
def test_every_message_is_one_that_kafka_defines(part: str) -> None:
    messages, jar, files = PARTS[part]
    defined = {one["name"] for release in (OLDER, NEWEST) for one in definitions(release, jar, files)}
    known = {"ConsumerProtocolSubscription", "ConsumerProtocolAssignment"} if part == "groups" else set()
    assert set(messages) - defined == known


@pytest.mark.parametrize("release", ["3.9", "4.1", "4.3"])
def test_requests_came_with_the_version_that_is_named(release: str) -> None:
    """A release defines the requests of its time; those whose only version is unstable brokers do not offer."""
    defined = {
        str(one["name"]).removesuffix("Request")
        for one in definitions(release, "kafka-clients", "common/message/.*Request")
        if not (one.get("latestVersionUnstable") and "-" not in one["validVersions"])
        and "broker" in one.get("listeners", ())
    }
    named = {what: parse_version(one.since) for what, one in REQUESTS.items() if one.since != "2.4"}
    wrong = {
        what: str(since)
        for what, since in named.items()
        if what not in EXCEPT and (what in defined) != (parse_version(release) >= since)
    }
    assert wrong == {}
