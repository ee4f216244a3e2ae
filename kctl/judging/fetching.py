"""Missing evidence and the command that fetches it: a function for each kind.

Which command that is depends on the cluster: one without ZooKeeper has no znodes, and of one that runs and is asked over
its own protocol nothing is copied. `fitting` gives a judgement the commands of its cluster.
"""

from collections.abc import Callable, Iterator

from formats.log_dir.file_names import FolderKind
from kctl.evidence.model import FoundEvidence, Replica, Unopened
from kctl.judging.judgement import (
    Judgement,
    JudgementSubject,
    MissingEvidence,
    Question,
    Verdict,
    selecting,
)
from kctl.model import TopicPartition, command_line

CLUSTER_METADATA = "__cluster_metadata"
NOT_THERE = "not in the evidence"
EXPORT = "kctl znode export --zookeeper HOSTS znodes.jsonl"
COLLECT = "kctl collect --to more"
LIVE = ("--bootstrap-server", "HOSTS")
GO_ON = "kctl collect --resume, with the arguments of the first time"
COPY_METADATA = f"{COLLECT} ssh://CONTROLLER/METADATA_LOG_DIR"
EITHER = "znodes or metadata log: "


def replica_of(
    broker_id: int, partition: TopicPartition, moment: str | None = None, why: str = NOT_THERE
) -> MissingEvidence:
    """The copy of a partition that a broker keeps."""
    folder = "more" if moment is None else f"moments/{moment}/more"
    get = f"kctl collect --to {folder} {selecting(*partition)} ssh://BROKER{broker_id}/LOG_DIR"
    return MissingEvidence(f"replica of broker {broker_id}", broker_id, moment, why, get)


def other_replicas(partition: TopicPartition, moment: str | None = None) -> MissingEvidence:
    """The copies of brokers that nothing in the evidence names."""
    get = f"{COLLECT} {selecting(*partition)} ssh://BROKER/LOG_DIR"
    return MissingEvidence("replicas of the other brokers", None, moment, NOT_THERE, get)


def settings_of(broker_id: int | None, moment: str | None = None) -> MissingEvidence:
    """The `server.properties` of a broker."""
    owner, name = ("BROKER", "") if broker_id is None else (f"BROKER{broker_id}", f" of broker {broker_id}")
    get = f"{COLLECT} ssh://{owner}/SERVER_PROPERTIES"
    return MissingEvidence(f"server.properties{name}", broker_id, moment, NOT_THERE, get)


def log_dirs_of(broker_id: int | None, folder: str, moment: str | None = None) -> MissingEvidence:
    """The log directories of a broker of which a folder holds nothing."""
    owner = "BROKER" if broker_id is None else f"BROKER{broker_id}"
    name = "log directories" if broker_id is None else f"log directories of broker {broker_id}"
    return MissingEvidence(
        name, broker_id, moment, f"{folder} holds none", f"{COLLECT} ssh://{owner}/LOG_DIR"
    )


def of_unknown_brokers(
    evidence: FoundEvidence, question: Question, is_selected: Callable[[TopicPartition], bool]
) -> Iterator[Judgement]:
    """Judgements on partitions all of whose copies are of brokers that nobody knows: they are compared with nothing."""
    folders: dict[TopicPartition, list[Replica]] = {}
    for replica in evidence.replicas:
        if replica.kind is FolderKind.LIVE and replica.topic_partition.topic != CLUSTER_METADATA:
            folders.setdefault(replica.topic_partition, []).append(replica)
    for partition, replicas in sorted(folders.items()):
        if any(replica.broker_id is not None for replica in replicas) or not is_selected(partition):
            continue
        paths = {
            # A partition folder may be all that was given.
            log_dir.path if log_dir.path.is_relative_to(log_dir.root.path) else replica.folder: log_dir.root
            for replica in replicas
            for log_dir in (replica.log_dir,)
        }
        shown = {evidence.place_of(path, root).file or "." for path, root in paths.items()}
        missing = tuple(
            MissingEvidence(
                f"broker id of {folder}",
                None,
                None,
                "no file in it tells it",
                f"name it: --broker ID={folder}",
            )
            for folder in sorted(shown)
        )
        subject = JudgementSubject(*partition)
        yield Judgement(
            question, Verdict.COULD_NOT_JUDGE, subject, "of which broker its copy is, nothing tells", missing
        )


def unopened_path(unopened: Unopened) -> MissingEvidence:
    """A path that was not examined, below which more copies may lie."""
    return MissingEvidence(f"what lies below {unopened.path}", None, None, f"it {unopened.why}", unopened.get)


def assignment(
    what: str = "which brokers hold replicas, who was in the ISR", moment: str | None = None
) -> MissingEvidence:
    """The cluster's metadata: znodes, or the metadata log of a KRaft cluster."""
    return MissingEvidence(EITHER + what, None, moment, NOT_THERE, f"{EXPORT}, or {COPY_METADATA}")


def broker_logs(what: str, broker_id: int | None = None, why: str = NOT_THERE) -> MissingEvidence:
    """Text logs of a broker, such as `server.log of broker 2 between 10:02 and 10:40`."""
    owner = "BROKER" if broker_id is None else f"BROKER{broker_id}"
    return MissingEvidence(what, broker_id, None, why, f"{COLLECT} ssh://{owner}/KAFKA_LOGS_DIR")


