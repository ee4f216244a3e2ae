"""What is wrong where two places of one evidence state two identities."""

from kctl.findings import error, info, warning

CLUSTER_ID_DIFFERS = error("""cluster-id-differs
    The cluster id is {value} in {source} and {other} in {other_source}.
    The broker refuses to start (InconsistentClusterIdException, 2.4 and later); before 2.4 it joins the other cluster
        without a word (`K:server/KafkaServer.scala @ 2.4.0`).
    ZooKeeper lost its data or was set up anew, `zookeeper.connect` leads to another ensemble or chroot, or a disk of
        another cluster was mounted.
    Restore ZooKeeper's data, or lead the broker to the ensemble that has the id of its disks. Delete neither
        `meta.properties` nor a partition folder: a broker with the new id finds no topic of its disks in ZooKeeper.""")
NODE_ID_DIFFERS = error("""node-id-differs
    `{key}` is {value} in {source}, and {other_source} has {other}.
    The broker refuses to start: the configured id must be the stored one (InconsistentBrokerIdException up to 3.6,
        "Stored node id … doesn't match previous node id …" from 3.7, `MetaPropertiesEnsemble.java @ 3.7.0`).
    The disk of another broker was mounted, or the setting was changed or copied from another host.
    Set the id that `meta.properties` has if the disk belongs here; else mount the right disk. Do not delete
        `meta.properties`: under another id the broker is assigned none of the partitions on its disk.""")
LOG_DIRS_OF_TWO_BROKERS = error("""log-dirs-of-two-brokers
    `log.dirs` of {source} lists {paths} as those of one broker, and they are of brokers {values}.
    The broker refuses to start: all its log directories must have one id (InconsistentBrokerMetadataException up to 3.6,
        "Stored node id … doesn't match previous node id …" from 3.7).
    The disk of another broker was mounted, or a directory was copied from another host.
    Mount the right disk, or take the other broker's out of `log.dirs`. Do not delete or change its `meta.properties`: its
        partitions are assigned to the other broker.""")
BROKER_ID_OF_LOGS_DIFFERS = warning("""broker-id-of-logs-differs
    The lines of {source} are of broker {value}, and {other_source} beside it has broker id {other}.
    The log and the log directories are of two brokers, or the broker was started with another id.
    Files of two hosts were copied into one folder, or `broker.id` was changed.
    Find out which broker the files are from before you draw conclusions from both.""")
OWNERS_NOT_COPIED = info("""owners-not-in-the-copy
    {source} names files that the broker was not allowed to open; all files of the log directories here have one owner.
    A copy that does not keep owners and modes (`cp` and `rsync` without -a as root, archives, git) does not show which.
    The evidence was copied by another user.
    Run `kctl segment verify` on the broker's own directory, or `find LOG_DIR ! -user USER`.""")
DIRECTORY_ID_TWICE = error("""directory-id-twice
    The directory id {value} is in {source} and in {other_source}.
    A broker does not start with one id in two of its directories ("Duplicate directory ID"); of two brokers the
        controller refuses the second ("Broker … is already registered with directory …", metadata.version 3.7 and later).
    A disk or volume was cloned, or `meta.properties` was copied from one directory to another.
    Find out which directory is the copy. In that one only, remove the line directory.id from `meta.properties`: the
        broker writes a new id at its start. Delete no folder.""")
DIRECTORY_ID_UNKNOWN = warning("""directory-id-not-registered
    The directory id {value} of broker {broker} in {source} is none of those that {other_source} has for it: {other}.
    The controller takes replicas in a directory that is not registered for lost and elects other leaders; the broker
        registers its directories again at each start.
    The disk was replaced or its `meta.properties` written anew, or the disk is of another broker.
    Check whether the old disk still exists before you delete anything: it may hold the only copy.""")
VOTER_DIRECTORY_GONE = error("""voter-directory-gone
    Voter {voter} is directory {value} by {source}; node {voter} has {other} in {other_source}.
    The voter is one node id with one directory id (KIP-853). The node votes no longer: it fetches as an observer, and
        the quorum has one voter less that can vote than voters.
    The disk with the metadata log of the controller was replaced or formatted again.
    `kctl quorum remove NODE`, then `kctl quorum add NODE`. If the old disk can be mounted again, do that instead.
        Do not format another controller before that: the quorum needs a majority of all voters.""")
