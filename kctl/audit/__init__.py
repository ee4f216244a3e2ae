"""The audit of a whole cluster's evidence: every check there is, into tables, a summary and a report."""
