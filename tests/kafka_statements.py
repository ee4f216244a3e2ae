"""Print the log statements of Kafka's source that no template covers.

    python -m tests.kafka_statements SOURCES VERSION...

SOURCES is a clone of Kafka's repository, a bare one too, and VERSION a tag; or a folder with a folder of sources jars
a version. Statements are those at INFO and above of the classes below. A statement whose text is a value alone is
printed as such: no template can hold it, since it says what an exception or another statement says.
"""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from formats.broker_logs.table import every_table
from formats.broker_logs.template import expression

NAMES = """
KafkaServer BrokerServer ControllerServer SharedServer BrokerLifecycleManager ReplicaManager Partition
AbstractFetcherThread AbstractFetcherManager ReplicaFetcherThread ReplicaFetcherManager
Log LocalLog UnifiedLog LogManager LogLoader LogCleaner ProducerStateManager LeaderEpochFileCache
KafkaController ControllerChannelManager PartitionStateMachine ReplicaStateMachine TopicDeletionManager
QuorumController ReplicationControlManager ClusterControlManager BrokerHeartbeatManager PartitionRegistration
KafkaRaftClient QuorumState CandidateState FollowerState LeaderState ProspectiveState ResignedState UnattachedState
VotedState KafkaMetadataLog KafkaRaftLog KafkaRaftClientDriver MetadataLoader SnapshotGenerator ZooKeeperClient GroupCoordinator GroupMetadataManager
TransactionCoordinator TransactionStateManager ProducerIdManager RemoteLogManager RLMTask KRaftMigrationDriver
"""
CLASSES = frozenset(NAMES.split())
CALL = re.compile(
    r"(?:(?<=\))\.|(?<![\w.])(?:\w*[lL]og(?:ger)?\.|LOG(?:GER)?\.)?)(info|warn|error|fatal)\(\s*(?!\))"
)
FORMATTED = re.compile(r"String\.format\(\s*")
LITERAL = re.compile(
    r's?"""(.*?)"""|(?:s"((?:\$\{(?:[^{}]|\{[^{}]*\})*\}|[^"\\]|\\.)*)"|"((?:[^"\\]|\\.)*)")', re.DOTALL
)
# What puts values into a text, or mends it, and brackets around texts.
ARGUMENTS = re.compile(r"\s*\.(?:stripMargin|format(?:ted)?\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))")
OPENS = re.compile(r'\(\s*s?"')
MARGIN = re.compile(r"\n\s*\|")
VALUE = "\0"
IDENTITY = re.compile(rf"^(?:\[[^\]]*\]:? ?|(?:Broker|Controller) {VALUE} (?:epoch {VALUE} )?|{VALUE}:? ?)")
VALUES = re.compile(r"\$\{(?:[^{}]|\{[^{}]*\})*\}|\$[A-Za-z_]\w*|\{\}|%[-\d.]*[sdfx]")


class Statement(NamedTuple):
    """A call that logs."""

    place: str
    level: str
    sentence: str
    """Its text, a NUL for each value."""


def statements(source: str, place: str) -> Iterator[Statement]:
    """The calls in a source file that log at INFO and above."""
    source = re.sub(r"(?m)^\s*(?://|\*|/\*).*$", "", source)
    for call in CALL.finditer(source):
        line = source.count("\n", 0, call.start()) + 1
        formatted = FORMATTED.match(source, call.end())
        if re.search(r"(?:def|void) $", source[: call.start()]):
            continue
        sentence = VALUE.join(first_argument(source, formatted.end() if formatted else call.end()))
        yield Statement(f"{place}:{line}", call[1], re.sub(f"{VALUE}+", VALUE, VALUES.sub(VALUE, sentence)))


def first_argument(source: str, start: int) -> list[str]:
    """The pieces of text that an argument is put together from; values stand between them."""
    pieces, at, depth, is_joined = [""], start, 0, True
    groups = 0  # brackets around texts alone
    while at < len(source):
        literal = LITERAL.match(source, at) if depth == 0 else None
        if literal:
            whole = literal[1]
            text = (
                MARGIN.sub("\n", whole) if whole is not None else _unescaped(literal[2] or literal[3] or "")
            )
            if is_joined:
                pieces[-1] += text
            else:
                pieces.append(text)
            at, is_joined = literal.end(), True
            continue
        if depth == 0 and (arguments := ARGUMENTS.match(source, at)):
            at = arguments.end()
            continue
        character = source[at]
        if depth == 0 and (OPENS.match(source, at) or (character == ")" and groups)):
            groups += 1 if character == "(" else -1
            at += 1
            continue
        if depth == 0 and character in ",)":
            break
        depth += (character in "([{") - (character in ")]}")
        if not (character.isspace() or character == "+"):
            is_joined = False
        at += 1
    return pieces if is_joined else [*pieces, ""]


