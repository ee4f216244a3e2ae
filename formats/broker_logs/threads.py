"""The threads of a broker that may die of an error, and what stops with each.

Names as Kafka gives them: ShutdownableThread, KafkaScheduler, KafkaRequestHandlerPool, SocketServer @ 0.8.2 to 4.0.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class BrokerThread(NamedTuple):
    """A kind of thread."""

    pattern: re.Pattern[str]
    what: str
    """The thread in words, such as `the log cleaner`."""
    stops: str
    """What stops with it, as a sentence."""


def _thread(pattern: str, what: str, stops: str) -> BrokerThread:
    return BrokerThread(re.compile(pattern), what, stops)


THREADS = (
    _thread(r"kafka-log-cleaner-thread-\d+", "a thread of the log cleaner",
            "With its last thread compaction stops: compacted topics, also __consumer_offsets and __transaction_state, grow "
            "until the broker restarts."),
    _thread(r"ReplicaFetcherThread-.*", "a fetcher of replicas",
            "The partitions that it fetched from that leader are no longer replicated here and leave the ISR, until the "
            "broker restarts or their leader changes."),
    _thread(r"ReplicaAlterLogDirsThread-.*", "a mover of replicas between log directories",
            "The replicas that it moved stay where they are; the future copies no longer grow."),
    _thread(r"ConsumerFetcherThread-.*|.*leader-finder-thread", "a fetcher of the old consumer",
            "The old consumer (or MirrorMaker) of this process reads no more."),
    _thread(r"(?:data-plane-|control-plane-)?kafka-request-handler-\d+", "a handler of requests",
            "Fewer threads handle requests; without any the broker answers none though its process runs."),
    _thread(r"(?:data-plane-|control-plane-)?kafka-network-thread-.*", "a network thread",
            "The connections that it served hang."),
    _thread(r"(?:data-plane-|control-plane-)?kafka-socket-acceptor-.*", "the acceptor of connections",
            "The listener takes no new connection."),
    _thread(r"Controller-\d+-to-broker-\d+-send-thread", "the controller's sender to one broker",
            "That broker gets no more LeaderAndIsr, UpdateMetadata and StopReplica requests until the controller moves."),
    _thread(r"controller-event-thread", "the controller",
            "The controller does nothing more: no elections, no new topics. Move it: restart this broker."),
    _thread(r"delete-topics-thread.*", "the controller's deletion of topics",
            "Topics marked for deletion stay until the controller moves."),
    _thread(r"TxnMarkerSenderThread-.*", "the sender of transaction markers",
            "Transactions that this coordinator ends stay open in the logs: they hold back read_committed consumers and the "
            "cleaner."),
    _thread(r"LogDirFailureHandler", "the handler of failed log directories",
            "A log directory that fails from now on is not given up."),
    _thread(r"(?:raft-)?[Ee]xpiration-?[Rr]eaper.*", "the reaper of requests that wait",
            "Requests that wait (produce with acks=all, fetch, joins) no longer time out."),
    _thread(r"ThrottledChannelReaper-.*|ThrottledRequestReaper-.*", "the reaper of throttled requests",
            "Clients that were throttled get no answer."),
    _thread(r"kafka-(?:\d+-)?raft-(?:io|outbound-request)-thread|.*raft-io-thread|.*raft-client", "KRaft's metadata quorum",
            "The node takes no more part in the metadata quorum; its process ends."),
    _thread(r".*(?:broker|controller)-\d+-to-controller-.*|.*[Tt]o-?[Cc]ontroller.*", "the sender to the controller",
            "Requests to the controller (ISR changes, forwarded requests) are no longer sent."),
    _thread(r"quorum-controller-\d+-event-handler.*", "the KRaft controller", "The controller handles no more events."),
    _thread(r".*-event-process-thread", "a reader of changes in ZooKeeper",
            "Changes of configuration or features no longer reach this broker."),
    _thread(r"kafka-scheduler-\d+|.*[Ss]cheduler.*", "the scheduler",
            "The task that failed may not run again: retention, flushing or checkpoints."),
    _thread(r"(?:kafka-)?rlm-.*|RLM.*|remote-log-.*|RemoteLog.*", "a thread of tiered storage",
            "Segments may no longer be copied to the tier or deleted from it."),
)  # fmt: skip
NAME = re.compile(r"\[(?P<name>[^\]\n]+)\]")


def thread_of(message: str) -> tuple[str, BrokerThread | None] | None:
    """The name of the thread that a message of it begins with, and its kind; None where it names none."""
    named = NAME.match(message)
    if named is None:
        return None
    name = named["name"].strip()
    bare = re.sub(r"^(?:\w+ (?:id|broker|nodeId|controllerId)=\d+[, ]*)?", "", name)
    bare = re.sub(r"^(?:replicaId=\d+, leaderId=\d+, fetcherId=\d+)", "ReplicaFetcherThread-", bare) or name
    for text in (name, bare):
        for thread in THREADS:
            if thread.pattern.fullmatch(text):
                return name, thread
    if name.startswith("ReplicaFetcher "):
        return name, THREADS[1]
    return name, None
