"""Rows about kctl itself: finding types, settings, checks of this machine, contexts."""

from kctl.rows import RowType

FINDING_TYPE = RowType("""
    finding_type: A row of the table of findings.
    code      string  stable name
    severity  error|warning|info  default; some places lower it
    sentence  string  the message, with details in braces
    meaning   string  what it means for the data
    cause     string  possible causes
    action    string  what to do
""")

SETTING = RowType("""
    setting: A setting in force.
    name    string
    value   string?  secrets are not shown
    origin  flag|environment|context|default
""")

CHECK = RowType("""
    check: A requirement of kctl on this machine, and whether it is met.
    name    string
    state   ok|slow|missing|wrong
    detail  string   what was found
    advice  string?  what to do about it
""")

ANSWER = RowType("""
    answer: A question that people ask, and the commands that answer it.
    question     string
    also_called  array    other words for it
    commands     array    `{command, shows}`
    runbook      string?  the page with the steps
""")

CONTEXT = RowType("""
    context: A named cluster of the file of contexts.
    name        string
    is_default  boolean
    settings    object   its keys; secrets are not shown
    problems    array    problems of the context
""")
