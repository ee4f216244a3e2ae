"""What can be said about evidence as a whole: folders that cannot be read, brokers that cannot be told."""

from kctl.findings import FindingType, Severity

UNREADABLE = FindingType(
    "evidence-unreadable",
    Severity.ERROR,
    "It cannot be read: {reason}.",
    "Nothing is known about this file or folder; everything else was examined.",
    "Missing permission, a failing disk, or a file that went away while it was examined.",
    "Give kctl a copy that it can read.",
)
VANISHED = FindingType(
    "evidence-vanished",
    Severity.INFO,
    "It was there when the folder was listed and is gone now.",
    "A file or folder was removed or renamed while it was examined.",
    "A running broker rolls, cleans and deletes segments.",
    "Copy the directory, or stop the broker, where a complete picture is needed.",
)
LINK_NOT_FOLLOWED = FindingType(
    "evidence-link-not-followed",
    Severity.WARNING,
    "A symbolic link to {target} was not followed: {reason}.",
    "Evidence is what lies below the folders given; nothing outside was read.",
    "A data folder that was linked, or a link into its own parents.",
    "Name the folder that the link points to on the command line as well.",
)
NOT_A_FILE = FindingType(
    "evidence-not-a-file",
    Severity.WARNING,
    "It is {what}, not a file, and was not opened.",
    "Kafka writes regular files only.",
    "A copy that went wrong, or a name reused for something else.",
    "Look at what it is; Kafka fails on it when it opens it.",
)
SEVERAL_CLUSTERS = FindingType(
    "evidence-several-clusters",
    Severity.WARNING,
    "Log directories of {count} clusters lie together: {clusters}.",
    "Partitions of the same name on different clusters have nothing to do with each other.",
    "Evidence of several clusters was gathered into one folder.",
    "Examine one cluster at a time.",
)
BROKER_UNKNOWN = FindingType(
    "evidence-broker-unknown",
    Severity.INFO,
    "No broker id can be told for this {what}.",
    "Copies of one partition cannot be told apart by their broker; checks of single files are not affected.",
    "A 0.8 log directory has no `meta.properties`, and no folder above is named like `broker-3`.",
    "Say whose it is: `--broker ID=FOLDER`.",
)
BROKER_DIFFERS = FindingType(
    "evidence-broker-id-differs",
    Severity.INFO,
    "`meta.properties` says broker {stored}, the folder {named}.",
    "The id in `meta.properties` was taken.",
    "A renamed copy, or files of another broker.",
    "Check where the copy is from.",
)
META_PROPERTIES_BAD = FindingType(
    "meta-properties-malformed",
    Severity.ERROR,
    "`meta.properties` cannot be used: {reason}.",
    "The broker refuses to start with it.",
    "A torn write on a full or failing disk, or a hand edit.",
    "Restore it; the id of the broker is in `server.properties`, that of the cluster in znode /cluster/id.",
)
META_PROPERTIES_UNUSUAL = FindingType(
    "meta-properties-unwritten",
    Severity.WARNING,
    "Line {line} of `meta.properties` has characters that no broker writes.",
    "What the line says cannot be relied on. A broker reads it; where the id of the cluster is another than"
    " before, it does not start.",
    "A file damaged on the disk or in the copy, or edited.",
    "Compare it with that of another log directory of this broker.",
)
ZNODES_BAD = FindingType(
    "znode-export-malformed",
    Severity.ERROR,
    "The znode export cannot be used: {reason}.",
    "What it says of leaders, ISRs and settings is not known; verdicts rest on logs and checkpoints alone.",
    "A copy cut short, or a file of another kind under that name.",
    "Export again with `kctl znode export`, or take the bad lines out.",
)
FOREIGN_FOLDER = FindingType(
    "log-dir-foreign-folder",
    Severity.ERROR,
    "A log directory holds the folder {name!r}, which is no topic-partition.",
    "Kafka refuses to start: its log directories should only contain topic data.",
    "`lost+found` of a mount point, a backup copy, or a folder that was made by hand.",
    "Move it out of the log directory.",
)
DUPLICATE_REPLICA = FindingType(
    "log-dir-duplicate-partition",
    Severity.ERROR,
    "{partition} lies in {count} log directories of one broker: {folders}.",
    "Kafka refuses to start with the same partition twice.",
    "A replica moved by hand, or a crash while one was moved between log directories.",
    "Find out which copy is complete (`kctl replica compare`) and move the other away.",
)
