"""state-change.log: what brokers print when a ZooKeeper controller tells them who leads.

Source: `core/src/main/scala/kafka/server/ReplicaManager.scala` and the metadata caches beside it @ 0.8.1.1 to
3.9.0-rc3.
"""

from formats.log_templates import Template

BROKER_SIDE = (
    Template(
        "B01",
        "0.8.1–2.3",
        "T",
        "RM",
        "received LeaderAndIsr request {state:s} correlation id {correlation_id:i} from controller "
        "{controller_id:i} epoch {controller_epoch:i} for partition {tp:tp}",
        "A broker was told who leads a partition and with which replicas.",
        before="C01 C02",
        after="B08",
    ),
    Template(
        "B02",
        "2.4–3.9",
        "T",
        "RM",
        "Received LeaderAndIsr request {state:s} correlation id {correlation_id:i} from controller "
        "{controller_id:i} epoch {controller_epoch:i}",
        "A broker was told who leads a partition and with which replicas.",
        before="C02 C03",
        after="B08",
    ),
    Template(
        "B03",
        "0.8.1",
        "W",
        "RM",
        "received LeaderAndIsr request correlation id {correlation_id:i} with an old controller epoch "
        "{controller_epoch:i}. Latest known controller epoch is {latest_controller_epoch:i}",
        "A broker turned away a request of a controller that had been replaced.",
        sign="a zombie controller",
    ),
    Template(
        "B04",
        "0.8.2–3.9",
        "W",
        "RM",
        "ignoring LeaderAndIsr request from controller {controller_id:i} with correlation id "
        "{correlation_id:i} since its controller epoch {controller_epoch:i} is old. Latest known "
        "controller epoch is {latest_controller_epoch:i}",
        "A broker turned away a request of a controller that had been replaced.",
        sign="a zombie controller: it was paused or cut off and does not know of its successor",
    ),
    Template(
        "B05",
        "0.8.2–3.9",
        "W",
        "RM",
        "ignoring LeaderAndIsr request from controller {controller_id:i} with correlation id "
        "{correlation_id:i} epoch {controller_epoch:i} for partition {tp:tp} as itself is not in assigned "
        "replica list {replicas:L}",
        "A broker was told about a partition of which it is no replica.",
        before="B01",
        sign="a stale assignment",
    ),
    Template(
        "B06",
        "0.8.2–3.9",
        "W; D 2.3–2.5 / I 2.6+ for `matches`",
        "RM",
        "ignoring LeaderAndIsr request from controller {controller_id:i} with correlation id "
        "{correlation_id:i} epoch {controller_epoch:i} for partition {tp:tp} since its associated leader "
        "epoch {leader_epoch:i} {reason:s}",
        "A broker was told nothing new: it knows this leader epoch or a later one.",
        before="B01 B02",
        sign="a request that was sent again, usually by a new controller",
    ),
    Template(
        "B07",
        "1.0–3.9",
        "W",
        "RM",
        "Ignoring LeaderAndIsr request from controller {controller_id:i} with correlation id "
        "{correlation_id:i} epoch {controller_epoch:i} for partition {tp:tp} as the local replica for the "
        "partition is in an offline log directory",
        "A broker cannot act on a partition whose log directory failed.",
        before="B02",
        sign="a failed disk",
    ),
    Template(
        "B08",
        "0.8.1–3.9",
        "T",
        "RM",
        "handling LeaderAndIsr request correlationId {correlation_id:i} from controller {controller_id:i} "
        "epoch {controller_epoch:i} starting the become-{role:w} transition for partition {tp:tp}« with "
        "leader {leader:i}»",
        "A broker begins to lead or to follow a partition.",
        before="B01 B02",
        after="B09",
    ),
    Template(
        "B09",
        "0.8.1–3.9",
        "T",
        "RM",
        "completed LeaderAndIsr request correlationId {correlation_id:i} from controller {controller_id:i} "
        "epoch {controller_epoch:i} for the become-{role:w} transition for partition {tp:tp}« with leader "
        "{leader:i}»",
        "A broker has begun to lead or to follow a partition.",
        before="B08",
    ),
    Template(
        "B10",
        "0.8.1–2.5",
        "T",
        "RM",
        "stopped fetchers as part of become-{role:w} request from controller {controller_id:i} epoch "
        "{controller_epoch:i} with correlation id {correlation_id:i} for partition {tp:tp}« (last update "
        "controller epoch {last_update_controller_epoch:i})»« with leader {leader:i}»",
        "A broker stopped fetching a partition, to lead it or to fetch it from another.",
        before="B08",
        after="B13 B09",
    ),
    Template(
        "B11",
        "2.6–3.9",
        "I",
        "RM",
        "Stopped fetchers as part of LeaderAndIsr request correlationId {correlation_id:i} from controller "
        "{controller_id:i} epoch {controller_epoch:i} as part of the become-leader transition for "
        "{count:i} partitions",
        "A broker stopped fetching the partitions that it leads now.",
        before="B23",
        after="L01 L03",
    ),
    Template(
        "B12",
        "2.6–3.9",
        "I",
        "RM",
        "Stopped fetchers as part of become-follower request from controller {controller_id:i} epoch "
        "{controller_epoch:i} with correlation id {correlation_id:i} for {count:i} partitions",
        "A broker stopped fetching partitions to fetch them from another leader.",
        before="B23",
        after="L02 L04",
    ),
    Template(
        "B13",
        "0.8.1–2.5",
        "T",
        "RM",
        "truncated logs and checkpointed recovery boundaries for partition {tp:tp} as part of "
        "become-follower request with correlation id {correlation_id:i} from controller {controller_id:i} "
        "epoch {controller_epoch:i}« with leader {leader:i}»",
        "Before it follows, a broker cut its log to its high watermark (until 0.10.2); from 0.11 the "
        "fetcher does that later.",
        before="B10",
        after="B14",
    ),
    Template(
        "B14",
        "0.8.2–2.5",
        "T",
        "RM",
        "started fetcher to new leader as part of become-follower request from controller "
        "{controller_id:i} epoch {controller_epoch:i} with correlation id {correlation_id:i} for partition "
        "{tp:tp}« with leader «BrokerEndPoint(id=»{leader:i}«, host={endpoint:s})»»",
        "A follower began to fetch from the new leader.",
        before="B13",
        after="B09",
    ),
    Template(
        "B15",
        "0.8.2–3.9",
        "T",
        "RM",
        "skipped the adding-fetcher step of the become-follower state change with correlation id "
        "{correlation_id:i} from controller {controller_id:i} epoch {controller_epoch:i} for partition "
        "{tp:tp}« with leader {leader:i}» since it is shutting down",
        "A broker that shuts down did not begin to fetch.",
        before="B08",
    ),
    Template(
        "B16",
        "0.9–3.2",
        "I",
        "RM",
        "skipped the become-leader state change after marking its partition as leader with correlation id "
        "{correlation_id:i} from controller {controller_id:i} epoch {controller_epoch:i} for partition "
        "{tp:tp}« (last update controller epoch {last_update_controller_epoch:i})» since it is already the "
        "leader for the partition.",
        "A broker was made leader of what it leads already.",
        before="B08",
        after="B09",
    ),
    Template(
        "B17",
        "0.8.2–3.2",
        "I",
        "RM",
        "skipped the become-follower state change after marking its partition as follower with correlation "
        "id {correlation_id:i} from controller {controller_id:i} epoch {controller_epoch:i} for partition "
        "{tp:tp}« (last update controller epoch {last_update_controller_epoch:i})» since the new leader "
        "{leader:i} is the same as the old leader",
        "A follower was pointed at the leader that it has already.",
        before="B08",
        after="B09",
    ),
    Template(
        "B18",
        "0.8.2–3.9",
        "E",
        "RM",
        "received LeaderAndIsrRequest with correlation id {correlation_id:i} from controller "
        "{controller_id:i} epoch {controller_epoch:i} for partition {tp:tp}« (last update controller epoch "
        "{last_update_controller_epoch:i})» but cannot become follower since the new leader {leader:i} is "
        "unavailable.",
        "A broker cannot follow: it does not know the new leader as alive.",
        before="B08",
        sign="a partition without a leader (-1), or metadata that lags behind",
    ),
    Template(
        "B19",
        "1.0–3.9",
        "E",
        "RM",
        "Skipped the become-{role:w} state change with correlation id {correlation_id:i} from controller "
        "{controller_id:i} epoch {controller_epoch:i} for partition {tp:tp} (last update controller epoch "
        "{last_update_controller_epoch:i})« with leader {leader:i}» since the replica for the partition is "
        "offline due to {what:w} error {error:s}",
        "A broker can neither lead nor follow a partition whose log directory failed.",
        before="B08",
        sign="a failed disk",
    ),
    Template(
        "B20",
        "1.0–3.9",
        "E+S",
        "RM",
        "Error while processing LeaderAndIsr request correlationId {correlation_id:i} received from "
        "controller {controller_id:i} epoch {controller_epoch:i} for partition {tp:tp}",
        "A broker failed to become leader; the stack trace says why.",
        before="B08",
    ),
    Template(
        "B21",
        "1.0–3.9",
        "E+S",
        "RM",
        "Error while processing LeaderAndIsr request with correlationId {correlation_id:i} received from "
        "controller {controller_id:i} epoch {controller_epoch:i}« when trying to update topic IDs in the "
        "fetchers»",
        "A broker failed to become follower; the stack trace says why.",
        before="B08",
    ),
    Template(
        "B22",
        "0.8.1–0.11",
        "E+S",
        "RM",
        "Error on broker {broker_id:i} while processing LeaderAndIsr request «with »correlationId "
        "{correlation_id:i} received from controller {controller_id:i} epoch {controller_epoch:i}« for "
        "partition {tp:tp}»",
        "A broker failed to act on a LeaderAndIsr request; the stack trace says why.",
        before="B01",
    ),
    Template(
        "B23",
        "2.6–3.9",
        "I",
        "RM",
        "Handling LeaderAndIsr request correlationId {correlation_id:i} from controller {controller_id:i} "
        "for {count:i} partitions",
        "A broker begins to act on a LeaderAndIsr request.",
        before="C03",
        after="B24",
    ),
    Template(
        "B24",
        "2.7–3.9",
        "I",
        "RM",
        "Finished LeaderAndIsr request in {millis:i}ms correlationId {correlation_id:i} from controller "
        "{controller_id:i} for {count:i} partitions",
        "A broker has acted on a LeaderAndIsr request; the time it took is in the line.",
        before="B23",
    ),
    Template(
        "B25",
        "0.8.1–2.5",
        "T",
        "RM",
        "handling stop replica (delete={delete:b}) for partition {tp:tp}",
        "A broker begins to stop a replica, and deletes it where it says so.",
        before="C19",
        after="B26",
    ),
    Template(
        "B26",
        "0.8.1–2.5",
        "T",
        "RM",
        "finished handling stop replica (delete={delete:b}) for partition {tp:tp}",
        "A broker has stopped a replica.",
        before="B25",
    ),
    Template(
        "B27",
        "0.8.1–2.5",
        "T",
        "RM",
        "ignoring stop replica (delete={delete:b}) for partition {tp:tp} as replica doesn't exist on broker",
        "A broker was to stop a replica that it does not have.",
        before="B25",
    ),
    Template(
        "B28",
        "1.0–2.5",
        "E+S",
        "RM",
        "Ignoring stop replica (delete={delete:b}) for partition {tp:tp} due to storage exception",
        "A broker could not stop a replica: its log directory failed.",
        before="B25",
        sign="a failed disk",
    ),
    Template(
        "B29",
        "0.8.1–2.5",
        "W",
        "RM",
        "received stop replica request from an old controller epoch {controller_epoch:i}. Latest known "
        "controller epoch is «%d »{latest_controller_epoch:i}",
        "A broker turned away a request of a controller that had been replaced.",
        sign="a zombie controller",
    ),
    Template(
        "B30",
        "2.6–3.9",
        "I",
        "RM",
        "Handling StopReplica request correlationId {correlation_id:i} from controller {controller_id:i} "
        "for {count:i} partitions",
        "A broker begins to act on a StopReplica request.",
        before="C09",
    ),
    Template(
        "B31",
        "2.6–3.9",
        "T",
        "RM",
        "Received StopReplica request {state:s} correlation id {correlation_id:i} from controller "
        "{controller_id:i} epoch {controller_epoch:i} for partition {tp:tp}",
        "A broker was told to stop a replica.",
        before="C08",
    ),
    Template(
        "B32",
        "2.6–3.9",
        "W",
        "RM",
        "Ignoring StopReplica request from controller {controller_id:i} with correlation id "
        "{correlation_id:i} since its controller epoch {controller_epoch:i} is old. Latest known "
        "controller epoch is {latest_controller_epoch:i}",
        "A broker turned away a request of a controller that had been replaced.",
        sign="a zombie controller",
    ),
    Template(
        "B33",
        "2.6–3.9",
        "W; I `matches`; E delete failures",
        "RM",
        "Ignoring StopReplica request (delete={delete:b}) from controller {controller_id:i} with "
        "correlation id {correlation_id:i} epoch {controller_epoch:i} for partition {tp:tp} {reason:s}",
        "A broker did not stop a replica, for the reason given.",
        before="B31",
    ),
    Template(
        "B34",
        "0.8.1–3.9",
        "W",
        "RM",
        "received update metadata request with correlation id {correlation_id:i} from an old controller "
        "{controller_id:i} with epoch {controller_epoch:i}. Latest known controller epoch is "
        "{latest_controller_epoch:i}",
        "A broker turned away metadata of a controller that had been replaced.",
        sign="a zombie controller: it was paused or cut off and does not know of its successor",
    ),
    Template(
        "B35",
        "0.8.2–3.9",
        "T",
        "MC",
        "deleted partition {tp:tp} from metadata cache in response to UpdateMetadata request sent by "
        "controller {controller_id:i} epoch {controller_epoch:i} with correlation id {correlation_id:i}",
        "A broker forgot a partition that is being deleted.",
        before="C06",
    ),
    Template(
        "B36",
        "0.8.1–3.9",
        "T",
        "MC",
        "cached leader info {state:s} for partition {tp:tp} in response to UpdateMetadata request sent by "
        "controller {controller_id:i} epoch {controller_epoch:i} with correlation id {correlation_id:i}",
        "A broker noted who leads a partition, for its answers to clients.",
        before="C06 C04",
    ),
    Template(
        "B37",
        "2.6–3.9",
        "I",
        "MC",
        "Add {count:i} partitions and deleted {second_count:i} partitions from metadata cache in response "
        "to UpdateMetadata request sent by controller {controller_id:i} epoch {controller_epoch:i} with "
        "correlation id {correlation_id:i}",
        "A broker noted the leaders of some partitions, for its answers to clients.",
        before="C07",
    ),
    Template(
        "B38",
        "3.0–3.9",
        "E",
        "RM",
        "Topic ID in memory: {topic_id_in_memory:w} does not match the topic ID for partition {tp:tp} "
        "received: {request:s}.",
        "The topic's id on disk is not the one that the controller names.",
        sign="a topic deleted and made again while the broker was away",
    ),
    Template(
        "B39",
        "3.0–3.9",
        "I",
        "RM",
        "Updating log for {tp:tp} to assign topic ID {topic_id:w} from LeaderAndIsr request from "
        "controller {controller_id:i} with correlation id {correlation_id:i} epoch {controller_epoch:i}",
        "A broker wrote the topic's id beside its log.",
        before="B02",
    ),
    Template(
        "B40",
        "3.1–3.9",
        "I",
        "RM",
        "Updating PartitionFetchState for {tp:tp} to remove log topic ID {topic_id:w} since LeaderAndIsr "
        "request from controller {controller_id:i} with correlation id {correlation_id:i} epoch "
        "{controller_epoch:i} did not contain a topic ID",
        "A broker fetches a partition by name again, since the request named no id.",
        before="B02",
    ),
    Template(
        "B41",
        "3.1–3.9",
        "T",
        "RM",
        "Skipped the update topic ID step of the become-follower state change with correlation id "
        "{correlation_id:i} from controller {controller_id:i} epoch {controller_epoch:i} for partition "
        "{tp:tp} since it is shutting down",
        "A broker that shuts down did not note a topic's id.",
        before="B02",
    ),
    Template(
        "B42",
        "3.6–3.9",
        "I",
        "RM",
        "While handling full LeaderAndIsr request from KRaft controller {controller_id:i} with correlation "
        "id {correlation_id:i}, found {count:i} stray partition(s).",
        "During the move to KRaft a broker found partitions that are no longer its own.",
    ),
    Template(
        "B43",
        "3.6–3.9",
        "I",
        "MC",
        "Removing topic {topic:w} with ID {topic_id:tid} from the metadata cache since the full UMR did "
        "not include it.",
        "During the move to KRaft a broker forgot a topic.",
    ),
    Template(
        "B44",
        "3.6–3.9",
        "I",
        "MC",
        "Removing {count:i} partition(s) from topic {topic:w} with ID {topic_id:tid} from the metadata "
        "cache since the full UMR did not include them.",
        "During the move to KRaft a broker forgot partitions of a topic.",
    ),
)
