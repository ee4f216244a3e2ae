"""What stops or spoils a migration from ZooKeeper to KRaft."""

from kctl.findings import error, info, warning

ZNODE_UNREADABLE = error("""migration-znode-unreadable
    {path} cannot be read: {what}.
    The controller that copies the metadata stops at such a znode, or leaves out what is in it.
    A tool that wrote past the brokers, or a damaged export.
    Look at it with `kctl znode show PATH`, and set it right before the migration.""")
OTHER_CLUSTER = error("""migration-other-cluster
    The znodes are of cluster {cluster_id}, the metadata log of cluster {other}.
    A controller takes over no other cluster; what differs between two clusters says nothing about a migration.
    A controller formatted with another id than that in /cluster/id, or files of two clusters.
    Format the controllers with the id in /cluster/id.""")
STATES_DISAGREE = error("""migration-states-disagree
    The znodes say that the metadata is {znodes}, the metadata log says {state}.
    A controller that finds the two at odds does not migrate, or copies over what another one has done.
    A controller formatted anew while /migration was left from an earlier try, or the reverse; or a metadata log that
        was copied before the znodes were exported.
    Delete /migration, format the controllers anew with the same cluster id, and begin again.""")
BROKER_MISSING = error("""migration-broker-missing
    Broker {broker} holds {replicas} replicas and is not alive: the migration waits for it.
    The controller copies nothing before every broker that the metadata names has registered.
    A broker that is down, or that was removed without moving its replicas away.
    Start it in migration mode, or move its replicas away: `kctl reassign plan --drain BROKER`.""")
BROKER_WAITS = info("""migration-broker-not-registered
    Broker {broker} has not registered with the KRaft controller yet.
    The controller copies nothing before every broker has registered.
    A broker that was not restarted with `zookeeper.metadata.migration.enable=true` yet.
    Restart it with that setting, `controller.quorum.voters` and `controller.listener.names`.""")
CONTROLLER_NOT_READY = error("""migration-controller-not-ready
    Controller {controller} runs without `zookeeper.metadata.migration.enable=true`.
    The migration waits until all controllers are ready for it.
    A setting that one controller lacks.
    Restart the controller with the setting and `zookeeper.connect`.""")
CONTROLLER_ID_TAKEN = error("""migration-controller-id-taken
    Controller {controller} has the id of a broker.
    Controllers and brokers share one space of node ids, and a migration has both apart.
    A `node.id` that is in use.
    Format the controller anew with another `node.id`.""")
TOO_OLD = error("""migration-version-too-old
    The brokers are older than Kafka 3.4.
    The first version that migrates is 3.4; /controller of later ones has the key kraftControllerEpoch.
    A cluster that was not upgraded.
    Upgrade all brokers and `inter.broker.protocol.version`, best to 3.9, then migrate.""")
REQUEST_LEFT = warning("""migration-request-left
    {path} is there: {what}.
    Requests in ZooKeeper are not carried over.
    A deletion, reassignment or election that the controller has not finished.
    Let it finish, or cancel it, before the migration.""")
TOPIC_WITHOUT_ID = warning("""migration-topic-without-id
    Topic {topic} has no id.
    KRaft knows topics by id; a controller of 3.x gives one to each topic when it starts.
    A topic made before 2.8, and an `inter.broker.protocol.version` from before that.
    Raise `inter.broker.protocol.version` to the brokers' own version.""")
MOVE_UNDER_WAY = info("""migration-move-under-way
    {count} partitions are being moved, {partition} among them.
    Moves are carried over and go on under the KRaft controller.
    A reassignment.
    Nothing; a migration without moves is easier to watch.""")
NOT_CARRIED_OVER = info("""migration-not-carried-over
    {path} is not carried over: {what}.
    The controller copies topics, configurations, quotas, credentials, ACLs, tokens and producer ids, and nothing else.
    Left from old clients, another tool, or a topic that was deleted.
    Nothing, unless somebody still uses it.""")
PROTOCOL_TOO_OLD = error("""migration-protocol-too-old
    Broker {broker} has inter.broker.protocol.version {version}.
    A broker below 3.4 does not start in migration mode.
    An upgrade that was not finished.
    Raise `inter.broker.protocol.version` to the brokers' own version, and restart them one by one.""")
SETTINGS_DIFFER = warning("""migration-settings-differ
    {key} of {brokers} {how}, and is otherwise on other brokers.
    Brokers and controllers must have the same: with another secret passwords and tokens cannot be read after the
        migration, with another authorizer other rules hold.
    Files of brokers that were not changed alike.
    Set it alike on all brokers, and on the controllers.""")
NOT_EXAMINED = info("""migration-settings-not-examined
    Settings of {whose} were not examined: {settings}.
    No znode has them. A migration fails or loses secrets where brokers and controllers differ in them.
    The command was given znodes alone.
    Give --bootstrap-server beside --zookeeper, or compare the brokers' files by hand.""")
SECRETS_NOT_COMPARED = info("""migration-secrets-not-compared
    Brokers do not tell the values of {settings}, nor anything of the controllers' files.
    They must be the same on all brokers and controllers: tokens and passwords cannot be read otherwise.
    Brokers keep secrets to themselves.
    Compare the files by hand.""")
BESIDE_KRAFT = error("""migration-brokers-beside-kraft
    {brokers} in ZooKeeper mode after the migration was made final.
    What a broker does in ZooKeeper mode then, the KRaft cluster does not know of: there are two clusters.
    A broker that was started with its old settings.
    Stop it, and start it with `process.roles=broker`.""")
BROKER_FENCED = info("""migration-broker-fenced
    Broker {broker} registered for the migration and is not alive.
    The metadata goes on without it.
    A broker that stopped after the copy.
    Start it, in the mode of the other brokers.""")
