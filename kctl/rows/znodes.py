"""Rows about znodes."""

from kctl.rows import RowType

ZNODE = RowType("""
    znode: A znode. Times are milliseconds; the path is below the chroot.
    path             string
    what             string?  purpose in Kafka; null for a folder or an unknown znode
    size_in_bytes, version
    num_children, czxid, mzxid, ctime, mtime  integer
    ephemeral_owner  string?  the session, in hexadecimal; null for a persistent znode
""")

ZNODE_CONTENT = RowType("""
    znode: A znode and its content.
    path             string
    what             string?  purpose in Kafka; null for a folder or an unknown znode
    size_in_bytes, version
    num_children, czxid, mzxid, ctime, mtime  integer
    ephemeral_owner  string?  the session, in hexadecimal; null for a persistent znode
    written_by       string?
    since            string?  first Kafka release that has it
    meaning          string?
    says             array    its content as sentences
    problem          string?  why Kafka cannot read it
    data             string?  the content as UTF-8, secrets redacted
    data_base64      string?  the content if it is not UTF-8
    is_redacted      boolean
""")

EXPORT = RowType("""
    export: The result of `kctl znode export`.
    file      string
    znodes    integer
    bytes
    redacted  integer  number of znodes without their secrets
""")
