"""The partitions, worst first: a picture of their replicas and what is known of each."""

from kctl.audit.tables import Tables
from kctl.report.html import Html


def section(tables: Tables) -> Html | None:
    """Nothing yet where no replicas were compared."""
    return None
