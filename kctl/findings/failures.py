"""What failed in a running broker, by its logs and by what it left on disk."""

from kctl.findings import error, info, warning

BROKER_ENDED = error("""broker-ended
    Broker {broker} ended by itself at {time} ({how}; line {line}): {why}{later}.
    The process halted or could not start. Its partitions have a replica less until it runs again.
    The exception in the line, or in one near it, says it; the sentence above names it.
    Do what the sentence above says, then start the broker. `kctl state-log explain FILE:LINE` shows more.""")
LOG_DIR_FAILED = error("""log-dir-failed
    Log directory {log_dir} of broker {broker} failed at {time}: {why}{later}.
    The broker serves no partition of this directory until it starts again; without another directory it ends. The
        exception decides what it was: few of them mean a failed disk.
    The first exception on this directory, which the sentence above names.
    Remove the cause, then restart the broker. Replace the disk only if the exception says an I/O error.""")
THREAD_DIED = error("""thread-died
    Thread {thread} of broker {broker} died at {time}: {why}. {stops}{later}
    The process goes on without this thread, so that nothing but the log shows it.
    The exception in the line, which the sentence above names.
    Remove the cause and restart the broker.""")
UNCLEANABLE = error("""partition-uncleanable
    Broker {broker} compacts {partition} no more since {time}: {why}{later}.
    The partition grows, and its tombstones stay, until the broker restarts.
    The cleaner failed on this log; the exception says how.
    Examine the folder with `kctl segment verify`, remove the cause, then restart the broker.""")
COMPACTION_STOPPED = warning("""compaction-stopped
    The cleaner of broker {broker} stopped at {time}: it had compacted {partition} up to offset {offset}; {bytes:byte} in {segments:segment} behind {bytes:is|are} not compacted (line {line}: {why}).
    The topic grows, and readers that read it from the start take longer.
    A thread of the cleaner died, and the broker has not started since.
    Remove the cause, then restart the broker; the cleaner goes on from its checkpoint.""")
COMPACTION_STANDS_STILL = warning("""compaction-stands-still
    The cleaner of broker {broker} stood at offset {offset} of {partition} at moment {before} and at moment {after},
        {minutes} minutes later, though {bytes} of {of} bytes in closed segments were behind it at the first and {now} at
        the second: {why}.
    A cleaner looks every 15 seconds for logs of which more than `min.cleanable.dirty.ratio` is not compacted. The topic
        grows, its tombstones stay, and readers that read it from the start take longer.
    A thread of the cleaner that died, a partition that it marked uncleanable, or a transaction that nobody ends.
    End the transaction (`kctl transactions hanging`), or look for `Error due to` in log-cleaner.log and restart the
        broker.""")
TOMBSTONES_KEPT = info("""tombstones-kept
    {partition} of broker {broker} keeps {count:tombstone} of more than two days below offset {offset}, to which it is compacted,
        the first at offset {first} ({time}): {why}.
    Nothing is wrong with the data. A reader from the start of the topic still sees that these keys were deleted.
    A cleaner removes a tombstone in a pass that comes `delete.retention.ms` after the first one over it, and comes only where
        enough is to be compacted, up to the first unstable offset.
    Nothing, if they may stay; otherwise end the transaction (`kctl transactions hanging`), or lower `delete.retention.ms` or
        `min.cleanable.dirty.ratio` of the topic.""")
COMPACTION_BEHIND = warning("""compaction-behind
    {partition} of broker {broker} is compacted up to offset {offset}; {bytes} of the {of} bytes in closed segments lie behind,
        the oldest for more than a day: {why}.
    The topic grows, its tombstones stay, and readers that read it from the start take longer.
    A thread of the cleaner that died, a partition that it marked uncleanable, a transaction that nobody ends, or settings
        (`min.cleanable.dirty.ratio`, `min.compaction.lag.ms`).
    End the transaction (`kctl transactions hanging`), or look for `Error due to` in log-cleaner.log and restart the
        broker.""")
