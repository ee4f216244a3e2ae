"""What can be wrong with brokers' log files, and serious events that their lines report."""

from kctl.findings import error, info, warning

LOG_GZIP_DAMAGED = warning("""log-compression-damaged
    The compressed log is damaged after {lines:line}: {reason}.
    kctl read every line before the damage; the rest could not be decompressed.
    A copy taken while the file was written, a full disk, or a broken transfer.
    Copy the file again, or look for the same hour in another part of the log.""")
LOG_NOT_TEXT = warning("""log-not-text
    No line in the first {examined} bytes has a layout that kctl knows; the nearest known one is {nearest!r}.
    The file has the name of a broker log, but it is another kind of file or has an unknown layout.
    A binary file under that name, or a custom log4j pattern.
    Give the layout with `--layout` or `--pattern`, or leave the file out.""")
LOG_WITHOUT_DATE = warning("""log-without-date
    Neither its lines ({layout}) nor its name have a date: the log was skipped.
    Lines with a time of day but no date cannot be merged with other logs.
    A pattern with only the time, which is logback's default.
    Add the date of its first line to its name, as in `server.log.2026-11-21`.""")
LOG_DAY_OR_MONTH = warning("""log-day-or-month
    No date at the start of the log, or at the end of one that is not compressed, tells whether the day or the month comes
        first; kctl reads {date!r} with the day first.
    If the month comes first, the times of this log are off by months, and its lines stand at a wrong place among those of
        other logs.
    A pattern with `dd/MM/yyyy` or `MM/dd/yyyy` (or hyphens), and a log of the first twelve days of a month.
    If the month comes first, give the pattern, as in `--pattern '%d{{MM/dd/yyyy HH:mm:ss,SSS}} %p %m (%c)%n'`.""")
LOG_LOGGERS_UNKNOWN = warning("""log-loggers-unknown
    No logger in the first {examined} bytes is one of Kafka's classes: {loggers}.
    kctl recognizes a line by its text and by the class that prints it. Without the class it cannot interpret most lines,
        and the history lacks them.
    A log of another program under that name, or a layout that prints something else instead of the logger.
    Give the layout with `--layout` or `--pattern`, or leave the file out.""")
LOG_CONTAINER_UNKNOWN = info("""log-container-unknown
    The lines of {containers} have no layout that kctl knows; the lines of the other containers were read.
    The file contains the output of several containers; kctl reads each as a separate log.
    A container that does not run a broker, or a custom log4j pattern.
    Nothing, if it is not a broker; otherwise give the layout with `--layout` or `--pattern`.""")
LOG_BROKER_BY_NAME = info("""log-broker-by-name
    No line names its broker; the lines of {name!r} count as those of broker {broker}.
    kctl takes the broker from the name of the pod, container or host that printed the lines. Their rows have the name in
        `broker_by_name`.
    Few kinds of lines name the broker that writes them.
    If it is another broker, give its id with `--broker ID=NAME`.""")
LOG_BROKER_NAME_UNCLEAR = info("""log-broker-name-unclear
    No line names its broker, and the name {name!r} does not tell it: {reason}.
    The lines are read, and count as those of no broker. Two brokers are never taken for one because of a name.
    Names that Docker Compose numbers, an operator that adds a number to that of the pod, or pods of two clusters.
    Give the id with `--broker ID=NAME`.""")
LOG_BROKER_NAME_DIFFERS = info("""log-broker-name-differs
    The lines of {name!r} are of broker {broker} by {what}.
    kctl does not use the number in the name.
    An operator that adds a number to that of the pod, a renamed folder, or an export of another broker.
    Nothing, if the id is right; otherwise give it with `--broker ID=NAME`.""")
LOG_UNREADABLE = warning("""log-unreadable
    The log could not be read: {reason}.
    Its lines are missing from the merge and from every conclusion.
    Missing permissions, a failing disk, or a file that was removed while it was copied.
    Make it readable and run the command again.""")
LOG_EMPTY = info("""log-empty
    The log is empty.
    Normal for controller.log of a broker that was never controller, and right after a rotation.
    The broker wrote nothing to it.
    Nothing, unless other parts of this log should be there and are not.""")
LOG_GIVEN_TWICE = info("""log-given-twice
    The same file was given twice; it was read once ({first}).
    Both names lead to one file.
    Overlapping arguments, or a link.
    Nothing.""")
LOG_OVERLAP = info("""log-overlap
    {lines:line} {lines:was|were} already in another copy of this log and {lines:was|were} skipped.
    Copies of one log overlap: they have the same number of the same lines at the same times.
    Copies taken before and after a rotation, or the captured standard output of the broker.
    Nothing.""")
LOG_CLOCK_BACK = info("""log-clock-back
    The clock goes back by {seconds:.1f} s at line {line}.
    The following lines have earlier times than the lines before; they keep their order in the file.
    The clock was corrected, or daylight saving time ended and the broker's zone was not given.
    If the broker's zone observes daylight saving time, give it with `--time-zone`.""")
