"""What can be wrong with brokers' log files, and what they say that nobody should overlook."""

from kctl.findings import error, info, warning

LOG_GZIP_DAMAGED = warning("""log-compression-damaged
    The compressed log ends or breaks after {lines} lines: {reason}.
    The rest could not be decompressed; every line before it was read.
    A copy taken while the file was written, a full disk, or a broken transfer.
    Copy the file again, or look for the same hour in another part of the log.""")
LOG_NOT_TEXT = warning("""log-not-text
    No line in the first {examined} bytes has a layout that kctl knows; the nearest known one is {nearest!r}.
    Its name is that of a broker's log, its content is not, or its layout is one that kctl does not know.
    A binary file under that name, or a log4j pattern of your own.
    Give the layout with `--layout` or `--pattern`, or leave the file out.""")
LOG_WITHOUT_DATE = warning("""log-without-date
    Its lines ({layout}) say the time of day and no date, nor does its name: it was left out.
    Without a day its lines cannot be placed beside those of other logs, nor beside each other's days.
    A pattern with the time alone, which is logback's default.
    Put the day of its first line into its name, as in `server.log.2026-11-21`.""")
LOG_LOGGERS_UNKNOWN = warning("""log-loggers-unknown
    No logger in the first {examined} bytes is one of Kafka's classes: {loggers}.
    Lines are known by what they say and by the class that says it; without it most of them say nothing, so that the
        history leaves them out.
    A log of another program under that name, or a layout that prints something else in the place of the logger.
    Give the layout with `--layout` or `--pattern`, or leave the file out.""")
LOG_CONTAINER_UNKNOWN = info("""log-container-unknown
    The lines of {containers} have no layout that kctl knows; those of the other containers were read.
    The file holds what several containers printed; each is read as a log of its own.
    A container that runs something other than a broker, or a log4j pattern of your own.
    Nothing where it is no broker; else give the layout with `--layout` or `--pattern`.""")
LOG_UNREADABLE = warning("""log-unreadable
    The log could not be read: {reason}.
    Its lines are missing from the merge and from every conclusion.
    Missing permissions, a failing disk, or a file that went away while it was copied.
    Make it readable and run again.""")
LOG_EMPTY = info("""log-empty
    The log is empty.
    Normal for controller.log of a broker that never was controller, and right after a rotation.
    Nothing was printed to it.
    Nothing, unless other parts of this log should be there and are not.""")
LOG_GIVEN_TWICE = info("""log-given-twice
    The same file was given twice; it was read once ({first}).
    Both names lead to one file.
    Overlapping arguments, or a link.
    Nothing.""")
LOG_OVERLAP = info("""log-overlap
    {lines} lines were already in another copy of this log and were left out.
    Copies of one log overlap: the same lines, in the same number, at the same times.
    A copy taken before a rotation beside one taken after it, or the captured standard output of the broker.
    Nothing.""")
LOG_CLOCK_BACK = info("""log-clock-back
    The clock goes back by {seconds:.1f} s at line {line}.
    Lines after it carry times that were passed before; they keep their place in the file.
    A corrected clock, or the end of daylight saving time where the zone of the broker was not given.
    Give the broker's zone with `--time-zone` where it observes daylight saving time.""")
LOG_OF_ANOTHER_SYSTEM = info("""log-of-another-system
    The log is that of {system}, which speaks Kafka's protocol and is not Apache Kafka.
    What holds for Kafka's brokers, their logs and their files, need not hold for it.
    A cluster of another system, or one that was migrated.
    Use the tools of that system.""")
LOG_YEAR_UNLIKELY = warning("""log-year-unlikely
    Line {line} says that it was written in the year {year}.
    Years of the Buddhist calendar are read as such; other lines of years before 2011 or after next year have the time
        of the line before.
    A host without a clock that starts in 1970, a wrong clock, or a Thai locale.
    Check the clock and the locale of the broker's host.""")
