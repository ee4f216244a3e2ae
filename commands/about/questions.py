"""`kctl help`: which command answers what people say, such as `disk full`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import click

from commands.cli.frame import Frame, command
from commands.cli.leaving import NEXT
from commands.cli.render import Outcome, Page, Row, folding

# What people say, in the words that they use; below it commands, each with what it shows, and the runbook.
TABLE = """
a disk is full; no space left on device, filling up, disk usage, retention
    kctl cluster disks | the size of each topic on each disk
    kctl topic delete-records orders --read-by-all-groups --dry-run | what every group has read and may go
    kctl audit run /var/lib/kafka/data --out report | segments that retention should have deleted, and why it did not
    see a-full-disk
a disk has failed; KafkaStorageException, input/output error, log directory offline, bad disk
    kctl cluster disks | the log directories that are offline
    kctl log-dir start /var/lib/kafka/data | what the broker does to the directories at its next start
    see replace-a-failed-disk
a broker does not start; shutdown during startup, fatal error, won't start, crash loop
    kctl log-dir start /var/lib/kafka/data | what stops the start, and what the start would destroy
    kctl state-log explain 'java.io.IOException: No space left on device' | what an exception means
    see a-broker-does-not-start
what happens if I start this broker; is it safe to start, copy back a disk, restore a volume
    kctl log-dir start /mnt/copy/data --other-copies evidence/ | what a start cuts, deletes or renames
    see before-you-start-a-broker
a broker was killed; why did it stop, out of memory, oom, crashed, halted
    kctl state-log timeline evidence/ | when each broker started, stopped or was killed, and the cause
messages are gone; data loss, lost records, missing messages, offset out of range
    kctl replica loss evidence/ | which records are lost, since when, why, and which copies still have them
    kctl audit run evidence/ --out report | everything, with a report to attach to a ticket
    see messages-are-gone
was anything lost; after an outage, after a power failure, is the data safe
    kctl replica loss evidence/ | lost records, or what is missing to be sure that there are none
    see was-anything-lost
get lost records back; recover, restore messages, undelete
    kctl replica loss evidence/ --export lost | the lost records that copies still hold, as files
    kctl replica recover lost --dry-run | what would be produced into the topics again
    see the-whole-incident
what happened to offset 4711; one message, a record, when was it written, why is it gone
    kctl replica explain evidence/ --topic orders --partition 0 --offset 4711 | its history, with proofs
replicas differ; diverged, out of sync data, inconsistent replicas, different checksums
    kctl replica compare evidence/ | where copies differ, and whose is the partition
    kctl replica verify | the same on a running cluster
    see which-copy-to-keep
unclean leader election; data loss after election, unclean
    kctl state-log timeline evidence/ | which elections were unclean, and the line that shows it
    kctl replica loss evidence/ | what each cost
    see unclean-election
a partition has no leader; offline partition, LEADER_NOT_AVAILABLE, leader -1, leader none
    kctl topic describe --offline | the partitions without a leader and their last ISR
    kctl elect unclean orders:0 --dry-run | the candidates, and what each would lose
    see unclean-election
who led a partition when; leader history, leader epoch, when did the leader change
    kctl state-log timeline evidence/ --topic orders --partition 0 | leaders, ISRs and causes with their lines
    see who-led-when
replica never joins the ISR; under-replicated, URP, ISR shrink, not in sync, lagging replica
    kctl topic describe --under-replicated | which replicas are not in the ISR
    kctl cluster health | what is wrong with the cluster, worst first
    kctl state-log timeline evidence/ --topic orders | when and why a replica left
not enough replicas; NotEnoughReplicasException, min.insync.replicas, acks=all fails
    kctl topic describe --under-min-isr | the partitions that refuse acks=all
    kctl cluster predict --stop 2 | what would fail if this broker stops too
a segment is corrupt; CorruptRecordException, crc mismatch, invalid record, bad batch
    kctl segment verify /var/lib/kafka/data | every damaged byte range, and what a recovery would cut
    kctl replica compare evidence/ | which replica has the right bytes
an index is corrupt; rebuild index, time index, timeindex, missing index
    kctl segment verify /var/lib/kafka/data/orders-0 | which entries are wrong
    kctl segment rebuild /var/lib/kafka/data/orders-0 --to rebuilt | right indexes, byte for byte as a broker writes them