VOTERS_DIFFER = error("""voter-set-differs
    The voters are {value} by {source} and {other} by {other_source}.
    Up to 3.7 the node does not start ("Configured voter set … is different from the voter set read from the state
        file", `QuorumState.java @ 3.7.0`). From 3.8 it takes those of `server.properties`: nodes that count different
        voters may elect two leaders, or none.
    `controller.quorum.voters` was changed after the quorum was formed, or the file is of another node.
    Write the voters that all other controllers have into `server.properties`. Do not delete `quorum-state`: the node
        then forgets for whom it voted and may vote twice in one epoch.""")
VOTERS_OF_LOG_DIFFER = warning("""voter-set-of-log-differs
    `controller.quorum.voters` is {value} in {source}; the voters that the metadata log records are {other} ({other_source}).
    With kraft.version 1 (3.9 and later) the records count and the setting does not (KIP-853); a node that has neither log nor
        snapshot begins with the setting.
    Voters were added or removed, and the setting was left as it was.
    Replace it by `controller.quorum.bootstrap.servers`. Do not delete the metadata log of a controller.""")
ROLES_OF_ZOOKEEPER_DIR = error("""kraft-over-zookeeper-dir
    `process.roles` is {value} in {source}, and {other_source} is of version 0, which brokers with ZooKeeper write.
    A KRaft broker takes the directory for its own if the ids match (3.7 and later), begins an empty cluster and renames
        each partition folder to `-stray` (3.7 and later) or deletes it; before 3.7 it does not start.
    `process.roles` was set without a migration (KIP-866).
    Do not start the broker: take `process.roles` out, set `zookeeper.connect` again, and migrate with
        `kctl migration check`. Delete no folder.""")
STRAYED_BY_KRAFT = error("""kraft-strayed-zookeeper-dir
    A KRaft broker was started over a log directory of a broker with ZooKeeper ({source}; {other_source} is of version 0):
        it renamed partition folders to `-stray` ({count}: {names}). Nothing is lost, all records are in these folders.
    The new cluster knows none of the old topics; a KRaft broker from 3.7 on renames the folders that its metadata do not
        name (`LogManager.scala @ 3.7.0`), and clients see an empty cluster.
    `process.roles` was set without a migration (KIP-866).
    Stop the broker. Copy the directory, rename each folder back (TOPIC-PARTITION.ID-stray to TOPIC-PARTITION), move
        `__cluster_metadata-0` and `bootstrap.checkpoint` out, and start it with its ZooKeeper settings. Delete no
        `-stray` folder.""")
ZOOKEEPER_OVER_KRAFT_DIR = error("""zookeeper-over-kraft-dir
    {source} has `zookeeper.connect` and no `process.roles`, and {other_source} is of version 1, which KRaft nodes write.
    A broker with ZooKeeper refuses to start: it supports version 0 of `meta.properties` only.
    The cluster runs with KRaft, and the settings are of the time before; or the disk is of another node.
    Start the node with its KRaft settings. Do not change or delete `meta.properties`: topics of a KRaft cluster are
        unknown to ZooKeeper.""")
LOG_DIR_NOT_LISTED = warning("""log-dir-not-in-log-dirs
    The log directory {other_source} is not in `log.dirs` of {source}: {value}.
    The broker does not read a directory that is not listed: the partitions in it are offline or are copied again.
    A disk was left out when `log.dirs` was edited, or the directory is of another broker.
    Add the directory to `log.dirs` if it belongs to this broker. Delete nothing in it before all partitions have their
        replicas elsewhere: `kctl replica compare`.""")
LOG_DIR_NOT_THERE = warning("""log-dir-not-in-the-evidence
    {source} lists {all:log directory/log directories} ({value}), and the evidence has no copy of {count} of them{names}.
    What lies in a directory that was not copied was not examined: partitions that seem to be missing may be there.
    The directory was left out when the evidence was copied, or its disk has failed or is not mounted.
    Copy it as well (`kctl collect`), or say what became of the disk. Do not format it before.""")
TOPIC_ID_OF_ZNODE_DIFFERS = error("""topic-id-of-znode-differs
    Topic {topic} has the id {value} in {source} and {other} in {other_source} (folders with it: {count}).
    Brokers answer the controller's requests for these replicas with INCONSISTENT_TOPIC_ID (2.8 and later): the
        partitions have no leader after the next election or restart. The records are not touched.
    An old client wrote the topic's znode without its id, such as `kafka-topics --zookeeper` of before 2.8, and the
        controller gave the topic a new id (KAFKA-14190). Or the topic was deleted and created again.
    If no topic was deleted: put the folders' id back into the znode, or remove `partition.metadata` from the folders and
        restart their brokers, which write the new id. Nothing is lost. Delete no folder.""")