LOG_ZONE_CHANGED = info("""log-zone-changed
    The zone of broker {broker} changed from {before} to {after} between two of its starts (line {line}).
    Times between the two starts are read with the zone of the earlier one.
    Daylight saving time, or a broker moved to a host with another zone.
    Give the broker's zone with `--time-zone ID=ZONE` so that each line is read with its own offset.""")
LOG_ZONE_ESTIMATED = info("""log-zone-estimated
    By {pairs} pairs of lines the times of broker {broker} are {offset} against those of broker {reference}: it logs in
        another zone. kctl converted its times.
    Brokers before 2.3 print no line that tells their zone; requests that were sent and received tell how they differ.
    Brokers that log in different zones.
    Give each broker's zone with `--time-zone ID=ZONE` where times must be right to the hour.""")
LOG_CLOCK_DOUBTFUL = info("""log-clock-doubtful
    The times of broker {broker} cannot be compared with those of other brokers: {reason}.
    Nothing tells its zone or how far its clock is off, so no election is called unclean by the order of times.
    A zone that changed in these logs, a clock that was set, or logs with too few lines in common.
    Give each broker's zone with `--time-zone ID=ZONE`.""")
LOG_LEVEL_TOO_HIGH = info("""log-level-hides-transitions
    The state-change log of broker {broker} has no TRACE line.
    From 2.6 the shipped level is INFO: that a partition went offline, and what each request held, is not said.
    The level that Kafka ships since 2.6 (KAFKA-8470).
    Do not take the absence of a transition for proof. Set `state.change.logger` to TRACE before the next incident.""")
UNCLEAN_LEADER_ELECTION = error("""unclean-leader-election
    Broker {leader} was elected leader of {partition} in {epoch} though it was not in the ISR [{isr}] ({where}).
    The new leader may lack records that the ISR had; what it lacks is gone for consumers.
    unclean.leader.election.enable, or an operator's unclean election, after every replica in sync was lost.
    Run `kctl replica loss` on the copied log directories to see which offsets are gone and who still has them.""")
LAST_OF_ISR_ELECTED = info("""last-of-isr-elected
    The controller warned of lost data as it elected broker {leader} leader of {partition}; that broker was the last of
        the ISR ({where}).
    Until 1.0 the ISR of a partition without a leader is empty, so that the controller warns whoever comes back. By the
        leaderships in these logs no record in the ISR was given up.
    The last broker of the ISR stopped or failed, and came back.
    Nothing, unless that broker's disk was replaced or it lost power: then run `kctl replica loss`.""")
ISR_BELOW_MINIMUM = warning("""isr-below-minimum
    The ISR of {partition} shrank to [{isr}], below min.insync.replicas {minimum} ({where}).
    Producers with acks=all were refused until it grew again; others were served by too few replicas.
    Replicas that were down or fell behind replica.lag.time.max.ms.
    Look at the brokers that left the ISR.""")
STALE_CONTROLLER = info("""stale-controller-request
    Broker {broker} rejected a request of controller {controller} with epoch {epoch}; it knew epoch {known} (line
        {line}).
    A controller that had been replaced was still sending requests: it did not know yet.
    A long pause or a lost ZooKeeper session of the old controller.
    Look for the pause (garbage collection, a frozen host) in the old controller's logs.""")
ZOMBIE_LEADER_WRITE = warning("""zombie-leader-write
    Broker {broker} acted as leader of {partition} after it was replaced: {what} (line {line}).
    The cluster had a newer leader; a write that this broker acknowledged in that time may have been cut away.
    A paused or partitioned broker that went on before it heard of its successor.
    Compare the replicas with `kctl replica compare`.""")
COMMITTED_TRUNCATED = warning("""truncated-below-high-watermark
    Broker {broker} cut {partition} back to offset {offset}, below its high watermark {high_watermark} (line {line}).
    Records that were committed were dropped from this replica.
    An unclean election, or a leader that lost its tail.
    Run `kctl replica loss` to see which offsets are gone and who still has them.""")