look into a segment; dump log, print records, what is in this file, read .log
    kctl segment dump /var/lib/kafka/data/orders-0/00000000000000000000.log --records | batches and records
what are these files; I have a folder of evidence, unknown files, inventory
    kctl inventory evidence/ | each file, what it is, and how much of it kctl understands
what does this log line mean; error in server.log, explain a message, stack trace
    kctl state-log explain broker-3/logs/server.log:214 | what the line says, why, and what to do
merge the logs of all brokers; one timeline, correlate logs, sort logs by time
    kctl state-log merge evidence/ | one order of time, whatever the format and zone
a consumer is stuck; no progress, lag grows, consumer lag, behind, slow consumer
    kctl group describe billing | lag, members and who holds which partition
    kctl transactions hanging /var/lib/kafka/data | open transactions that hold read_committed consumers back
    see a-consumer-lags
reset offsets; replay, rewind, start from the beginning, skip messages
    kctl group reset billing --topic orders --to-earliest --dry-run | the offsets before and after
offsets of a group are gone; offsets expired, group was deleted, committed offsets lost
    kctl offsets history billing /var/lib/kafka/data | every commit that the log still holds
    kctl offsets reset-file billing /var/lib/kafka/data --as-of 2026-11-21T13:00:00Z | a file to set them again
a transaction hangs; last stable offset, read_committed stuck, LSO, open transaction
    kctl transactions hanging /var/lib/kafka/data | which, since when, of whom
    kctl transactions abort orders-0 --start-offset 4711 --dry-run | the abort that ends it
who deleted my topic; topic disappeared, topic is gone, topic was recreated
    kctl state-log merge evidence/ --topic orders --grep -i.delet | the lines about it
    kctl metadata show /var/lib/kafka/data | topics and their ids in a KRaft metadata log
    kctl journal list | what kctl itself changed here
a topic does not go away; stuck delete, marked for deletion, delete topic hangs
    kctl cluster health | which deletions wait, and for what
    see a-stuck-delete
move partitions; reassign, rebalance, drain a broker, decommission, remove a broker
    kctl reassign plan --drain 3 --to drain.json | the fewest moves, by rack
    kctl reassign execute drain.json --throttle 50MiB --dry-run | every write, before it is made
    see drain-a-broker
a reassignment is stuck; never finishes, reassignment in progress, cannot cancel
    kctl reassign status | what moves, how far, and why it does not go on
    kctl reassign cancel drain.json --dry-run | what a cancellation would put back
    see a-stuck-reassignment
undo a change; roll back, I made a mistake, wrong config, revert
    kctl journal list | every change that kctl made here
    kctl journal undo 2026-11-21T14:03:11Z-5f2c --dry-run | the writes that put it back
    see undo-a-bad-reassignment
replace a broker; new hardware, dead host, swap a broker
    kctl reassign plan --replace 3=7 --to replace.json | the moves from the old broker to the new one
    see replace-a-broker
restart all brokers; rolling restart, upgrade, patch, reboot
    kctl cluster rolling | which node next, and whether it is safe now
    kctl cluster predict --stop 2 | what is without a leader while this broker is down
    see rolling-restart
more replicas; replication factor, increase replication, only one copy
    kctl reassign plan --replication-factor 3 --topics orders --to more.json | a plan that only adds
    see raise-replication
leaders are not balanced; preferred leader, uneven load, one broker leads everything
    kctl elect status | partitions that their first replica does not lead
    kctl elect preferred --dry-run | the elections that put it right
the controller quorum; no controller, KRaft voter lost, lost majority, no active controller
    kctl quorum describe | voters, lag, and who leads
    see lost-quorum-member
migrate from ZooKeeper to KRaft; leave zookeeper, migration
    kctl migration check | what stands against it now
    see migrate-from-zookeeper
access is denied; TopicAuthorizationException, not authorized, ACL, permission
    kctl acl check User:billing read topic:orders | which rule decides
    kctl acl audit | rules that allow too much, or nothing
    see somebody-is-denied
give an application access; grant, create user, new principal, produce permission
    kctl acl create --principal User:billing --consumer --topic orders --group billing --dry-run | the rules
    see give-an-application-access
tiered storage is broken; remote segments, objects in s3 missing, remote log, copy to tier failed
    kctl remote audit evidence/ | metadata against objects against local logs
    kctl remote lookup evidence/ --topic orders --partition 0 --offset 4711 | the object that serves an offset
    see is-my-tier-whole
