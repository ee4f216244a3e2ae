"""Rows about znodes."""

from kctl.rows import RowType

ZNODE = RowType("""
    znode: A znode. Times are milliseconds; the path is below the chroot.
    path             string
    what             string?  what Kafka uses it for; null for a folder or a stranger
    size_in_bytes, version
    num_children, czxid, mzxid, ctime, mtime  integer
    ephemeral_owner  string?  the session, in hexadecimal; null for a persistent znode
""")

ZNODE_CONTENT = RowType("""
    znode: A znode and what it says.
    path             string
    what             string?  what Kafka uses it for; null for a folder or a stranger
    size_in_bytes, version
    num_children, czxid, mzxid, ctime, mtime  integer
    ephemeral_owner  string?  the session, in hexadecimal; null for a persistent znode
    written_by       string?
    since            string?  the first Kafka release that has it
    meaning          string?
    says             array    its content in sentences
    problem          string?  why Kafka could not read it
    data             string?  the content as UTF-8, secrets redacted
    data_base64      string?  the content where it is not UTF-8
    is_redacted      boolean
""")

EXPORT = RowType("""
    export: What `kctl znode export` wrote.
    file      string
    znodes    integer
    bytes
    redacted  integer  znodes whose secrets were left out
""")
