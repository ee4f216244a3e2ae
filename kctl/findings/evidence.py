"""What can be said about evidence as a whole: folders that cannot be read, brokers that cannot be told."""

from kctl.findings import error, info, warning

UNREADABLE = error("""evidence-unreadable
    The file or folder cannot be read: {reason}.
    This file or folder was not examined; everything else was.
    Missing permission, a failing disk, or a file that went away while it was examined.
    Give kctl a copy that it can read.""")
BROKER_FOLDER_EMPTY = info("""evidence-broker-folder-empty
    The folder of broker {broker} holds no file.
    Nothing of this broker was examined.
    A copy that failed or was never made, or a disk that was emptied.
    Copy the broker's log directories and logs into the folder.""")
VANISHED = info("""evidence-vanished
    The file or folder was listed but no longer exists.
    A file or folder was removed or renamed while it was examined.
    A running broker rolls, cleans and deletes segments.
    Copy the directory, or stop the broker, where a complete picture is needed.""")
LINK_NOT_FOLLOWED = warning("""evidence-link-not-followed
    A symbolic link to {target} was not followed: {reason}.
    Evidence is what lies below the folders given; nothing outside was read.
    A data folder that was linked, or a link into its own parents.
    Name the folder that the link points to on the command line as well.""")
OF_ANOTHER_SYSTEM = info("""evidence-of-another-system
    This looks like {what} of {system}, which is not Apache Kafka{more}; it was not examined.
    What holds for the bytes of Kafka's segments does not hold for it: it is neither sound nor damaged.
    A cluster of another system that speaks Kafka's protocol, or one that was migrated.
    Use the tools of that system.""")
NOT_A_FILE = warning("""evidence-not-a-file
    This is {what}, not a regular file; it was not opened.
    Kafka writes regular files only.
    A copy that went wrong, or a name reused for something else.
    Look at what it is; Kafka fails on it when it opens it.""")
SEVERAL_CLUSTERS = warning("""evidence-several-clusters
    Log directories of {count} clusters lie together: {clusters}.
    Partitions of the same name on different clusters have nothing to do with each other.
    Evidence of several clusters was gathered into one folder.
    Examine one cluster at a time.""")
BROKER_UNKNOWN = info("""evidence-broker-unknown
    The broker id of this {what} is unknown.
    Copies of a partition cannot be assigned to brokers; checks of single files are not affected.
    A 0.8 log directory has no `meta.properties`, and no folder above is named like `broker-3`.
    Name the broker: `--broker ID=FOLDER`.""")
BROKER_DIFFERS = info("""evidence-broker-id-differs
    `meta.properties` says broker {stored}, the folder {named}.
    kctl uses the id in `meta.properties`.
    A renamed copy, or files of another broker.
    Check which broker the copy is from.""")
META_PROPERTIES_BAD = error("""meta-properties-malformed
    `meta.properties` cannot be used: {reason}.
    The broker refuses to start with it.
    A torn write on a full or failing disk, or a hand edit.
    Restore it; the id of the broker is in `server.properties`, that of the cluster in znode /cluster/id.""")
META_PROPERTIES_UNUSUAL = warning("""meta-properties-unwritten
    Line {line} of `meta.properties` has characters that no broker writes.
    What the line says may be wrong. A broker reads it all the same, and does not start where the cluster id is another
        than before.
    A file damaged on the disk or in the copy, or edited.
    Compare it with that of another log directory of this broker.""")
ZNODES_BAD = error("""znode-export-malformed
    The znode export cannot be used: {reason}.
    Leaders, ISRs and settings are unknown; verdicts use logs and checkpoints only.
    A copy cut short, or a file of another kind under that name.
    Export again with `kctl znode export`, or take the bad lines out.""")
FOREIGN_FOLDER = error("""log-dir-foreign-folder
    A log directory contains the folder {name!r}, which is not a topic-partition.
    Kafka refuses to start: its log directories should only contain topic data.
    `lost+found` of a mount point, a backup copy, or a folder that was made by hand.
    Move it out of the log directory.""")
DUPLICATE_REPLICA = error("""log-dir-duplicate-partition
    {partition} lies in {count} log directories of one broker: {folders}.
    Kafka refuses to start with the same partition twice.
    A replica moved by hand, or a crash while one was moved between log directories.
    Find out which copy is complete (`kctl replica compare`) and move the other away.""")
