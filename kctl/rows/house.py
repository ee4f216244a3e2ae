"""Rows about kctl itself: what a code means, what is set, what is in order."""

from kctl.rows import RowType

FINDING_TYPE = RowType("""
    finding_type: A row of the table of findings.
    code      string  stable name
    severity  error|warning|info  as a rule; a place may make it milder
    sentence  string  what is said, with the details in braces
    meaning   string  what it says about the data
    cause     string  where it comes from
    action    string  what to do
""")

SETTING = RowType("""
    setting: A setting in force.
    name    string
    value   string?  secrets are not shown
    origin  flag|environment|context|default
""")

CHECK = RowType("""
    check: Something kctl can use on this machine, and whether it is in order.
    name    string
    state   ok|slow|missing|wrong
    detail  string   what was found
    advice  string?  what to do about it
""")

CONTEXT = RowType("""
    context: A named cluster of the file of contexts.
    name        string
    is_default  boolean
    settings    object   its keys; secrets are not shown
    problems    array    what is wrong with it
""")
