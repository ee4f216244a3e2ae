"""What can be wrong with the journal of changes."""

from kctl.findings import error

JOURNAL_BROKEN = error("""journal-broken
    Change {id}: {reason}.
    The journal does not match the chain of digests recorded when it was written.
    A file of the journal was edited, removed or restored from a copy, or the disk lost it.
    Do not undo or resume this change from the journal; check the state of the cluster.""")