def _unescaped(text: str) -> str:
    return text.replace('\\"', '"').replace("\\n", "\n").replace("\\t", "\t")


@cache
def patterns() -> tuple[re.Pattern[str], ...]:
    """Each template with any word for its fields, and any text for those that may hold any."""
    bare = (
        re.sub(r"\{(\w+):[^s]\w*\}", r"{\1:w}", template.pattern)
        for template in every_table().templates
        if template.words
    )
    return tuple(re.compile(expression(pattern), re.DOTALL) for pattern in bare)


@cache
def skeletons() -> frozenset[str]:
    """Each template with a NUL for each field, with its optional parts and without."""
    bare = {re.sub(r"\{\w+:\w+\}", VALUE, t.pattern) for t in every_table().templates if t.words}
    return frozenset(re.sub(part, "", text) for text in bare for part in ("[«»]", "«[^»]*»"))


def is_covered(sentence: str) -> bool:
    """Whether a template is the whole sentence, with or without the identity it starts with.

    A template may hold more of the text than the statement, which prints an object of several words, or the name of a
    state, as one value; or less, where a partition is one field.
    """
    sentence = sentence.strip().replace(f"[{VALUE},{VALUE}]", VALUE)
    sentences = {sentence, IDENTITY.sub("", sentence)}
    if any(pattern.fullmatch(text) for text in sentences for pattern in patterns()):
        return True
    long = [text for text in sentences if len(re.sub(r"\W", "", text)) > 12]
    some = rf"(?:(?:\w+[({{])?[\w=]*[\[(']?{VALUE}(?:.*{VALUE})?[\])}}']*|[A-Z][a-z]+Replica)"
    values = [re.compile(re.escape(text).replace(VALUE, some), re.I | re.DOTALL) for text in long]
    return any(value.fullmatch(skeleton) for value in values for skeleton in skeletons())


def sources(folder: Path, version: str) -> Iterator[tuple[str, str]]:
    """Path and text of the source of each class of a version."""
    if (folder / version).is_dir():
        for path in sorted((folder / version).glob("*.jar")):
            with zipfile.ZipFile(path) as jar:
                yield from ((name, jar.read(name).decode()) for name in jar.namelist() if is_named(name))
        return
    for name in git(folder, "ls-tree", "-r", "--name-only", f"refs/tags/{version}").splitlines():
        if "/src/main/" in name and is_named(name):
            yield name, git(folder, "show", f"refs/tags/{version}:{name}")


def is_named(name: str) -> bool:
    """Whether a file is the source of one of the classes, as part of a broker."""
    path = Path(name)
    is_other = re.search("/(clients|streams|connect)/", name)
    return path.suffix in (".scala", ".java") and path.stem in CLASSES and not is_other


def git(checkout: Path, *words: str) -> str:
    """What a git command prints."""
    run = subprocess.run(["git", "-C", str(checkout), *words], check=True, capture_output=True)
    return run.stdout.decode("utf-8", "replace")


def main() -> None:
    """Print the uncovered statements of each version, then how many there are."""
    folder, *versions = sys.argv[1:]
    for version in versions:
        found = [s for name, text in sources(Path(folder), version) for s in statements(text, name)]
        with_text = [one for one in found if re.search("[a-zA-Z]", IDENTITY.sub("", one.sentence))]
        uncovered = [statement for statement in with_text if not is_covered(statement.sentence)]
        for place, level, sentence in uncovered:
            print(
                version, level, Path(place).name, sentence.replace(VALUE, "{}").replace("\n", "\\n"), sep="\t"
            )
        for statement in found:
            if statement not in with_text:
                print(version, statement.level, Path(statement.place).name, "(a value alone)", sep="\t")
        share = 100 * (1 - len(uncovered) / len(with_text)) if with_text else 0
        print(
            f"{version}: {len(with_text)} statements, {len(uncovered)} without a template, {share:.1f} % covered"
        )


if __name__ == "__main__":
    main()
