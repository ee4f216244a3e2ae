"""state-change.log: what brokers print when they are told who leads, ZooKeeper and KRaft.

Source: `core/src/main/scala/kafka/server/ReplicaManager.scala`, the metadata caches beside it and
`core/src/main/scala/kafka/cluster/Partition.scala` @ 0.8.1.1 to 3.9.0-rc3.
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
        "",
    ),
    Template(
        "B02",
        "2.4–3.9",
        "T",
        "RM",
        "Received LeaderAndIsr request {state:s} correlation id {correlation_id:i} from controller "
        "{controller_id:i} epoch {controller_epoch:i}",
        "",
    ),
    Template(
        "B03",
        "0.8.1",
        "W",
        "RM",
        "received LeaderAndIsr request correlation id {correlation_id:i} with an old controller epoch "
        "{controller_epoch:i}. Latest known controller epoch is {latest_controller_epoch:i}",
        "",
    ),
    Template(
        "B04",
        "0.8.2–3.9",
        "W",
        "RM",
        "ignoring LeaderAndIsr request from controller {controller_id:i} with correlation id "
        "{correlation_id:i} since its controller epoch {controller_epoch:i} is old. Latest known "
        "controller epoch is {latest_controller_epoch:i}",
        "",
    ),
    Template(
        "B05",
        "0.8.2–3.9",
        "W",
        "RM",
        "ignoring LeaderAndIsr request from controller {controller_id:i} with correlation id "
        "{correlation_id:i} epoch {controller_epoch:i} for partition {tp:tp} as itself is not in assigned "
        "replica list {replicas:L}",
        "",
    ),
    Template(
        "B06",
        "0.8.2–3.9",
        "W; D 2.3–2.5 / I 2.6+ for `matches`",
        "RM",
        "ignoring LeaderAndIsr request from controller {controller_id:i} with correlation id "
        "{correlation_id:i} epoch {controller_epoch:i} for partition {tp:tp} since its associated leader "
        "epoch {leader_epoch:i} {reason:s}",
        "",
    ),
    Template(
        "B07",
        "1.0–3.9",
        "W",
        "RM",
        "Ignoring LeaderAndIsr request from controller {controller_id:i} with correlation id "
        "{correlation_id:i} epoch {controller_epoch:i} for partition {tp:tp} as the local replica for the "
        "partition is in an offline log directory",
        "",
    ),
    Template(
        "B08",
        "0.8.1–3.9",
        "T",
        "RM",
        "handling LeaderAndIsr request correlationId {correlation_id:i} from controller {controller_id:i} "
        "epoch {controller_epoch:i} starting the become-{role:w} transition for partition {tp:tp}« with "
        "leader {leader:i}»",
        "",
    ),
    Template(
        "B09",
        "0.8.1–3.9",
        "T",
        "RM",
        "completed LeaderAndIsr request correlationId {correlation_id:i} from controller {controller_id:i} "
        "epoch {controller_epoch:i} for the become-{role:w} transition for partition {tp:tp}« with leader "
        "{leader:i}»",
        "",
    ),
    Template(
        "B10",
        "0.8.1–2.5",
        "T",
        "RM",
        "stopped fetchers as part of become-{role:w} request from controller {controller_id:i} epoch "
        "{controller_epoch:i} with correlation id {correlation_id:i} for partition {tp:tp}« (last update "
        "controller epoch {last_update_controller_epoch:i})»« with leader {leader:i}»",
        "",
    ),
    Template(
        "B11",
        "2.6–3.9",
        "I",
        "RM",
        "Stopped fetchers as part of LeaderAndIsr request correlationId {correlation_id:i} from controller "
        "{controller_id:i} epoch {controller_epoch:i} as part of the become-leader transition for "
        "{count:i} partitions",
        "",
    ),
    Template(
        "B12",
        "2.6–3.9",
        "I",
        "RM",
        "Stopped fetchers as part of become-follower request from controller {controller_id:i} epoch "
        "{controller_epoch:i} with correlation id {correlation_id:i} for {count:i} partitions",
        "",
    ),
    Template(
        "B13",
        "0.8.1–2.5",
        "T",
        "RM",
        "truncated logs and checkpointed recovery boundaries for partition {tp:tp} as part of "
        "become-follower request with correlation id {correlation_id:i} from controller {controller_id:i} "
        "epoch {controller_epoch:i}« with leader {leader:i}»",
        "",
    ),
    Template(
        "B14",
        "0.8.2–2.5",
        "T",
        "RM",
        "started fetcher to new leader as part of become-follower request from controller "
        "{controller_id:i} epoch {controller_epoch:i} with correlation id {correlation_id:i} for partition "
        "{tp:tp}« with leader «BrokerEndPoint(id=»{leader:i}«, host={endpoint:s})»»",
        "",
    ),
    Template(
        "B15",
        "0.8.2–3.9",
        "T",
        "RM",
        "skipped the adding-fetcher step of the become-follower state change with correlation id "
        "{correlation_id:i} from controller {controller_id:i} epoch {controller_epoch:i} for partition "
        "{tp:tp}« with leader {leader:i}» since it is shutting down",
        "",
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
        "",
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
        "",
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
        "",
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
        "",
    ),
    Template(
        "B20",
        "1.0–3.9",
        "E+S",
        "RM",
        "Error while processing LeaderAndIsr request correlationId {correlation_id:i} received from "
        "controller {controller_id:i} epoch {controller_epoch:i} for partition {tp:tp}",
        "",
    ),
    Template(
        "B21",
        "1.0–3.9",
        "E+S",
        "RM",
        "Error while processing LeaderAndIsr request with correlationId {correlation_id:i} received from "
        "controller {controller_id:i} epoch {controller_epoch:i}« when trying to update topic IDs in the "
        "fetchers»",
        "",
    ),
    Template(
        "B22",
        "0.8.1–0.11",
        "E+S",
        "RM",
        "Error on broker {broker_id:i} while processing LeaderAndIsr request «with »correlationId "
        "{correlation_id:i} received from controller {controller_id:i} epoch {controller_epoch:i}« for "
        "partition {tp:tp}»",
        "",
    ),
    Template(
        "B23",
        "2.6–3.9",
        "I",
        "RM",
        "Handling LeaderAndIsr request correlationId {correlation_id:i} from controller {controller_id:i} "
        "for {count:i} partitions",
        "",
    ),
    Template(
        "B24",
        "2.7–3.9",
        "I",
        "RM",
        "Finished LeaderAndIsr request in {millis:i}ms correlationId {correlation_id:i} from controller "
        "{controller_id:i} for {count:i} partitions",
        "",
    ),
    Template(
        "B25",
        "0.8.1–2.5",
        "T",
        "RM",
        "handling stop replica (delete={delete:b}) for partition {tp:tp}",
        "",
    ),
    Template(
        "B26",
        "0.8.1–2.5",
        "T",
        "RM",
        "finished handling stop replica (delete={delete:b}) for partition {tp:tp}",
        "",
    ),
    Template(
        "B27",
        "0.8.1–2.5",
        "T",
        "RM",
        "ignoring stop replica (delete={delete:b}) for partition {tp:tp} as replica doesn't exist on broker",
        "",
    ),
    Template(
        "B28",
        "1.0–2.5",
        "E+S",
        "RM",
        "Ignoring stop replica (delete={delete:b}) for partition {tp:tp} due to storage exception",
        "",
    ),
    Template(
        "B29",
        "0.8.1–2.5",
        "W",
        "RM",
        "received stop replica request from an old controller epoch {controller_epoch:i}. Latest known "
        "controller epoch is «%d »{latest_controller_epoch:i}",
        "",
    ),
    Template(
        "B30",
        "2.6–3.9",
        "I",
        "RM",
        "Handling StopReplica request correlationId {correlation_id:i} from controller {controller_id:i} "
        "for {count:i} partitions",
        "",
    ),
    Template(
        "B31",
        "2.6–3.9",
        "T",
        "RM",
        "Received StopReplica request {state:s} correlation id {correlation_id:i} from controller "
        "{controller_id:i} epoch {controller_epoch:i} for partition {tp:tp}",
        "",
    ),
    Template(
        "B32",
        "2.6–3.9",
        "W",
        "RM",
        "Ignoring StopReplica request from controller {controller_id:i} with correlation id "
        "{correlation_id:i} since its controller epoch {controller_epoch:i} is old. Latest known "
        "controller epoch is {latest_controller_epoch:i}",
        "",
    ),
    Template(
        "B33",
        "2.6–3.9",
        "W; I `matches`; E delete failures",
        "RM",
        "Ignoring StopReplica request (delete={delete:b}) from controller {controller_id:i} with "
        "correlation id {correlation_id:i} epoch {controller_epoch:i} for partition {tp:tp} {reason:s}",
        "",
    ),
    Template(
        "B34",
        "0.8.1–3.9",
        "W",
        "RM",
        "received update metadata request with correlation id {correlation_id:i} from an old controller "
        "{controller_id:i} with epoch {controller_epoch:i}. Latest known controller epoch is "
        "{latest_controller_epoch:i}",
        "",
    ),
    Template(
        "B35",
        "0.8.2–3.9",
        "T",
        "MC",
        "deleted partition {tp:tp} from metadata cache in response to UpdateMetadata request sent by "
        "controller {controller_id:i} epoch {controller_epoch:i} with correlation id {correlation_id:i}",
        "",
    ),
    Template(
        "B36",
        "0.8.1–3.9",
        "T",
        "MC",
        "cached leader info {state:s} for partition {tp:tp} in response to UpdateMetadata request sent by "
        "controller {controller_id:i} epoch {controller_epoch:i} with correlation id {correlation_id:i}",
        "",
    ),
    Template(
        "B37",
        "2.6–3.9",
        "I",
        "MC",
        "Add {count:i} partitions and deleted {second_count:i} partitions from metadata cache in response "
        "to UpdateMetadata request sent by controller {controller_id:i} epoch {controller_epoch:i} with "
        "correlation id {correlation_id:i}",
        "",
    ),
    Template(
        "B38",
        "3.0–3.9",
        "E",
        "RM",
        "Topic ID in memory: {topic_id_in_memory:w} does not match the topic ID for partition {tp:tp} "
        "received: {request:s}.",
        "",
    ),
    Template(
        "B39",
        "3.0–3.9",
        "I",
        "RM",
        "Updating log for {tp:tp} to assign topic ID {topic_id:w} from LeaderAndIsr request from "
        "controller {controller_id:i} with correlation id {correlation_id:i} epoch {controller_epoch:i}",
        "",
    ),
    Template(
        "B40",
        "3.1–3.9",
        "I",
        "RM",
        "Updating PartitionFetchState for {tp:tp} to remove log topic ID {topic_id:w} since LeaderAndIsr "
        "request from controller {controller_id:i} with correlation id {correlation_id:i} epoch "
        "{controller_epoch:i} did not contain a topic ID",
        "",
    ),
    Template(
        "B41",
        "3.1–3.9",
        "T",
        "RM",
        "Skipped the update topic ID step of the become-follower state change with correlation id "
        "{correlation_id:i} from controller {controller_id:i} epoch {controller_epoch:i} for partition "
        "{tp:tp} since it is shutting down",
        "",
    ),
    Template(
        "B42",
        "3.6–3.9",
        "I",
        "RM",
        "While handling full LeaderAndIsr request from KRaft controller {controller_id:i} with correlation "
        "id {correlation_id:i}, found {count:i} stray partition(s).",
        "",
    ),
    Template(
        "B43",
        "3.6–3.9",
        "I",
        "MC",
        "Removing topic {topic:w} with ID {topic_id:tid} from the metadata cache since the full UMR did "
        "not include it.",
        "",
    ),
    Template(
        "B44",
        "3.6–3.9",
        "I",
        "MC",
        "Removing {count:i} partition(s) from topic {topic:w} with ID {topic_id:tid} from the metadata "
        "cache since the full UMR did not include them.",
        "",
    ),
    Template(
        "L01",
        "2.6–3.2",
        "I",
        "P",
        "Leader {tp:tp} starts at leader epoch {leader_epoch:i} from offset {offset:i} with high watermark "
        "{high_watermark:i} ISR [{isr:L}] addingReplicas [{adding_replicas:L}] removingReplicas "
        "[{removing_replicas:L}]. Previous leader epoch was {previous_leader_epoch:i}.",
        "",
    ),
    Template(
        "L02",
        "2.6–3.2",
        "I",
        "P",
        "Follower {tp:tp} starts at leader epoch {leader_epoch:i} from offset {offset:i} with high "
        "watermark {high_watermark:i}. Previous leader epoch was {previous_leader_epoch:i}.",
        "",
    ),
    Template(
        "L03",
        "3.3–3.9",
        "I",
        "P",
        "Leader {tp:tp} with topic id {topic_id:tid} starts at leader epoch {leader_epoch:i} from offset "
        "{offset:i} with partition epoch {partition_epoch:i}, high watermark {high_watermark:i}, ISR "
        "[{isr:L}], adding replicas [{adding_replicas:L}] and removing replicas [{removing_replicas:L}]« "
        "{under_min_isr:um}». Previous leader «{previous_leader:opt} and previous leader »epoch was "
        "{previous_leader_epoch:i}.",
        "",
    ),
    Template(
        "L04",
        "3.3–3.9",
        "I",
        "P",
        "Follower {tp:tp} starts at leader epoch {leader_epoch:i} from offset {offset:i} with partition "
        "epoch {partition_epoch:i} and high watermark {high_watermark:i}. Current leader is {leader:i}. "
        "Previous leader «{previous_leader:opt} and previous leader »epoch was {previous_leader_epoch:i}.",
        "",
    ),
    Template(
        "L05",
        "3.3–3.9",
        "I",
        "P",
        "Skipped the become-leader state change for {tp:tp} with topic id {topic_id:tid} and partition "
        "state {state:s} since the leader is already at a newer partition epoch {partition_epoch:i}.",
        "",
    ),
    Template(
        "L06",
        "3.3–3.9",
        "I",
        "P",
        "Skipped the become-leader state change for {tp:tp} with topic id {topic_id:tid} and partition "
        "state {state:s} since it is already the leader with leader epoch {leader_epoch:i}. Current high "
        "watermark {high_watermark:i}, ISR [{isr:L}], adding replicas [{adding_replicas:L}] and removing "
        "replicas [{removing_replicas:L}].",
        "",
    ),
    Template(
        "L07",
        "3.3–3.9",
        "I",
        "P",
        "Skipped the become-follower state change for {tp:tp} with topic id {topic_id:tid} and partition "
        "state {state:s} since the follower is already at a newer partition epoch {partition_epoch:i}.",
        "",
    ),
    Template(
        "L08",
        "3.3–3.9",
        "I",
        "P",
        "Skipped the become-follower state change for {tp:tp} with topic id {topic_id:tid} and partition "
        "state {state:s} since it is already a follower with leader epoch {leader_epoch:i}.",
        "",
    ),
    Template(
        "L09",
        "3.3–3.9",
        "I",
        "P",
        "The topic partition {tp:tp} was marked as RECOVERING. «Leader log recovery is not implemented. "
        "»Marking the topic partition as RECOVERED.",
        "",
    ),
    Template(
        "L10",
        "2.7–3.9",
        "E+S",
        "P",
        "A ZooKeeper client exception has occurred and makeLeader will be skipping the state change for "
        "the partition {tp:tp} with leader epoch: {leader_epoch:i}« »«.»",
        "",
    ),
    Template(
        "L11",
        "2.7–3.9",
        "E+S",
        "P",
        "A ZooKeeper client exception has occurred. makeFollower will be skipping the state change for the "
        "partition {tp:tp} with leader epoch: {leader_epoch:i}.",
        "",
    ),
    Template(
        "K01",
        "3.0–3.9",
        "I",
        "RM",
        "Transitioning {count:i} partition(s) to local {role:w}.",
        "",
    ),
    Template(
        "K02",
        "3.0–3.9",
        "I",
        "RM",
        "Creating new partition {tp:tp} with topic id {topic_id:tid}.«A topic with the same name but "
        "different id exists but it resides in an offline log directory.»",
        "",
    ),
    Template(
        "K03",
        "3.0–3.9",
        "I",
        "RM",
        "Deleting {count:i} partition(s).",
        "",
    ),
    Template(
        "K04",
        "3.0–3.9",
        "I",
        "RM",
        "Stopped fetchers as part of «become-follower»«controlled shutdown» for {count:i} partitions",
        "",
    ),
    Template(
        "K05",
        "3.0–3.9",
        "I",
        "RM",
        "Started fetchers as part of become-follower for {count:i} partitions",
        "",
    ),
    Template(
        "K06",
        "3.0–3.9",
        "E",
        "RM",
        "Expected partition {tp:tp} with topic id {topic_id:tid} to exist, but it was missing. Creating...",
        "",
    ),
    Template(
        "K07",
        "3.0–3.9",
        "W",
        "RM",
        "Unable to bring up new local leader {tp:tp} with topic id {topic_id:tid} because it resides in an "
        "offline log directory.",
        "",
    ),
    Template(
        "K08",
        "3.0–3.9",
        "I",
        "RM",
        "Skipped the become-leader state change for {tp:tp} with topic id {topic_id:tid} {reason:s}",
        "",
    ),
    Template(
        "K09",
        "3.0–3.2",
        "I",
        "RM",
        "Skipped the become-follower state change after marking its partition as follower for partition "
        "{tp:tp} with id {topic_id:tid} and partition state {state:s}.",
        "",
    ),
    Template(
        "K10",
        "3.0–3.9",
        "E+S / T",
        "RM",
        "Unable to start fetching {tp:tp} with topic ID {topic_id:tid} {reason:s}",
        "",
    ),
    Template(
        "K11",
        "3.0–3.9",
        "E",
        "RM",
        "Unable to delete replica {tp:tp} because {reason:s}",
        "",
    ),
    Template(
        "K12",
        "3.0–3.6",
        "E",
        "RM",
        "Unable to delete stray replica {tp:tp} because {reason:s}",
        "",
    ),
    Template(
        "P01",
        "2.8",
        "I",
        "RM",
        "Metadata batch {offset:i}: {count:i} local partition(s) changed, {second_count:i} local "
        "partition(s) removed.",
        "",
    ),
    Template(
        "P02",
        "2.8",
        "T",
        "RM",
        "Metadata batch {offset:i}: locally {what:w}: {state:s}",
        "",
    ),
    Template(
        "P03",
        "2.8",
        "I",
        "RM",
        "Metadata batch {offset:i}: applied {count:i} partitions: {leaders:i} leader(s) and {followers:i} "
        "follower(s)",
        "",
    ),
    Template(
        "P04",
        "2.8",
        "I",
        "RM",
        "Metadata batch {offset:i}: handled replica changes in {millis:i} ms",
        "",
    ),
    Template(
        "P05",
        "2.8",
        "E",
        "RM",
        "Metadata batch {offset:i}: unable to delete {tp:tp} {reason:s}",
        "",
    ),
    Template(
        "P06",
        "2.8",
        "T",
        "RM",
        "Metadata batch {offset:i}: starting the become-deferred transition for partition {tp:tp} "
        "isNew={new:b}",
        "",
    ),
    Template(
        "P07",
        "2.8",
        "I",
        "RM",
        "Metadata batch {offset:i}: as part of become-deferred request, stopped any fetchers for {count:i} "
        "partitions",
        "",
    ),
    Template(
        "P08",
        "2.8",
        "T",
        "RM",
        "Completed batch {offset:i} become-deferred transition for partition {tp:tp}",
        "",
    ),
    Template(
        "P09",
        "2.8",
        "prefix = `Metadata batch N T-P`",
        "RM",
        "{prefix:s}: {what:s} the become-leader state change«{reason:s}».",
        "",
    ),
    Template(
        "P10",
        "2.8",
        "T",
        "RM",
        "{prefix:s}: completed the become-follower state change with new leader {leader:i}.",
        "",
    ),
    Template(
        "P11",
        "2.8",
        "I",
        "RM",
        "{prefix:s}: skipped the become-follower state change since the new leader {leader:i} is the same "
        "as the old leader.",
        "",
    ),
    Template(
        "P12",
        "2.8",
        "E",
        "RM",
        "{prefix:s}: cannot become follower since the new leader {leader:i} is unavailable.",
        "",
    ),
    Template(
        "P13",
        "2.8",
        "T",
        "RM",
        "{prefix:s}: starting the become-follower transition with leader {leader:i}",
        "",
    ),
    Template(
        "P14",
        "2.8",
        "T",
        "RM",
        "{prefix:s}: completed become-follower transition for partition {tp:tp} with new leader {leader:i}",
        "",
    ),
    Template(
        "P15",
        "2.8",
        "I",
        "RM",
        "{prefix:s}: stopped {count:i} fetcher(s)",
        "",
    ),
    Template(
        "P16",
        "2.8",
        "I",
        "RM",
        "Applied {count:i} deferred partitions« prior to the error»: {leaders:i} leader(s) and "
        "{followers:i} follower(s)«in {millis:i} ms»",
        "",
    ),
    Template(
        "P17",
        "2.8",
        "I",
        "RM",
        "Deferring metadata changes for {count:i} partition(s)",
        "",
    ),
    Template(
        "P18",
        "2.8",
        "W",
        "RM",
        "Ignoring handlePartitionChanges at {offset:i} for partition {tp:tp} as the local replica for the "
        "partition is in an offline log directory",
        "",
    ),
    Template(
        "P19",
        "2.8",
        "T",
        "RM",
        "Cached leader info {state:s} in response to UpdateMetadata request sent by controller "
        "{junk:s}.controllerId epoch {junk2:s}.controllerEpoch with correlation id {correlation_id:i}",
        "",
    ),
)
