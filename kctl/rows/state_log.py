"""Rows of `kctl state-log`."""

from kctl.rows import RowType, anything, array, boolean, integer, mapping, nullable, string

HOWS = (
    "creation", "controlled_shutdown", "failure", "preferred", "reassignment",
    "unclean", "isr_change", "none", "unknown",
)  # fmt: skip

EVENT = RowType(
    "event",
    "A record of a broker's log.",
    time=nullable(
        string("UTC, ISO 8601 with milliseconds; null for lines before the first record of a file")
    ),
    broker_id=nullable(integer("the broker that wrote it")),
    file=string("relative to the folder given on the command line"),
    line=integer("number of its first line, from 1"),
    level=nullable(string()),
    logger=nullable(string()),
    event=nullable(string("template id, see `kctl state-log explain`; null for a line without template")),
    fields=mapping("what the template names, by type"),
    text=string("the message; then what follows it, such as a stack trace"),
    evidence=nullable(string("the folder given, where several were")),
    logged_time=nullable(
        string("as the line says; `time` is never before the line above by a race of threads")
    ),
)

LEADER = RowType(
    "leader",
    "A leader epoch of a partition: who led, from when, and how it came to be.",
    topic=string(),
    partition=integer(),
    leader=nullable(integer("-1: no leader; null: the logs do not say")),
    leader_epoch=integer(),
    controller_epoch=nullable(integer()),
    isr=nullable(array("as decided at the start of the epoch")),
    isr_changes=array("`{time, isr, file, line}` of each change within the epoch"),
    from_time=string("UTC, ISO 8601"),
    to_time=nullable(string("null: still")),
    how=string("", *HOWS),
    evidence=array("`{file, line, broker_id, event, text}` of what proves it"),
    cause=nullable(string("in words, where the logs say more than `how`")),
    began_before=boolean("it had begun when the logs begin: `from_time` is when it was first seen"),
)

CONTROLLER_TERM = RowType(
    "controller_term",
    "A controller epoch: who was controller, and how the term ended.",
    broker_id=nullable(integer()),
    controller_epoch=nullable(integer()),
    from_time=nullable(string()),
    to_time=nullable(string("null: still, or not said")),
    ended=nullable(string("how it ended: resigned, replaced, stopped")),
    rejections=array("requests of this epoch that brokers rejected as stale"),
    evidence=array(),
)

BROKER_STATE = RowType(
    "broker_state",
    "A change in the life of a broker.",
    broker_id=nullable(integer()),
    time=string(),
    state=string(
        "starting, up, controlled_shutdown, stopping, down, fenced, unfenced, registered, killed, halted"
    ),
    evidence=array(),
)

TEMPLATE = RowType(
    "template",
    "What a log line means.",
    event=nullable(string("template id")),
    text=string("the line that was asked about"),
    level=nullable(string()),
    logger=nullable(string()),
    pattern=nullable(string("the sentence with its fields")),
    versions=nullable(string("Kafka versions that print it")),
    meaning=nullable(string()),
    fields=anything("what the line says, by field"),
    before=array("templates that normally come before it"),
    after=array("templates that normally follow it"),
    sign=nullable(string("what it is a sign of")),
    file=nullable(string()),
    line=nullable(integer()),
)
