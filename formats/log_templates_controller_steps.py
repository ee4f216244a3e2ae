"""controller.log of ZooKeeper clusters: the steps of `KafkaController` itself.

Source: `core/src/main/scala/kafka/controller/KafkaController.scala` and, until 1.0, the leader selectors @
0.8.2.2 to 3.9.0-rc3.
"""

from formats.log_templates import Template

# What the sentences of a group say, then id, versions, level, class and pattern of each.
# fmt: off
_STEPS: tuple[tuple[str, tuple[tuple[str, str, str, str, str], ...]], ...] = (
    (
        "Brokers settle who is controller.",
        (
            ("F19", "1.0–3.9", "W", "KC",
             "A controller has been elected but just resigned, this will result in another round of "
             "election"),
            ("F23", "1.0–3.9", "D", "KC",
             "Broker {active_controller_id:i} has been elected as the controller, so stopping the election "
             "process."),
            ("F24", "1.0–3.9", "D", "KC",
             "Broker {active_controller_id:i} was elected as controller instead of broker {broker_id:i}"),
            ("F69", "0.9–3.9", "E", "KC", "Forcing the controller to resign"),
            ("F85", "1.1–2.0", "I", "KC", "Incrementing controller epoch in ZooKeeper"),
        ),
    ),
    (
        "A step of a controller as it takes office or leaves it.",
        (
            ("F20", "0.8.2–3.9", "T", "KC", "All leaders = {partition_leadership_info:s}"),
            ("F25", "0.8.2–0.10.2", "I", "KC",
             "Broker {broker_id:i} starting become controller state transition"),
            ("F30", "0.8.2–0.10.2", "I", "KC", "Controller has been shut down, aborting startup/failover"),
            ("F32", "0.8.2–0.10.2", "I", "KC", "Controller starting up"),
            ("F33", "0.8.2–0.10.2", "I", "KC", "Controller startup complete"),
            ("F35", "0.8.2–3.9", "I", "KC", "Current list of topics in the cluster: {all_topics:s}"),
            ("F36", "0.8.2–3.9", "I", "KC", "Currently active brokers in the cluster: {live_broker_ids:s}"),
            ("F87", "1.1–3.9", "I", "KC", "Initializing controller context"),
            ("F112", "1.1–2.0", "I", "KC", "Reading controller epoch from ZooKeeper"),
            ("F131", "1.1–3.9", "I", "KC", "Sending update metadata request"),
            ("F142", "1.0", "I", "KC", "Starting become controller state transition"),
            ("F143", "1.0–3.9", "I", "KC", "Starting the controller scheduler"),
            ("F166", "1.1–3.9", "I", "KC", "starting the token expiry check scheduler"),
        ),
    ),
    (
        "Brokers that are shutting down in order.",
        (
            ("F21", "0.8.2–3.9", "D", "KC", "All shutting down brokers: {shutting_down_broker_ids:s}"),
            ("F37", "0.8.2–3.9", "I", "KC",
             "Currently shutting brokers in the cluster: {shutting_down_broker_ids:s}"),
            ("F120", "0.8.2–3.9", "I", "KC",
             "Removed {dead_brokers_that_were_shutting_down:s} from list of shutting down brokers."),
        ),
    ),
    (
        "What the controller knows about live brokers changed.",
        (
            ("F22", "1.1–3.9", "I", "KC", "Broker info update callback for {updated_broker_id:s}"),
            ("F80", "2.7–3.9", "W", "KC",
             "Ignoring registration of bounced brokers due to incompatibilities with finalized features: "
             "{bounced_incompatible_broker_and_epochs:s}"),
            ("F86", "2.2–3.9", "I", "KC", "Initialized broker epochs cache: {live_broker_id_and_epochs:s}"),
            ("F149", "2.2–3.9", "I", "KC", "Updated broker epochs cache: {live_broker_id_and_epochs:s}"),
            ("F150", "2.3–3.9", "I", "KC", "Updated broker metadata: {old_metadata:s} -> {new_metadata:s}"),
            ("F151", "1.1–2.2", "I", "KC", "Updated broker: {new_metadata:s}"),
        ),
    ),
    (
        "The controller handles a change of an ISR that the partition's leader asked for.",
        (
            ("F26", "0.8.2–1.0", "W", "KC",
             "Cannot remove replica {replica_id:i} from ISR of partition {tp:tp} since it is not in the "
             "ISR. Leader = {leader:i} ; ISR = {isr:s}"),
            ("F27", "0.8.2–1.0", "W", "KC",
             "Cannot remove replica {replica_id:i} from ISR of {tp:tp} - leaderAndIsr is empty."),
            ("F65", "2.7–3.9", "E/W", "KC", "Failed to update ISR for partition {tp:tp}"),
            ("F66", "3.0", "D", "KC", "Failed to update ISR for partition {tp:tp}, bad ZK version"),
            ("F70", "0.10.2", "D", "KC", "ISR change notification listener fired"),
            ("F71", "2.7–3.2", "D", "KC",
             "ISR for partition {tp:tp} updated to [{isr:s}] and zkVersion updated to [{zk_version:s}]"),
            ("F72", "3.3–3.9", "D", "KC", "ISR for partition {tp:tp} updated to {updated_isr:s}."),
            ("F75", "3.0–3.1", "I", "KC",
             "Ignoring AlterIsr due to stale broker epoch {broker_epoch:s} and local broker epoch "
             "{broker_epoch_opt:s} for broker {broker_id:i}"),
            ("F76", "2.7–2.8", "I", "KC",
             "Ignoring AlterIsr due to stale broker epoch {broker_epoch:s} for broker {broker_id:i}"),
            ("F77", "3.2–3.9", "I", "KC",
             "Ignoring AlterPartition due to stale broker epoch {broker_epoch:s} and local broker epoch "
             "{broker_epoch_opt:s} for broker {broker_id:i}"),
            ("F78", "3.2–3.9", "I", "KC", "Ignoring AlterPartition due to unknown broker {broker_id:i}"),
            ("F123", "0.8.2–1.0", "D", "KC",
             "Removing replica {replica_id:i} from ISR {isr:s} for partition {tp:tp}."),
            ("F154", "2.7–3.9", "D", "KC", "Updating ISRs for partitions: {adjusted_isrs:s}."),
            ("F169", "0.8.2–1.0", "D", "PLS",
             "No broker in ISR is alive for {tp:tp}. Pick the leader from the alive assigned replicas: "
             "{live_assigned_replicas:s}"),
            ("F171", "0.8.2–1.0", "D", "PLS",
             "Some broker in ISR is alive for {tp:tp}. Select {new_leader:i} from ISR "
             "{live_brokers_in_isr:s} to be the leader."),
        ),
    ),
    (
        "A step of the controller's work.",
        (
            ("F28", "1.0–3.9", "T", "KC", "Checking need to trigger auto leader balancing"),
            ("F64", "0.8.2–1.0", "W", "KC",
             "Failed to parse the controller info as json. Probably this controller is still using the old "
             "format [{controller_info_string:s}] to store the broker id in zookeeper"),
            ("F73", "3.0–3.9", "W", "KC",
             "Ignoring AllocateProducerIds due to stale broker epoch {broker_epoch:s} for broker "
             "{broker_id:i}"),
            ("F74", "3.0–3.9", "W", "KC", "Ignoring AllocateProducerIds due to unknown broker {broker_id:i}"),
            ("F90", "0.9–0.10.2", "E", "KC",
             "Invalid topic and partition JSON: {json_opt:s} in ZK: {change_znode:s}"),
            ("F96", "0.8.2–3.9", "D", "KC", "Live brokers: {live_broker_ids:s}"),
            ("F114", "2.4–3.9", "E", "KC",
             "Received a ShutdownEventThread event. This type of event is supposed to be handle by "
             "ControllerEventThread"),
            ("F156", "1.1–3.9", "D", "KC", "Updating leader epoch for partition {tp:tp}"),
            ("F157", "0.8.2–1.0", "D", "KC", "Updating leader epoch for partition {tp:tp}."),
            ("F158", "2.4–3.9", "D", "KC",
             "Waiting for any successful result for election type ({election_type:s}) by "
             "{election_trigger:s} for partitions: {results:s}"),
            ("F160", "0.10.2", "I", "KC",
             "ZK expired, but the current controller id {broker_id:i} is the same as this broker id, skip "
             "re-elect"),
        ),
    ),
    (
        "This broker found in the middle of a step that another one is controller now.",
        (
            ("F29", "2.1–3.9", "W", "KC",
             "Controller has already moved when trying to trigger controller movement"),
            ("F62", "2.4–3.9", "I", "KC",
             "Failed completing reassignment of partition {tp:tp} because controller has moved to another "
             "broker"),
        ),
    ),
    (
        "The versions of features that the whole cluster uses.",
        (
            ("F34", "2.7–3.9", "I", "KC",
             "Creating FeatureZNode at path: {path:s} with contents: {new_node:s}"),
            ("F67", "2.7–3.9", "W", "KC",
             "FeatureZNode at path: {path:s} with disabled status contains non-empty features: {features:s}"),
            ("F81", "2.7–3.9", "W", "KC",
             "Ignoring registration of new brokers due to incompatibilities with finalized features: "
             "{incompatible_broker_and_epochs:s}"),
            ("F153", "2.7–3.9", "I", "KC",
             "Updating FeatureZNode at path: {path:s} with contents: {updated_node:s}"),
        ),
    ),
    (
        "The controller begins or ends to watch ZooKeeper, or was told of a change there.",
        (
            ("F38", "0.9–1.0", "D", "KC", "De-registering IsrChangeNotificationListener"),
            ("F39", "1.0", "D", "KC", "De-registering logDirEventNotificationListener"),
            ("F89", "1.0", "E", "KC",
             "Invalid topic and partition JSON in ZK. ZK notification node: {change_znode:s}, JSON: "
             "{json:s}"),
            ("F115", "1.1–3.9", "D", "KC", "Register BrokerModifications handler for {broker_ids:s}"),
            ("F116", "0.9–1.0", "D", "KC", "Registering IsrChangeNotificationListener"),
            ("F117", "1.1–3.9", "I", "KC", "Registering handlers"),
            ("F118", "1.0", "D", "KC", "Registering logDirEventNotificationListener"),
            ("F147", "1.1–3.9", "D", "KC", "Unregister BrokerModifications handler for {broker_ids:s}"),
            ("F161", "0.9–0.10.1", "D", "KC", "[IsrChangeNotificationListener] Fired!!!"),
        ),
    ),
    (
        "A step of the deletion of a topic.",
        (
            ("F40", "0.8.2–2.2", "D", "KC", "Delete topic callback invoked for {stop_replica_response:s}"),
            ("F42", "0.8.2–3.9", "D", "KC",
             "Delete topics listener fired for topics {topics_to_be_deleted:s} to be deleted"),
            ("F44", "1.1–3.9", "I", "KC", "Deleting log dir event notifications"),
            ("F68", "1.1–3.9", "I", "KC", "Fetching topic deletions in progress"),
            ("F79", "2.0–3.9", "I", "KC",
             "Ignoring partition change during topic deletion as no new partitions are added"),
            ("F82", "0.8.2–3.9", "W", "KC",
             "Ignoring request to delete non-existing topics {non_existent_topics:s}"),
            ("F88", "1.1–3.9", "I", "KC", "Initializing topic deletion manager"),
            ("F94", "0.8.2–3.9", "I", "KC",
             "List of topics ineligible for deletion: {topics_ineligible_for_deletion:s}"),
            ("F95", "0.8.2–3.9", "I", "KC", "List of topics to be deleted: {topics_queued_for_deletion:s}"),
            ("F124", "0.10.2–3.9", "I", "KC",
             "Removing {topics_to_be_deleted:s} since delete topic is disabled"),
            ("F132", "0.8.2–3.9", "E/W", "KC",
             "Skipping adding partitions {partitions_to_be_added:s} for topic {topic:s} since it is "
             "currently being deleted"),
            ("F141", "0.8.2–3.9", "I", "KC",
             "Some replicas {replicas_for_topics_to_be_deleted:s} for topics scheduled for deletion "
             "{topics_to_be_deleted:s} are on the newly restarted brokers {new_brokers:s}. Signaling "
             "restart of topic deletion for these topics"),
            ("F144", "0.8.2–3.9", "I", "KC", "Starting topic deletion for topics {topics_to_be_deleted:s}"),
        ),
    ),
    (
        "A step of the controller failed; the stack trace that follows says why.",
        (
            ("F41", "2.3–3.9", "D", "KC",
             "Delete topic callback invoked on StopReplica response received from broker {replica_id:i}: "
             "request error = {request_error:s}, partition errors = {partition_errors:s}"),
            ("F46", "2.2–2.3", "E", "KC",
             "Error completing preferred replica leader election for partition {tp:tp}"),
            ("F47", "2.2–2.3", "E", "KC",
             "Error completing preferred replica leader election for partition {tp:tp} because controller "
             "has moved to another broker."),
            ("F48", "0.8.2–2.1", "E", "KC",
             "Error completing preferred replica leader election for partitions {partitions:s}"),
            ("F49", "2.1", "E", "KC",
             "Error completing preferred replica leader election for partitions {partitions:s} because "
             "controller has moved to another broker."),
            ("F50", "0.8.2–3.9", "E", "KC", "Error completing reassignment of partition {tp:tp}"),
            ("F51", "2.1–2.3", "E", "KC",
             "Error completing reassignment of partition {tp:tp} because controller has moved to another "
             "broker"),
            ("F52", "2.4–3.9", "E", "KC",
             "Error completing replica leader election ({election_type:s}) for partition {tp:tp}"),
            ("F53", "2.4–3.9", "I", "KC",
             "Error completing replica leader election ({election_type:s}) for partition {tp:tp} because "
             "controller has moved to another broker."),
            ("F54", "0.8.2–2.3", "E", "KC",
             "Error handling reassignment of partition {tp:tp} to replicas {reassigned_replicas:s} as it "
             "was never created"),
            ("F55", "2.7–3.1", "E", "KC", "Error when processing AlterIsr for partitions: {isrs_to_alter:s}"),
            ("F56", "3.2", "E", "KC",
             "Error when processing AlterPartition for partitions: {partitions_to_alter:s}"),
            ("F57", "3.3–3.9", "E", "KC",
             "Error when processing AlterPartition: {alter_partition_request:s}"),
            ("F58", "1.0–2.0", "E", "KC",
             "Error while electing or becoming controller on broker {broker_id:i}"),
            ("F59", "2.1–3.9", "E", "KC",
             "Error while electing or becoming controller on broker {broker_id:i}. Trigger controller "
             "movement immediately"),
            ("F60", "0.8.2–0.10.2", "E", "KC", "Error while handling partition reassignment"),
            ("F61", "0.8.2–2.0", "E", "KC", "Error while incrementing controller epoch"),
            ("F63", "2.4–3.9", "W", "KC",
             "Failed reassignment through zk with the following errors: {partitions_failed:s}"),
            ("F111", "2.7–3.9", "W", "KC",
             "Processing of feature updates: {request:s} failed due to error: {exception:s}"),
        ),
    ),
    (
        "A step of a reassignment of replicas.",
        (
            ("F83", "1.1–2.3", "E", "KC",
             "Ignoring request to reassign partition {tp:tp} that doesn't exist."),
            ("F91", "1.1–3.9", "I", "KC",
             "Leader {current_leader:i} for partition {tp:tp} being reassigned, is already in the new list "
             "of replicas {reassigned_replicas:s} and is alive"),
            ("F92", "1.1–3.9", "I", "KC",
             "Leader {current_leader:i} for partition {tp:tp} being reassigned, is already in the new list "
             "of replicas {reassigned_replicas:s} but is dead"),
            ("F93", "1.1–3.9", "I", "KC",
             "Leader {current_leader:i} for partition {tp:tp} being reassigned, is not in the new list of "
             "replicas {reassigned_replicas:s}. Re-electing leader"),
            ("F99", "0.8.2–2.3", "I", "KC",
             "New replicas {reassigned_replicas:s} for partition {tp:tp} being reassigned not yet caught "
             "up with the leader"),
            ("F101", "1.1–3.9", "I", "KC",
             "No more partitions need to be reassigned. Deleting zk path {path:s}"),
            ("F102", "1.1–2.3", "I", "KC",
             "Partition {tp:tp} to be reassigned is already assigned to replicas {new_replicas:s}. "
             "Ignoring request for partition reassignment."),
            ("F103", "0.8.2–1.0", "I", "KC", "Partitions already reassigned: {reassigned_partitions:s}"),
            ("F104", "0.8.2–2.3", "I", "KC", "Partitions being reassigned: {partitions_being_reassigned:s}"),
            ("F105", "0.8.2–0.10.2", "D", "KC",
             "Partitions reassigned listener fired for path {data_path:s}. Record partitions to be "
             "reassigned {data:s}"),
            ("F113", "0.8.2–0.10.2", "D", "KC",
             "Reassigned partitions isr change listener fired for path {data_path:s} with children {data:s}"),
            ("F119", "0.8.2–1.0", "I", "KC",
             "Removed partition {tp:tp} from the list of reassigned partitions in zookeeper"),
            ("F121", "1.1", "I", "KC",
             "Removing partition {tp:tp} from the list of reassigned partitions in zookeeper"),
            ("F122", "2.0–3.9", "I", "KC",
             "Removing partitions {partitions_to_be_removed:s} from the list of reassigned partitions in "
             "zookeeper"),
            ("F128", "0.8.2–1.0", "I", "KC",
             "Resuming reassignment of partitions: {partitions_to_reassign:s}"),
            ("F136", "0.8.2–0.10.2", "E", "KC",
             "Skipping reassignment of partition {partition:s} for topic {topic:s} since it is currently "
             "being deleted"),
            ("F137", "1.0", "E", "KC",
             "Skipping reassignment of partition {tp:tp} since it is currently being deleted"),
            ("F138", "1.1–3.9", "E/I", "KC",
             "Skipping reassignment of {tp:tp} since the topic is currently being deleted"),
            ("F148", "0.8.2–2.3", "I", "KC",
             "Updated assigned replicas for partition {tp:tp} being reassigned to {replicas:s}"),
            ("F155", "2.4–3.9", "D", "KC",
             "Updating assignment of partition {tp:tp} from {current_assignment:s} to {reassignment:s}"),
            ("F159", "0.8.2–2.3", "I", "KC",
             "Waiting for new replicas {reassigned_replicas:s} for partition {tp:tp} being reassigned to "
             "catch up with the leader"),
        ),
    ),
    (
        "Topics or partitions were created, or their replicas changed.",
        (
            ("F97", "0.8.2–3.9", "I", "KC", "New partition creation callback for {new_partitions:s}"),
            ("F98", "0.8.2–3.9", "I", "KC", "New partitions to be added {partitions_to_be_added:s}"),
            ("F100", "0.8.2–1.0", "I", "KC", "New topic creation callback for {new_partitions:s}"),
            ("F126", "2.0–3.9", "I", "KC", "Restoring the partition replica assignment for topic {topic:s}"),
            ("F152", "0.8.2–1.0", "D", "KC",
             "Updated path {zk_path:s} with {json_partition_map:s} for replica assignment"),
        ),
    ),
    (
        "Leaders are to be given back to the first replica of their list, at a request or because the "
        "brokers' share of leaders is uneven.",
        (
            ("F106", "0.8.2–3.9", "I", "KC",
             "Partitions that completed preferred replica election: "
             "{partitions_that_completed_preferred_replica_election:s}"),
            ("F107", "0.8.2–3.9", "I", "KC",
             "Partitions undergoing preferred replica election: "
             "{partitions_undergoing_preferred_replica_election:s}"),
            ("F108", "0.8.2–0.10.2", "D", "KC",
             "Preferred replica election listener fired for path {data_path:s}. Record partitions to "
             "undergo preferred replica election {data:s}"),
            ("F109", "2.2–2.3", "D", "KC",
             "PreferredReplicaLeaderElection waiting: {successful_partitions:s}, results: {results:s}"),
            ("F110", "2.3–3.9", "I", "KC", "Processing automatic preferred replica leader election"),
            ("F127", "0.8.2–3.9", "I", "KC",
             "Resuming preferred replica election for partitions: "
             "{partitions_undergoing_preferred_replica_election:s}"),
            ("F133", "1.0–3.9", "I", "KC",
             "Skipping preferred replica election for partitions due to topic deletion: "
             "{pending_preferred_replica_elections_skipped_from_topic_deletion:s}"),
            ("F134", "0.8.2–2.3", "E/W", "KC",
             "Skipping preferred replica election for partitions {partitions_for_topics_to_be_deleted:s} "
             "since the respective topics are being deleted"),
            ("F135", "2.2–2.3", "I", "KC",
             "Skipping preferred replica leader election for partition {partition:s} since it doesn't "
             "exist."),
            ("F139", "2.4–3.9", "I", "KC",
             "Skipping replica leader election ({election_type:s}) for partition {partition:s} by "
             "{election_trigger:s} since it doesn't exist."),
            ("F140", "2.4–3.9", "W", "KC",
             "Skipping replica leader election ({election_type:s}) for partitions "
             "{partitions_being_deleted:s} by {election_trigger:s} since the respective topics are being "
             "deleted"),
            ("F145", "0.8.2–0.10.2", "I", "KC",
             "These partitions are already undergoing preferred replica election: "
             "{partitions_undergoing_preferred_replica_election:s}"),
            ("F146", "1.1–3.9", "D", "KC",
             "Topics not in preferred replica for broker {leader_broker:s} "
             "{topics_not_in_preferred_replica:s}"),
            ("F162", "0.8.2–0.10.2", "T", "KC", "checking need to trigger partition rebalance"),
            ("F163", "0.8.2–3.9", "T", "KC",
             "leader imbalance ratio for broker {leader_broker:i} is {ratio:s}"),
            ("F164", "0.8.2–2.4", "D", "KC",
             "preferred replicas by broker {preferred_replicas_for_topics_by_brokers:s}"),
            ("F165", "0.8.2–0.10.2", "I", "KC", "starting the partition rebalance scheduler"),
            ("F167", "0.8.2–1.0", "D", "KC",
             "topics not in preferred replica {topics_not_in_preferred_replica:s}"),
            ("F168", "0.8.2–1.0", "W", "PLS",
             "I should never have been asked to perform leader election, returning the current "
             "LeaderAndIsr and replica assignment."),
        ),
    ),
    (
        "Requests that the controller sends, or does not send, to brokers.",
        (
            ("F129", "1.1–3.9", "D", "KC",
             "Sending MetadataRequest to Brokers: {live_brokers:s} for TopicPartitions: {partitions:s}"),
            ("F130", "0.9–1.0", "D", "KC",
             "Sending MetadataRequest to Brokers:{live_brokers:s} for "
             "TopicAndPartitions:{topic_and_partitions:s}"),
        ),
    ),
    (
        "A step of electing a leader.",
        (
            ("F170", "0.8.2–1.0", "D", "PLS",
             "Partition {tp:tp} : current leader = {current_leader:i}, new leader = {new_leader:i}"),
        ),
    ),
)
# fmt: on

CONTROLLER_STEPS = tuple(Template(*row, meaning) for meaning, rows in _STEPS for row in rows)
