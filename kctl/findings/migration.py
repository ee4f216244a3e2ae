"""What stops or spoils a migration from ZooKeeper to KRaft."""

from kctl.findings import error, info, warning

ZNODE_UNREADABLE = error("""migration-znode-unreadable
    {path} cannot be read: {what}.
    The controller that copies the metadata stops at such a znode or skips its content.
    A tool wrote the znode directly, or the export is damaged.
    Inspect it with `kctl znode show PATH` and correct it before the migration.""")
OTHER_CLUSTER = error("""migration-other-cluster
    The znodes are of cluster {cluster_id}, the metadata log of cluster {other}.
    A controller does not migrate another cluster; differences between two clusters say nothing about a migration.
    The controller was formatted with another id than the one in /cluster/id, or the files are of two clusters.
    Format the controllers with the id in /cluster/id.""")
STATES_DISAGREE = error("""migration-states-disagree
    The znodes say that the metadata is {znodes}, the metadata log says {state}.
    If the two disagree, a controller does not migrate, or overwrites the work of another controller.
    A controller was formatted again while /migration was left from an earlier attempt, or the reverse; or the
        metadata log was copied before the znodes were exported.
    Delete /migration, format the controllers again with the same cluster id, and start over.""")
BROKER_MISSING = error("""migration-broker-missing
    Broker {broker} holds {replicas:replica} and is not alive: the migration waits for it.
    The controller copies nothing until every broker in the metadata has registered.
    The broker is down, or it was removed while it still had replicas.
    Start it in migration mode, or move its replicas away: `kctl reassign plan --drain BROKER`.""")
BROKER_WAITS = info("""migration-broker-not-registered
    Broker {broker} has not registered with the KRaft controller yet.
    The controller copies nothing until every broker has registered.
    The broker has not been restarted with `zookeeper.metadata.migration.enable=true` yet.
    Restart it with that setting, `controller.quorum.voters` and `controller.listener.names`.""")
CONTROLLER_NOT_READY = error("""migration-controller-not-ready
    Controller {controller} runs without `zookeeper.metadata.migration.enable=true`.
    The migration waits until all controllers are ready for it.
    The setting is missing on this controller.
    Restart the controller with the setting and `zookeeper.connect`.""")
CONTROLLER_ID_TAKEN = error("""migration-controller-id-taken
    Controller {controller} has the id of a broker.
    Controllers and brokers share one space of node ids; during a migration they are separate nodes.
    The `node.id` is already in use.
    Format the controller again with another `node.id`.""")
TOO_OLD = error("""migration-version-too-old
    The brokers are older than Kafka 3.4.
    Migration needs Kafka 3.4 or later, where /controller has the key kraftControllerEpoch.
    The cluster was not upgraded.
    Upgrade all brokers and `inter.broker.protocol.version`, preferably to 3.9, then migrate.""")
REQUEST_LEFT = warning("""migration-request-left
    {path} exists: {what}.
    The migration does not copy requests in ZooKeeper.
    The controller has not finished a deletion, reassignment or election.
    Let it finish, or cancel it, before the migration.""")
TOPIC_WITHOUT_ID = warning("""migration-topic-without-id
    Topic {topic} has no id.
    KRaft identifies topics by id; a controller of 3.x assigns one to each topic when it starts.
    The topic was created before 2.8, and `inter.broker.protocol.version` is older than that.
    Raise `inter.broker.protocol.version` to the brokers' own version.""")
MOVE_UNDER_WAY = info("""migration-move-under-way
    {count:partition} {count:is|are} being moved, including {partition}.
    The migration copies running moves, and they continue under the KRaft controller.
    A running reassignment.
    Nothing; a migration without moves is easier to watch.""")
NOT_CARRIED_OVER = info("""migration-not-carried-over
    {path} is not copied: {what}.
    The controller copies only topics, configurations, quotas, credentials, ACLs, tokens and producer ids.
    The znode is left from old clients, another tool, or a deleted topic.
    Nothing, unless it is still used.""")
PROTOCOL_TOO_OLD = error("""migration-protocol-too-old
    Broker {broker} has inter.broker.protocol.version {version}.
    A broker below 3.4 does not start in migration mode.
    An upgrade was not finished.
    Raise `inter.broker.protocol.version` to the brokers' own version, and restart them one by one.""")
SETTINGS_DIFFER = warning("""migration-settings-differ
    {key} of {brokers} {how}, and is different on other brokers.
    Brokers and controllers must use the same value: with another secret, passwords and tokens cannot be read after
        the migration; with another authorizer, other rules apply.
    The configuration files of the brokers differ.
    Set the same value on all brokers and controllers.""")
NOT_EXAMINED = info("""migration-settings-not-examined
    Settings of {whose} were not examined: {settings}.
    Znodes do not contain them. If brokers and controllers differ in them, a migration fails or loses secrets.
    The command read only znodes.
    Give --bootstrap-server in addition to --zookeeper, or compare the brokers' files by hand.""")
SECRETS_NOT_COMPARED = info("""migration-secrets-not-compared
    Brokers do not report the values of {settings}, nor any setting of the controllers.
    The values must be the same on all brokers and controllers, or tokens and passwords cannot be read.
    Brokers do not return secrets.
    Compare the files by hand.""")
BESIDE_KRAFT = error("""migration-brokers-beside-kraft
    {brokers} in ZooKeeper mode after the migration was finalized.
    The KRaft cluster does not see what a broker does in ZooKeeper mode: there are now two clusters.
    The broker was started with its old settings.
    Stop it, and start it with `process.roles=broker`.""")
BROKER_FENCED = info("""migration-broker-fenced
    Broker {broker} registered for the migration and is not alive.
    The cluster continues without it.
    The broker stopped after the copy.
    Start it in the mode of the other brokers.""")

AFTER_ROLLBACK = (
    "with it a KRaft controller that starts (3.4 to 3.9) copies nothing and writes its own metadata, old or empty, over "
    "ZooKeeper's: stop the controllers, delete the znode, and format their directories anew before another migration"
)
"""What is left to do after a migration to KRaft was rolled back.

Source: metadata/src/main/java/org/apache/kafka/metadata/migration/KRaftMigrationDriver.java @ 3.4.0 to 3.9.0
(WaitForControllerQuorumEvent, BecomeZkControllerEvent): with /migration still there, a controller takes the copy for
done and writes its metadata to ZooKeeper (SYNC_KRAFT_TO_ZK), those of before the rollback, or none if it was formatted anew.
Without the znode a controller that has the old metadata does nothing, and one that is formatted anew copies again.
"""