is my backup good; verify a copy, restore test, snapshot of a volume
    kctl segment verify /backup/kafka | every byte
    kctl replica compare /backup/kafka /var/lib/kafka/data | the backup against the original
    see verify-a-backup
copy evidence; collect logs, support bundle, before it is gone, save the state
    kctl collect ssh://broker1/var/lib/kafka/data --to evidence | copies of running brokers, with a manifest
    see messages-are-gone
messages with wrong timestamps; retention does not delete, future timestamp, year 58870
    kctl audit run /var/lib/kafka/data --out report | the segment, offset and time that hold retention back
"""
EVIDENCE_FREE = frozenset(("a", "an", "the", "is", "are", "my", "of", "to", "in", "on", "i", "it", "and", "not", "no", "was", "has", "have", "what", "this"))  # fmt: skip


class Question(NamedTuple):
    """What people say, and the commands that answer it."""

    words: tuple[str, ...]
    commands: tuple[tuple[str, str], ...]
    """Each with what it shows."""
    runbook: str | None


def questions() -> Iterator[Question]:
    """The rows of the table."""
    for block in re.split(r"\n(?=\S)", TABLE.strip()):
        head, *lines = block.split("\n")
        title, _, others = head.partition("; ")
        pairs = [line.strip().partition(" | ") for line in lines if " | " in line]
        runbook = next((line.strip()[4:] for line in lines if line.strip().startswith("see ")), None)
        yield Question(
            (title, *filter(None, others.split(", "))),
            tuple((command_line, shows) for command_line, _, shows in pairs),
            runbook,
        )


def _stems(text: str) -> set[str]:
    words = re.findall(r"[a-z0-9.]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", text).lower())
    return {re.sub(r"(?:ing|ed|es|s|e)$", "", word) or word for word in words if word not in EVIDENCE_FREE}


def answers(text: str) -> list[Question]:
    """The questions that have most of the words, the best first."""
    wanted = _stems(text)
    ranked = []
    for number, question in enumerate(questions()):
        in_words = wanted & _stems(" ".join(question.words))
        in_commands = wanted & _stems(" ".join(word for pair in question.commands for word in pair))
        best = max(len(wanted & _stems(words)) for words in question.words)
        score = 4 * len(in_words) + len(in_commands - in_words) + 2 * best
        if in_words or 2 * len(in_commands) >= max(len(wanted), 1):
            ranked.append((-score, number, question))
    ranked.sort(key=lambda item: item[:2])
    return [question for score, _, question in ranked if 2 * score <= ranked[0][0]][:5]


@command("help", status="0 found · 2 no question has these words")
@click.argument("words", nargs=-1)
def help_(frame: Frame, words: Sequence[str]) -> Outcome:
    """Find the command for what you want to know, in your own words.

    Without WORDS all questions are listed.

    $ kctl help disk full
    $ kctl help "who deleted my topic"
    """
    from kctl.errors import BadValue
    from kctl.rows.house import ANSWER

    chosen = answers(" ".join(words)) if words else list(questions())
    if not chosen:
        raise BadValue(
            f"no question has the words {' '.join(words)!r}",
            "`kctl help` lists the questions, `kctl --help` all commands",
        )
    rows = [
        ANSWER(
            question=question.words[0],
            also_called=list(question.words[1:]),
            commands=[{"command": line, "shows": shows} for line, shows in question.commands],
            runbook=question.runbook and f"docs/runbooks/{question.runbook}.md",
        )
        for question in chosen
    ]
    return Outcome(rows, text=answers_text if words else folding(list_text))


def answers_text(rows: Iterable[Row], page: Page) -> Iterator[str]:
    """Each question with its commands, ready to be copied."""
    for n, row in enumerate(rows):
        if n:
            yield ""
        yield page.style(str(row["question"]), "bold")
        commands = row["commands"]
        assert isinstance(commands, list)
        for pair in commands:
            yield f"{NEXT}{pair['command']}"
            yield page.style(f"         {pair['shows']}", "dim")
        if row["runbook"]:
            yield page.style(f"         step by step: {row['runbook']}", "dim")


def list_text(rows: Iterable[Row], page: Page) -> Iterator[str]:
    """A line a question."""
    for row in rows:
        yield str(row["question"])
    yield ""
    yield "`kctl help WORDS` gives the commands"