def fitting(evidence: FoundEvidence, *, is_live: bool = False) -> Callable[[Judgement], Judgement]:
    """What gives a judgement the commands that fetch what is missing in this evidence.

    A KRaft node has no znodes to export. `is_live`: the copies came from the running cluster, by its own protocol.
    """
    if is_live:
        return lambda judgement: _refitted(judgement, _live)
    twins, later = _twins_in(evidence), _begun_later(evidence)

    def of_copies(judgement: Judgement) -> Judgement:
        return _of_later_records(_of_two_hosts(judgement, twins), later)

    if any(log_dir.is_kraft for log_dir in evidence.log_dirs):
        return lambda judgement: _refitted(of_copies(judgement), lambda missing, _: _of_kraft(missing))
    return of_copies


LaterStarts = dict[TopicPartition, int]


def _begun_later(evidence: FoundEvidence) -> LaterStarts:
    """The partitions of which records before an offset were not copied, with the greatest of these offsets."""
    if not evidence.begun_later:
        return {}
    offsets, starts = dict(evidence.begun_later), LaterStarts()
    for replica in evidence.replicas:
        if (offset := offsets.get(replica.folder)) is not None:
            tp = replica.topic_partition
            starts[tp] = max(offset, starts.get(tp, 0))
    return starts


def _of_later_records(judgement: Judgement, later: LaterStarts) -> Judgement:
    """The judgement, not sound if the copy leaves out earlier records: these were not examined."""
    topic, partition = judgement.subject.topic, judgement.subject.partition
    if topic is None or partition is None or judgement.verdict is not Verdict.SOUND:
        return judgement
    offset = later.get(TopicPartition(topic, partition))
    if offset is None or judgement.question not in (
        Question.LOSS,
        Question.DIVERGENCE,
        Question.TRANSACTIONS,
    ):
        return judgement
    missing = MissingEvidence(
        f"records before offset {offset:,}",
        None,
        None,
        "`kctl collect --since` left them out",
        f"kctl collect --to MORE --records {selecting(topic, partition)}",
    )
    return judgement._replace(
        verdict=Verdict.COULD_NOT_JUDGE,
        reason=f"from offset {offset:,} on nothing is wrong: {judgement.reason}",
        missing=(*judgement.missing, missing),
    )


Twins = dict[TopicPartition, tuple[str, MissingEvidence]]


def _twins_in(evidence: FoundEvidence) -> Twins:
    """The partitions of which two hosts with one broker id have copies, in words, and the command that compares them."""
    ids = [log_dir.broker_id for log_dir in evidence.log_dirs]
    if len(set(ids)) == len(ids):
        return {}
    from kctl.judging.identities import two_hosts

    twins: Twins = {}
    for pair in two_hosts(evidence):
        places = [evidence.place_of(log_dir.path, log_dir.root).file for log_dir in (pair.first, pair.second)]
        what = f"broker {pair.broker_id} is two hosts ({places[0]}, {places[1]}), not two moments of one"
        missing = MissingEvidence(
            f"a comparison of the two hosts with broker id {pair.broker_id}",
            pair.broker_id,
            None,
            pair.reason,
            f"kctl replica compare EVIDENCE --broker {pair.broker_id}={pair.first.path} --broker ANOTHER={pair.second.path}",
        )
        twins |= dict.fromkeys(pair.common, (what, missing))
    return twins


def _of_two_hosts(judgement: Judgement, twins: Twins) -> Judgement:
    """Copies of two hosts are no moments: what was judged of a partition as if they were does not stand."""
    topic, partition = judgement.subject.topic, judgement.subject.partition
    if judgement.question not in (Question.LOSS, Question.DIVERGENCE) or topic is None or partition is None:
        return judgement
    what, missing = twins.get(TopicPartition(topic, partition), (None, None))
    if what is None or missing is None:
        return judgement
    if judgement.verdict in (Verdict.SOUND, Verdict.COULD_NOT_JUDGE):
        return judgement._replace(
            verdict=Verdict.COULD_NOT_JUDGE, reason=what, missing=(missing, *judgement.missing)
        )
    return judgement._replace(reason=f"{judgement.reason}; {what}", missing=(missing, *judgement.missing))


def _refitted(
    judgement: Judgement, refit: Callable[[MissingEvidence, str | None], MissingEvidence]
) -> Judgement:
    if not judgement.missing:
        return judgement
    topic = judgement.subject.topic
    return judgement._replace(missing=tuple(refit(missing, topic) for missing in judgement.missing))


def _of_kraft(missing: MissingEvidence) -> MissingEvidence:
    if EXPORT not in missing.get:
        return missing
    what = "metadata log: " + missing.what.removeprefix(EITHER)
    return missing._replace(what=what, get=COPY_METADATA)


def _live(missing: MissingEvidence, topic: str | None) -> MissingEvidence:
    """The command that asks the running cluster in place of one that copies files."""
    if "kctl collect" not in missing.get and EXPORT not in missing.get:
        return missing
    if "__transaction_state" in missing.get:
        get = "kctl transactions hanging --bootstrap-server HOSTS"
    elif EXPORT in missing.get:
        get = command_line("kctl topic describe", [topic or "TOPIC"], LIVE)
    elif "__remote_log_metadata" in missing.get:
        get = "name __remote_log_metadata as well"
    elif "KAFKA_LOGS_DIR" in missing.get:
        return missing  # no request reads the text logs of a broker
    else:
        get = command_line("kctl replica verify", [topic or "TOPIC"], LIVE)
    return missing._replace(get=get)