TOPIC_ID_OF_METADATA_LOG_DIFFERS = error("""topic-id-of-metadata-log-differs
    Topic {topic} has the id {value} in {source} and {other} in {other_source} (folders with it: {count}).
    A KRaft broker takes these folders for those of another topic: from 3.7 on it renames them to `-stray` at its start
        and begins an empty log, up to 3.6 it deletes them.
    The topic was deleted and created again while the directory was away, the metadata were lost and topics made anew,
        or the folder is of another cluster.
    Copy the folders before a broker starts with them. If no topic was deleted, their records are of the topic: take
        them from the copy. Do not delete a `-stray` folder before.""")
TWO_HOSTS_ONE_BROKER = error("""broker-id-twice
    {source} and {other_source} are two log directories with broker id {broker}, not two moments of one: {reason}.
        Both hold {common}.
    Brokers with one id take turns: the second does not register while the first is up (NodeExistsException of
        its znode; DuplicateBrokerRegistrationException with KRaft), and takes over its partitions with its
        own older logs when it is away: records that only the other has are lost.
    Two hosts were started with one `broker.id`, or a disk was cloned.
    Stop one of the two before anything else. Keep both disks: compare them (`kctl replica compare`), and give one host a
        `broker.id` of its own with an empty directory. Delete neither disk before that.""")
BROKER_ID_CONFIGURED_TWICE = error("""broker-id-configured-twice
    {source} and {other_source} have the same broker id {value}, and other listeners: {listeners} and {other_listeners}.
    Brokers with one id take turns: the second does not register while the first is up, and takes over its partitions with its
        own older logs when it is away.
    `server.properties` was copied from one host to the other.
    Stop one of the two before anything else. Give the host that came later an id of its own. Delete neither disk before you
        know what each holds: `kctl replica compare`.""")
NEWER_METADATA = error("""metadata-version-of-newer-software
    The software that wrote {source} is older than the metadata version {value} ({name}), which is {other_source}: {proof}.
        It has to be Kafka {since} or later.
    A node does not start with a metadata version that it does not know.
    A downgrade: the metadata version was raised by newer software, and older software was installed again.
    Start the newer software. Running nodes can lower the metadata version (`kctl feature downgrade`), a restart cannot.
        Do not format the directory: that deletes the cluster's metadata.""")
SAME_UNDER_OTHER_BROKERS = warning("""replicas-under-other-broker-ids
    Brokers {assigned}, which are not in the evidence, are assigned partitions ({count}, such as {names}) that lie on brokers
        {holders}, which are assigned none. Their topic ids {ids}.
    The controller looks for replicas by broker id: the assigned brokers do not exist, and the partitions have no leader.
        What lies on the disks is neither stale nor missing.
    The brokers lost their `meta.properties` and were given new ids (`broker.id.generation.enable`, 1001 and up), or came
        up with other settings.
    Stop the brokers and set the old id of each in `broker.id` and `meta.properties`; the log of partitions and replicas
        tells which host was which. Delete no folder, and do not reassign the partitions to empty replicas.""")
STRAY_HOLDS_EARLIER = warning("""stray-holds-earlier-records
    {name} ends at {end} and is of topic id {value}; {partition} on the same broker ends at {live_end} and is of
        {other}: {records:record} of an earlier topic of this name {records:is|are} in the stray folder.
    A broker of 3.7 and later renames a folder that its metadata do not name to `-stray` at its start, and never deletes it.
    The topic was deleted and created again while the broker was down, or the metadata were lost and topics made anew.
    If nobody deleted the topic, copy the folder before anybody removes it: `kctl segment dump --records` reads it, and a
        producer can write its records to the topic again.""")
NO_TOPIC_ID = error("""kraft-no-partition-metadata
    The folder of {partition} has no `partition.metadata`{known}.
    Up to 3.7.0 a KRaft broker does not start ("The log dir … does not have a topic ID, which is not allowed when running in
        KRaft mode."). From 3.7.1 on it takes the folder for stray: it renames it to `-stray` and begins an empty log.
    The folder was restored, copied or made by hand without the file, or it was lost in a power failure.
    Before the broker starts, write the file: `version: 0` and `topic_id: ID` on two lines, with the id of the topic in the
        metadata log (`kctl metadata show`) or in `partition.metadata` of its other folders. Delete no folder.""")
