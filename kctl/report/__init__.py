"""The report of an audit: one self-contained HTML page made from the audit's tables."""