LOG_OF_ANOTHER_SYSTEM = info("""log-of-another-system
    The log is of {system}, which speaks Kafka's protocol but is not Apache Kafka.
    Its brokers, logs and files can differ from those of Apache Kafka.
    A cluster of another system, or a migrated cluster.
    Use the tools of that system.""")
LOG_YEAR_UNLIKELY = warning("""log-year-unlikely
    Line {line} has a date in the year {year}.
    kctl converts years of the Buddhist calendar. Other lines dated before 2011 or after next year get the time of the
        line before.
    A host without a clock that starts in 1970, a wrong clock, or a Thai locale.
    Check the clock and the locale of the broker's host.""")
LOG_ZONE_CHANGED = info("""log-zone-changed
    The time zone of broker {broker} changed from {before} to {after} between two of its starts (line {line}).
    kctl reads times between the two starts in the zone of the earlier start.
    Daylight saving time, or a broker moved to a host with another zone.
    Give the broker's zone with `--time-zone ID=ZONE` so that each line is read with its own offset.""")
LOG_ZONE_ESTIMATED = info("""log-zone-estimated
    {pairs:pair} of lines {pairs:shows|show} that the times of broker {broker} differ by {offset} from those of broker {reference}:
        it logs in another time zone. kctl converted its times.
    Brokers before 2.3 print no line with their time zone; kctl compares when requests were sent and received.
    Brokers that log in different time zones.
    If times must be exact to the hour, give each broker's zone with `--time-zone ID=ZONE`.""")
LOG_CLOCK_OFF = info("""log-clock-off
    {pairs:pair} of lines {pairs:shows|show} that the clock of broker {broker} is about {seconds:.1f} s {side} that of broker
        {reference}. kctl corrected its times.
    Rows of what this broker printed name the correction in `clock_offset_ms`; its lines still have the times of its clock.
    The host's clock is not synchronized.
    Check NTP on the broker's host. Message timestamps that it set are wrong by as much.""")
LOG_CLOCK_DOUBTFUL = info("""log-clock-doubtful
    The times of broker {broker} cannot be compared with those of other brokers: {reason}.
    Its time zone and clock skew are unknown, so kctl calls no election unclean based on the order of times.
    The zone or the clock changed in these logs, or the logs have too few lines in common.
    Give each broker's zone with `--time-zone ID=ZONE`.""")
LOG_LEVEL_TOO_HIGH = info("""log-level-hides-transitions
    The state-change log of broker {broker} has no TRACE line.
    The default level since 2.6 is INFO: the log does not show when a partition went offline or what each request held.
    The default level of Kafka since 2.6 (KAFKA-8470).
    A missing transition proves nothing. Set `state.change.logger` to TRACE before the next incident.""")
UNCLEAN_LEADER_ELECTION = error("""unclean-leader-election
    Broker {leader} was elected leader of {partition} in {epoch} {why} ({where}).
    The new leader may lack records that the ISR had; consumers no longer get these records.
    unclean.leader.election.enable, or an operator's unclean election, after all in-sync replicas failed. From 4.0 the last
        known leader is elected even if unclean elections are off (KIP-966).
    Run `kctl replica loss` on copies of the log directories to see which offsets are lost and which brokers still have
        them.""")
LAST_OF_ISR_ELECTED = info("""last-of-isr-elected
    The controller warned of data loss when it elected broker {leader} leader of {partition}, but that broker was the last
        member of the ISR ({where}).
    Until 1.0 the ISR of a partition without a leader is empty, so the controller warns whichever broker comes back.
        By the leaderships in these logs, no record of the ISR was dropped.
    The last broker of the ISR stopped or failed, and came back.
    Nothing, unless that broker lost power or its disk was replaced: then run `kctl replica loss`.""")
ISR_BELOW_MINIMUM = warning("""isr-below-minimum
    The ISR of {partition} shrank to [{isr}], below min.insync.replicas {minimum} ({where}).
    Producers with acks=all were refused until the ISR grew again; other records were on too few replicas.
    Replicas that were down or fell behind replica.lag.time.max.ms.
    Check the brokers that left the ISR.""")
STALE_CONTROLLER = info("""stale-controller-request
    Broker {broker} rejected a request of controller {controller} with epoch {epoch}; it knew epoch {known} (line
        {line}).
    A replaced controller still sent requests because it did not know about its successor yet.
    A long pause or a lost ZooKeeper session of the old controller.
    Look for the pause (garbage collection, a frozen host) in the old controller's logs.""")
ZOMBIE_LEADER_WRITE = warning("""zombie-leader-write
    Broker {broker} acted as leader of {partition} after it was replaced: {what} (line {line}).
    The cluster had a newer leader; writes that this broker acknowledged in that time may have been truncated.
    A paused or partitioned broker that continued before it learned of its successor.
    Compare the replicas with `kctl replica compare`.""")
COMMITTED_TRUNCATED = warning("""truncated-below-high-watermark
    Broker {broker} truncated {partition} to offset {offset}, below its high watermark {high_watermark} (line {line}).
    This replica dropped committed records.
    An unclean election, or a leader that lost its tail.
    Run `kctl replica loss` to see which offsets are lost and which brokers still have them.""")
