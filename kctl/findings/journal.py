"""What can be wrong with the journal of changes."""

from kctl.findings import error

JOURNAL_BROKEN = error("""journal-broken
    Change {id}: {reason}.
    The journal does not fit the chain of digests that sealed it as it was written.
    A file of the journal was edited, removed or put back from a copy, or the disk has lost it.
    Do not undo or resume that change by the journal; look at what the cluster says.""")
