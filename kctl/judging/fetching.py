"""Missing evidence and the command that fetches it: a function for each kind."""

from kctl.judging.judgement import MissingEvidence
from kctl.model import TopicPartition

NOT_THERE = "not in the evidence"


def replica_of(
    broker_id: int, partition: TopicPartition, moment: str | None = None, why: str = NOT_THERE
) -> MissingEvidence:
    """The copy of a partition that a broker keeps."""
    folder = f"broker-{broker_id}" if moment is None else f"moments/{moment}/broker-{broker_id}"
    get = f"rsync -a BROKER{broker_id}:LOG_DIR/{partition.topic}-{partition.partition} {folder}/"
    return MissingEvidence(f"replica of broker {broker_id}", broker_id, moment, why, get)


def other_replicas(partition: TopicPartition, moment: str | None = None) -> MissingEvidence:
    """The copies of brokers that nothing in the evidence names."""
    get = f"rsync -a BROKER:LOG_DIR/{partition.topic}-{partition.partition} broker-ID/"
    return MissingEvidence("replicas of the other brokers", None, moment, NOT_THERE, get)


def log_dirs_of(broker_id: int | None, folder: str, moment: str | None = None) -> MissingEvidence:
    """The log directories of a broker of which a folder holds nothing."""
    owner = "BROKER" if broker_id is None else f"BROKER{broker_id}"
    name = "log directories" if broker_id is None else f"log directories of broker {broker_id}"
    return MissingEvidence(
        name, broker_id, moment, f"{folder} holds none", f"rsync -a {owner}:LOG_DIR/ {folder}/"
    )


def unopened_path(path: str) -> MissingEvidence:
    """A path of the evidence that could not be opened, below which more copies may lie."""
    return MissingEvidence(
        f"what lies below {path}", None, None, "it could not be opened", "give kctl a copy that it can read"
    )


def assignment(
    what: str = "which brokers hold replicas, who was in the ISR", moment: str | None = None
) -> MissingEvidence:
    """The cluster's metadata: znodes, or the metadata log of a KRaft cluster."""
    get = "kctl znode export --zookeeper HOSTS znodes.jsonl, or rsync -a CONTROLLER:METADATA_LOG_DIR/__cluster_metadata-0 ."
    return MissingEvidence(f"znodes or metadata log: {what}", None, moment, NOT_THERE, get)


def broker_logs(what: str, broker_id: int | None = None, why: str = NOT_THERE) -> MissingEvidence:
    """Text logs of a broker, such as `server.log of broker 2 between 10:02 and 10:40`."""
    owner = "BROKER" if broker_id is None else f"BROKER{broker_id}"
    folder = "broker-ID" if broker_id is None else f"broker-{broker_id}"
    return MissingEvidence(what, broker_id, None, why, f"rsync -a {owner}:KAFKA_LOGS_DIR/ {folder}/logs/")
