"""controller.log of ZooKeeper clusters: state machines, topic deletion, requests to brokers, threads.

Source: `core/src/main/scala/kafka/controller` @ 0.8.2.2 to 3.9.0-rc3.
"""

from formats.log_templates import Template

# What the sentences of a group say, then id, versions, level, class and pattern of each.
# fmt: off
_STEPS: tuple[tuple[str, tuple[tuple[str, str, str, str, str], ...]], ...] = (
    (
        "The controller's connections: to brokers, or to ZooKeeper.",
        (
            ("F01", "0.8.2–3.9", "D", "CCM", "Controller {broker_id:i} trying to connect to broker {id:i}"),
            ("F222", "1.0", "I", "ZKC", "Closed."),
            ("F223", "1.0", "I", "ZKC", "Closing."),
            ("F224", "1.0", "I", "ZKC", "Connected."),
            ("F225", "1.0", "I", "ZKC", "Initializing a new session to {connect_string:s}."),
            ("F228", "1.0", "I", "ZKC",
             "Timed out waiting for connection during session initialization while in state: {zoo_keeper:s}"),
            ("F229", "1.0", "I", "ZKC", "Waiting until connected."),
        ),
    ),
    (
        "A step of the controller failed; the stack trace that follows says why.",
        (
            ("F02", "0.8.2–3.9", "E", "CCM",
             "Controller {controller_id:i} fails to send a request to broker {broker_node:s}"),
            ("F03", "0.8.2–3.9", "E", "CCM", "Error while removing broker by the controller"),
            ("F16", "1.0–3.9", "E", "CEM", "Error processing event {controller_event:s}"),
            ("F17", "1.0–2.2", "E", "CEM",
             "Error while invoking listener for processed event {controller_event:s}"),
            ("F18", "2.3–3.9", "E", "CEM", "Uncaught error processing event {controller_event:s}"),
            ("F175", "2.7–3.9", "D", "PSM",
             "Controller failed to elect leader for partition {tp:tp}. Attempted to write state {tp_2:tp}, "
             "but failed with bad ZK version. This will be retried."),
            ("F178", "0.8.2–0.10.2", "E", "PSM",
             "Error while handling add partitions for data path {data_path:s}"),
            ("F179", "0.8.2–0.10.2", "E", "PSM", "Error while handling new topic"),
            ("F180", "0.8.2–1.0", "E", "PSM", "Error while moving some partitions to the online state"),
            ("F181", "0.8.2–3.9", "E", "PSM", "Error while moving some partitions to {target_state:s} state"),
            ("F195", "2.7–3.9", "D", "RSM",
             "Controller failed to remove replica {replica_id:i} from ISR of partition {tp:tp}. Attempted "
             "to write state {tp_2:tp}, but failed with bad ZK version. This will be retried."),
            ("F197", "0.8.2–0.10.2", "E", "RSM", "Error while handling broker changes"),
            ("F198", "0.8.2–3.9", "E", "RSM", "Error while moving some replicas to {target_state:s} state"),
            ("F206", "0.8.2–3.9", "D", "TDM",
             "Deletion failed for replicas {replicas_that_failed_to_delete:s}. Halting deletion for topics "
             "{topics:s}"),
            ("F216", "0.8.2–2.2", "I", "TDM",
             "Retrying delete topic for topic {topic:s} since replicas {failed_replicas:s} were not "
             "successfully deleted"),
            ("F217", "2.3–2.4", "I", "TDM",
             "Retrying deletion of topic {topic:s} since replicas {failed_replicas:s} were not "
             "successfully deleted"),
            ("F218", "2.5–3.9", "D", "TDM",
             "Retrying deletion of topics {topics:s} since replicas {failed_replicas:s} were not "
             "successfully deleted"),
            ("F221", "1.0", "I", "ZKC", "Auth failed."),
        ),
    ),
    (
        "Requests to brokers could not be put together, since what they refer to changed meanwhile.",
        (
            ("F04", "0.9", "E", "CCM",
             "Haven't been able to send leader and isr requests, current state of the map is "
             "{leader_and_isr_request_map:s}"),
            ("F05", "0.10.0–3.9", "E", "CCM",
             "Haven't been able to send leader and isr requests, current state of the map is "
             "{leader_and_isr_request_map:s}. Exception message: {exception:s}"),
            ("F06", "0.10.2–3.9", "E", "CCM",
             "Haven't been able to send metadata update requests to brokers "
             "{update_metadata_request_broker_set:s}, current state of the partition info is "
             "{update_metadata_request_partition_info_map:s}. Exception message: {exception:s}"),
            ("F07", "0.9", "E", "CCM",
             "Haven't been able to send metadata update requests, current state of the map is "
             "{update_metadata_request_map:s}"),
            ("F08", "0.10.0–0.10.1", "E", "CCM",
             "Haven't been able to send metadata update requests, current state of the map is "
             "{update_metadata_request_map:s}. Exception message: {exception:s}"),
            ("F09", "0.9", "E", "CCM",
             "Haven't been able to send stop replica requests, current state of the map is "
             "{stop_replica_request_map:s}"),
            ("F10", "0.10.0–3.9", "E", "CCM",
             "Haven't been able to send stop replica requests, current state of the map is "
             "{stop_replica_request_map:s}. Exception message: {exception:s}"),
        ),
    ),
    (
        "Requests that the controller sends, or does not send, to brokers.",
        (
            ("F11", "0.8.2–3.9", "I", "CCM",
             "Leader not yet assigned for partition {tp:tp}. Skip sending UpdateMetadataRequest."),
            ("F13", "0.8.2–3.4", "W", "CCM",
             "Not sending request {request:s} to broker {broker_id:i}, since it is offline."),
        ),
    ),
    (
        "Brokers settle who is controller.",
        (
            ("F12", "3.5–3.9", "W", "CCM",
             "Not sending request {name:s} with controllerId={controller_id:i}, "
             "controllerEpoch={controller_epoch:i}, brokerEpoch={broker_epoch:s} to broker {broker_id:i}, "
             "since it is offline."),
        ),
    ),
    (
        "A step of the deletion of a topic.",
        (
            ("F14", "0.8.2–2.5", "D", "CCM",
             "The stop replica request (delete = false) sent to broker {broker:i} is "
             "{stop_replica_without_delete:s}"),
            ("F15", "0.8.2–2.5", "D", "CCM",
             "The stop replica request (delete = true) sent to broker {broker:i} is "
             "{stop_replica_with_delete:s}"),
            ("F193", "0.8.2–1.0", "D", "RSM",
             "Are all replicas for topic {topic:s} deleted {replica_states_for_topic:s}"),
            ("F205", "0.8.2–3.9", "D", "TDM",
             "Dead Replicas ({dead_replicas_for_topic:s}) found for topic {topic:s}"),
            ("F207", "0.8.2–2.2", "I", "TDM",
             "Deletion for replicas {replica_ids:s} for partition {partitions:s} of topic {topic:s} in "
             "progress"),
            ("F208", "0.8.2–2.4", "D", "TDM",
             "Deletion started for replicas {replicas_for_deletion_retry:s}"),
            ("F209", "0.8.2–3.9", "D", "TDM",
             "Deletion successfully completed for replicas {successfully_deleted_replicas:s}"),
            ("F210", "0.8.2–2.2", "I", "TDM", "Halted deletion of topics {new_topics_to_halt_deletion:s}"),
            ("F211", "2.3–3.9", "I", "TDM",
             "Halted deletion of topics {new_topics_to_halt_deletion:s} due to {reason:s}"),
            ("F212", "0.8.2–3.9", "I", "TDM", "Handling deletion for topics {topics_queued_for_deletion:s}"),
            ("F213", "2.3–3.9", "I", "TDM",
             "Initializing manager with initial deletions: {initial_topics_to_be_deleted:s}, initial "
             "ineligible deletions: {initial_topics_ineligible_for_deletion:s}"),
            ("F214", "0.8.2–2.2", "I", "TDM",
             "Not retrying deletion of topic {topic:s} at this time since it is marked ineligible for "
             "deletion"),
            ("F215", "0.8.2–2.4", "I", "TDM", "Partition deletion callback for {partitions_to_be_deleted:s}"),
            ("F219", "0.8.2–2.4", "I", "TDM", "Topic deletion callback for {topics:s}"),
            ("F220", "0.8.2–0.10.2", "D", "TDM", "Waiting for signal to start or continue topic deletion"),
        ),
    ),
    (
        "Topics or partitions were created, or their replicas changed.",
        (
            ("F172", "0.8.2–0.9", "I", "PSM", "Add Partition triggered {data:s} for path {data_path:s}"),
            ("F186", "0.10.0–0.10.2", "I", "PSM",
             "Partition modification triggered {data:s} for path {data_path:s}"),
        ),
    ),
    (
        "Leaders are to be given back to the first replica of their list, at a request or because the "
        "brokers' share of leaders is uneven.",
        (
            ("F173", "1.0", "D", "PSM",
             "After leader election, leader cache for {tp:tp} is updated to {tp_2:tp}"),
            ("F174", "0.8.2–0.10.2", "D", "PSM",
             "After leader election, leader cache is updated to {partition_leadership_info:s}"),
            ("F187", "2.4–3.9", "I", "PSM",
             "Retrying leader election with strategy {partition_leader_election_strategy:s} for partitions "
             "{remaining:s}"),
        ),
    ),
    (
        "This broker found in the middle of a step that another one is controller now.",
        (
            ("F176", "2.1–3.9", "E", "PSM",
             "Controller moved to another broker when moving some partitions to {target_state:s} state"),
            ("F177", "2.1–3.9", "E", "PSM",
             "Controller moved to another broker when trying to create the topic partition state znode"),
            ("F196", "2.1–3.9", "E", "RSM",
             "Controller moved to another broker when moving some replicas to {target_state:s} state"),
        ),
    ),
    (
        "A step of a controller as it takes office or leaves it.",
        (
            ("F182", "0.8.2–1.0", "D", "PSM",
             "Initializing leader and isr for partition {tp:tp} to {leader_isr_and_controller_epoch:s}"),
            ("F183", "1.1–3.9", "I", "PSM", "Initializing partition state"),
            ("F188", "0.8.2–3.9", "D/I", "PSM",
             "Started partition state machine with initial state -> {partition_states:s}"),
            ("F189", "0.8.2–3.9", "I", "PSM", "Stopped partition state machine"),
            ("F191", "1.1–3.9", "I", "PSM", "Triggering online partition state changes"),
            ("F199", "1.1–3.9", "I", "RSM", "Initializing replica state"),
            ("F201", "0.8.2–3.9", "D/I", "RSM",
             "Started replica state machine with initial state -> {replica_states:s}"),
            ("F202", "0.8.2–3.9", "I", "RSM", "Stopped replica state machine"),
            ("F203", "2.3–3.9", "I", "RSM", "Triggering offline replica state changes"),
            ("F204", "1.1–3.9", "I", "RSM", "Triggering online replica state changes"),
        ),
    ),
    (
        "A step of electing a leader.",
        (
            ("F184", "0.8.2–1.0", "I", "PSM",
             "Invoking state change to {target_state:s} for partitions {partitions:s}"),
            ("F185", "0.8.2–1.0", "D", "PSM",
             "Live assigned replicas for partition {tp:tp} are: [{live_assigned_replicas:s}]"),
            ("F200", "0.8.2–1.0", "I", "RSM",
             "Invoking state change to {target_state:s} for replicas {replicas:s}"),
        ),
    ),
    (
        "The controller begins or ends to watch ZooKeeper, or was told of a change there.",
        (
            ("F190", "0.8.2–0.10.2", "D", "PSM",
             "Topic change listener fired for path {parent_path:s} with children {children:s}"),
            ("F194", "0.8.2–0.10.2", "I", "RSM",
             "Broker change listener fired for path {parent_path:s} with children {current_broker_list:s}"),
        ),
    ),
    (
        "A step of the controller's work.",
        (
            ("F192", "2.5–3.9", "E", "RSM",
             "Adding replica ({replica_id:i}) that is not part of the assignment {assignment:s}"),
            ("F226", "1.0", "D", "ZKC", "Received event: {event:s}"),
            ("F227", "1.0", "I", "ZKC", "Session expired."),
        ),
    ),
    (
        "A thread began.",
        (
            ("F230", "0.8.2–3.9", "I", "thread", "Starting« »"),
        ),
    ),
    (
        "A thread ended.",
        (
            ("F231", "0.8.2–3.9", "I", "thread", "Stopped« »"),
        ),
    ),
    (
        "A thread was asked to end.",
        (
            ("F232", "0.8.2–3.9", "I", "thread", "Shutting down"),
            ("F234", "0.10.0–2.0", "T", "thread",
             "shutdownInitiated latch count reached zero. Shutdown called."),
        ),
    ),
    (
        "A thread was ended.",
        (
            ("F233", "0.8.2–3.9", "I", "thread", "Shutdown completed"),
        ),
    ),
    (
        "A thread died of an error; the stack trace says why.",
        (
            ("F235", "0.8.2–3.9", "E+S", "thread", "Error due to{rest:s}"),
        ),
    ),
)
# fmt: on

MACHINE_STEPS = tuple(Template(*row, meaning) for meaning, rows in _STEPS for row in rows)
