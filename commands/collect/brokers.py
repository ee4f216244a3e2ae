"""What brokers tell over Kafka's own protocol, as files of a copy: `metadata/NAME.jsonl`, and batches with `--records`."""

from __future__ import annotations

from collections.abc import Collection as Ids
from collections.abc import Iterable, Iterator
from itertools import chain
from time import monotonic
from typing import TYPE_CHECKING, Protocol

from commands.cli.connecting import wire
from commands.cli.frame import Frame
from commands.cli.render import Row
from kctl.errors import BadValue, KctlError

if TYPE_CHECKING:
    from formats.log.hashed_contents import ContentHash
    from kctl.collect.collection import Collected, Collection
    from kctl.collect.placement import Choice
    from kctl.model import TopicPartition

METADATA = "metadata"


def without_metadata(rows: Iterable[Row], content_hash: ContentHash) -> Iterator[Row]:
    """Rows with hashes in the place of what clients said of their commits."""
    for row in rows:
        told = row.get("metadata")
        yield {**row, "metadata": content_hash.replaced_text(told)} if isinstance(told, str) else row


class Missing(Protocol):
    """Takes the name of a file and why it lacks something; not `is_there`: the version of the brokers does not have it."""

    def __call__(self, name: str, why: str, *, is_there: bool = True) -> None:
        """Note it."""
        ...


