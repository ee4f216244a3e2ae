"""What can be said about evidence as a whole: folders that cannot be read, brokers that cannot be identified."""

from kctl.findings import error, info, warning

UNREADABLE = error("""evidence-unreadable
    The file or folder cannot be read: {reason}.
    This file or folder was not examined; everything else was.
    Missing permission, a failing disk, or a file that was removed while it was examined.
    Give kctl a readable copy.""")
BROKER_FOLDER_EMPTY = info("""evidence-broker-folder-empty
    The folder of broker {broker} holds no file.
    Nothing of this broker was examined.
    A copy failed or was never made, or a disk was wiped.
    Copy the broker's log directories and logs into the folder.""")
NOT_LOOKED_INTO = info("""evidence-not-looked-into
    {count:file} whose {count:name says|names say} nothing {count:was|were} not looked into for lines of a log: {most} were.
    A log among them is not part of the answer.
    The folder holds much else beside evidence.
    Name the files or folders that hold the logs.""")
LOGS_LEFT = info("""evidence-logs-left
    {count:file} of other names than logs have, with lines of brokers in {count:it|them}, {count:was|were} not read: {names}.
    Other logs lie beside them. Lines of several brokers, or of one that nothing names, mostly repeat what those hold.
    Logs of several brokers were merged or exported into one file.
    Name the files to read them too, or move them into a folder of their broker such as `broker-3`.""")
VANISHED = info("""evidence-vanished
    The file or folder was listed but no longer exists.
    A file or folder was removed or renamed while it was examined.
    A running broker rolls, cleans and deletes segments.
    If you need a complete result, copy the directory or stop the broker.""")
LINK_NOT_FOLLOWED = warning("""evidence-link-not-followed
    A symbolic link to {target} was not followed: {reason}.
    kctl reads only below the folders given on the command line.
    A linked data folder, or a link to one of its own parent folders.
    Add the target of the link to the command line.""")
OF_ANOTHER_SYSTEM = info("""evidence-of-another-system
    This looks like {what} of {system}, which is not Apache Kafka{more}; it was not examined.
    Its files have another format than Kafka's; kctl calls them neither sound nor damaged.
    A cluster of another system that speaks Kafka's protocol, or a migrated cluster.
    Use the tools of that system.""")
NOT_A_FILE = warning("""evidence-not-a-file
    This is {what}, not a regular file; it was not opened.
    Kafka writes regular files only.
    A failed copy, or a name reused for something else.
    Find out what it is; Kafka fails when it opens it.""")
SEVERAL_CLUSTERS = warning("""evidence-several-clusters
    The evidence holds log directories of {count} clusters: {clusters}.
    Partitions of the same name on different clusters are unrelated.
    Evidence of several clusters was gathered into one folder.
    Examine one cluster at a time.""")
BROKER_UNKNOWN = info("""evidence-broker-unknown
    The broker id of this {what} is unknown.
    kctl cannot assign copies of partitions to this broker; checks of single files are not affected.
    A 0.8 log directory has no `meta.properties`, and no parent folder is named like `broker-3`.
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
    Restore it; `server.properties` has the broker id, znode /cluster/id the cluster id.""")
META_PROPERTIES_UNUSUAL = warning("""meta-properties-unwritten
    Line {line} of `meta.properties` has characters that no broker writes.
    The value may be wrong. A broker still reads the line, and refuses to start if the cluster id has changed.
    The file was damaged on the disk or in the copy, or edited.
    Compare the file with the one in another log directory of this broker.""")
ZNODES_BAD = error("""znode-export-malformed
    The znode export cannot be used: {reason}.
    Leaders, ISRs and settings are unknown; verdicts use logs and checkpoints only.
    An incomplete copy, or a file of another kind under that name.
    Export again with `kctl znode export`, or remove the bad lines.""")
FOREIGN_FOLDER = error("""log-dir-foreign-folder
    A log directory contains the folder {name!r}, which is not a topic-partition.
    Kafka refuses to start: its log directories should only contain topic data.
    `lost+found` of a mount point, a backup copy, or a folder made by hand.
    Move it out of the log directory.""")
DUPLICATE_REPLICA = error("""log-dir-duplicate-partition
    {partition} lies in {count} log directories of one broker: {folders}.
    Kafka refuses to start with the same partition twice.
    A replica was moved by hand, or the broker crashed while it moved one between log directories.
    Find the complete copy with `kctl replica compare` and move the other one away.""")
