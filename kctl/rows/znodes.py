"""Rows about znodes."""

from kctl.rows import RowType, array, boolean, integer, nullable, string

ZNODE = RowType(
    "znode",
    "A znode. Times are milliseconds; the path is below the chroot.",
    path=string(),
    what=nullable(string("what Kafka uses it for; null for a folder or a stranger")),
    size_in_bytes=integer(),
    version=integer(),
    num_children=integer(),
    czxid=integer(),
    mzxid=integer(),
    ctime=integer(),
    mtime=integer(),
    ephemeral_owner=nullable(string("the session, in hexadecimal; null for a persistent znode")),
)

ZNODE_CONTENT = RowType(
    "znode",
    "A znode and what it says.",
    path=string(),
    what=nullable(string("what Kafka uses it for; null for a folder or a stranger")),
    size_in_bytes=integer(),
    version=integer(),
    num_children=integer(),
    czxid=integer(),
    mzxid=integer(),
    ctime=integer(),
    mtime=integer(),
    ephemeral_owner=nullable(string("the session, in hexadecimal; null for a persistent znode")),
    written_by=nullable(string()),
    since=nullable(string("the first Kafka release that has it")),
    meaning=nullable(string()),
    says=array("its content in sentences"),
    problem=nullable(string("why Kafka could not read it")),
    data=nullable(string("the content as UTF-8, secrets redacted")),
    data_base64=nullable(string("the content where it is not UTF-8")),
    is_redacted=boolean(),
)

EXPORT = RowType(
    "export",
    "What `kctl znode export` wrote.",
    file=string(),
    znodes=integer(),
    bytes=integer(),
    redacted=integer("znodes whose secrets were left out"),
)