class AskedCluster:
    """The cluster that a copy is made of, with what of it is wanted. Ends its connections as it is closed."""

    def __init__(self, frame: Frame, choice: Choice, *, records: bool) -> None:
        """Raises BadValue for a topic or partition that is not there, KctlError where the cluster cannot be read."""
        from kctl.cluster.names import refuse_absent
        from kctl.wire.reading import read_cluster
        from kctl.wire.replicas.fetching import refuse_old

        self.choice, self.records = choice, records
        self.wire = wire(frame)
        self.shown = f"kafka://{self.wire.location}"
        try:
            self.state = read_cluster(
                self.wire, configs=("topics", "brokers"), visibility=True, log_dirs_of=None
            )
            try:
                refuse_absent(choice.topics, self.state)
            except KctlError as error:
                raise BadValue(error.message, error.hint) from error
            if records:
                refuse_old(self.wire)
            self.partitions = [tp for tp in self.state.partitions() if choice.wants(str(tp))]
            if not self.partitions and not choice.is_all:
                raise BadValue(
                    "no partition of the cluster is among those that were chosen",
                    "`kctl topic describe` shows which there are",
                )
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End the connections."""
        self.wire.close()

    @property
    def brokers(self) -> list[int]:
        """The brokers that are alive or hold replicas of what is wanted, ascending."""
        assigned = {id for tp in self.partitions for id in self.state.replicas(tp) or ()}
        return sorted(assigned | set(self.state.brokers))

    def shown_broker(self, broker_id: int) -> str:
        """How a broker is named as a source."""
        return f"{self.shown}/broker-{broker_id}"

    @property
    def names(self) -> list[str]:
        """The names of its sources."""
        return [self.shown, *(map(self.shown_broker, self.brokers) if self.records else ())]

    def copy(self, run: Collection, by_path: Ids[int | None] = ()) -> Iterator[Collected]:
        """Write what is told, then the batches of each broker, but of those whose log directories were copied `by_path`.

        How it went comes source by source.
        """
        yield self._metadata(run)
        if self.records:
            yield from self._records(run, by_path)

    def _metadata(self, run: Collection) -> Collected:
        from kctl.collect.collection import Collected
        from kctl.wire.replicas.collecting import write_made

        begun, begun_ms = monotonic(), run.now_ms()
        done = Collected(self.shown, [])
        noted = set[tuple[str, str]]()

        def lacks(name: str, why: str, *, is_there: bool = True) -> None:
            note = run.lacks if is_there else run.leaves_out
            if (name, why) not in noted:
                note(done, f"{METADATA}/{name}", self.shown, "an answer", why)
            noted.add((name, why))

        for name, rows in self._files(lacks):
            if run.content_hash is not None:
                rows = without_metadata(rows, run.content_hash)
            write_made(run, f"{METADATA}/{name}", self.shown, _lines(rows), done)
        return run.ended(done, begun, begun_ms, self.choice, "requests of Kafka's protocol")

    def _records(self, run: Collection, by_path: Ids[int | None]) -> Iterator[Collected]:
        from kctl.collect.collection import Collected
        from kctl.wire.replicas.collecting import BrokerPart, ReplicaCopies

        begun, begun_ms = monotonic(), run.now_ms()
        parts = {
            id: BrokerPart(id, self.shown_broker(id), Collected(self.shown_broker(id), [id]))
            for id in self.brokers
            if id not in by_path
        }
        for id in parts.keys() - set(self.wire.nodes):
            parts[id].done.incomplete, parts[id].done.is_lost = "it is not alive", True
        ReplicaCopies(run, self.wire, self.state, parts, self.choice.since_ms).copy(self.partitions)
        for part in parts.values():
            yield run.ended(part.done, begun, begun_ms, self.choice, "Fetch")

    # --- what is told, file by file ---

    def _files(self, lacks: Missing) -> Iterator[tuple[str, Iterable[Row]]]:
        """The name of each file and its rows; `lacks` is told what could not be read."""
        from commands.cluster.describe import broker_rows, cluster_row, log_dir_row
        from commands.config import rows_of
        from commands.topic import partition_row, topic_row
        from kctl.cluster.partition_health import health_of

        state, topics = self.state, sorted({tp.topic for tp in self.partitions})
        for problem in state.all_problems:
            lacks("cluster.jsonl", f"{problem.place}: {problem.reason}")
        if state.hidden:
            lacks("cluster.jsonl", state.hidden)
        yield (
            "cluster.jsonl",
            chain(
                [cluster_row(state, "admin")],
                broker_rows(state),
                (topic_row(name, state, with_configs=True) for name in topics),
                (partition_row(health_of(tp, state), state) for tp in self.partitions),
                rows_of(state, "brokers", None, (), show_secrets=False),
            ),
        )
        for log_dir in state.log_dirs:
            if log_dir.path is None:
                lacks("log_dirs.jsonl", f"log directories of broker {log_dir.broker_id}: {log_dir.error}")
        yield "log_dirs.jsonl", map(log_dir_row, state.log_dirs)
        yield "replicas.jsonl", list(self._replicas(lacks))
        yield "groups.jsonl", list(self._groups(lacks))
        yield "transactions.jsonl", list(self._transactions(lacks))
        yield "producers.jsonl", list(self._producers(lacks))

    def _replicas(self, lacks: Missing) -> Iterator[Row]:
        """Where each replica lies, where its log begins and ends, its epochs."""
        from kctl.cluster.disks import places
        from kctl.rows.live import REPLICA
        from kctl.wire.adapter import TooOld
        from kctl.wire.replicas.collecting import bounds
        from kctl.wire.replicas.epochs import replica_epochs
        from kctl.wire.replicas.fetching import EARLIEST, LATEST, list_offsets

        alive = set(self.wire.nodes)
        keys = [(id, tp) for tp in self.partitions for id in self.state.replicas(tp) or () if id in alive]
        starts = list_offsets(self.wire, keys, EARLIEST)
        ends = list_offsets(self.wire, keys, LATEST)
        watermarks = bounds(self.wire, self.state, self.partitions)
        begins = {key: start for key, start in starts.items() if isinstance(start, int)}
        no_epochs: str | None = None
        try:
            epochs = replica_epochs(self.wire, self.state, begins)
        except TooOld as error:
            epochs, no_epochs = {}, error.message
            lacks("replicas.jsonl", f"epochs of replicas: {error.message}", is_there=False)
        stored = places(self.state.log_dirs)
        unlisted = {d.broker_id: d.error for d in self.state.log_dirs if d.path is None}
        for tp in self.partitions:
            for broker_id in self.state.replicas(tp) or ():
                key, place = (broker_id, tp), stored.get((tp, broker_id))
                start, end, listed = starts.get(key), ends.get(key), epochs.get(key)
                why = next((v.message for v in (start, end, listed) if isinstance(v, KctlError)), None)
                why = why or (None if broker_id in alive else f"broker {broker_id} is not alive")
                if why:
                    lacks("replicas.jsonl", f"{tp} on broker {broker_id}: {why}")
                is_leader = self.state.leader(tp) == broker_id
                reasons = [why] if why else []
                if place is None and broker_id in alive:
                    reasons.append(unlisted.get(broker_id) or "no log directory of the broker has it")
                if is_leader and tp not in watermarks:
                    reasons.append("its leader does not tell the high watermark")
                if listed is None and no_epochs and broker_id in alive:
                    reasons.append(no_epochs)
                yield REPLICA(
                    **tp._asdict(), broker_id=broker_id, is_leader=is_leader,
                    log_dir=place.log_dir if place else None,
                    size_in_bytes=place.size_in_bytes if place else None,
                    log_start_offset=_known(start), log_end_offset=_known(end),
                    high_watermark=watermarks.get(tp) if is_leader else None,
                    epochs=[list(entry) for entry in listed] if isinstance(listed, list) else None,
                    why="; ".join(reasons) or None,
                )  # fmt: skip

    def _groups(self, lacks: Missing) -> Iterator[Row]:
        """Groups, their members, their committed offsets."""
        from commands.group import group_rows
        from kctl.wire.groups import by_coordinator, find_groups, list_groups
        from kctl.wire.hidden import why_groups_may_be_hidden, why_offsets_may_be_hidden

        listed, failures = list_groups(self.wire)
        for failure in failures:
            lacks("groups.jsonl", failure.message)
        hidden = why_offsets_may_be_hidden(self.wire)
        for why in filter(None, (why_groups_may_be_hidden(self.wire), hidden)):
            lacks("groups.jsonl", why)
        denied: dict[str, KctlError] = {}
        for coordinator, names in by_coordinator(listed).items():
            try:
                groups = find_groups(self.wire, {coordinator: names}, denied)
            except KctlError as error:
                lacks("groups.jsonl", f"groups of broker {coordinator}: {error.message}")
                continue
            for name, group in sorted(groups.items()):
                try:
                    yield from group_rows(self.wire, group, self.state, hidden)
                except KctlError as error:
                    lacks("groups.jsonl", f"group {name}: {error.message}")
        for name, refusal in denied.items():
            lacks("groups.jsonl", f"group {name}: {refusal.message}")

    def _transactions(self, lacks: Missing) -> Iterator[Row]:
        """The transactional ids that coordinators know."""
        from kctl.rows.internal_topics import TRANSACTION
        from kctl.wire.transactions import coordinated, lacking_request

        if lacking := lacking_request(self.wire):
            lacks("transactions.jsonl", f"the brokers are too old for {lacking}", is_there=False)
            return
        known, unread = coordinated(self.wire, ())
        if unread:
            lacks("transactions.jsonl", unread)
        for transaction in sorted(known.values(), key=lambda t: t.transactional_id):
            yield TRANSACTION.of(
                transaction, partitions=list(map(str, transaction.partitions)),
                last_update_timestamp=None, log_partition=None, log_offset=None,
            )  # fmt: skip

    def _producers(self, lacks: Missing) -> Iterator[Row]:
        """The producers that leaders know."""
        from kctl.rows.live import PRODUCER
        from kctl.wire.transactions import lacking_request, producers_at

        if lacking := lacking_request(self.wire):
            lacks("producers.jsonl", f"the brokers are too old for {lacking}", is_there=False)
            return
        led: dict[int, list[TopicPartition]] = {}
        for tp in self.partitions:
            leader = self.state.leader(tp)
            if leader is None or leader < 0:
                lacks("producers.jsonl", f"{tp} has no leader")
            else:
                led.setdefault(leader, []).append(tp)
        for tp, answer in sorted(producers_at(self.wire, led).items(), key=lambda item: item[0]):
            if isinstance(answer, KctlError):
                lacks("producers.jsonl", f"{tp}: {answer.message}")
                continue
            for producer in answer:
                yield PRODUCER.of(producer, **tp._asdict())


def _known(answer: int | KctlError | None) -> int | None:
    return answer if isinstance(answer, int) else None


def _lines(rows: Iterable[Row]) -> Iterator[bytes]:
    import msgspec

    encode = msgspec.json.Encoder().encode
    return (encode(row) + b"\n" for row in rows)
