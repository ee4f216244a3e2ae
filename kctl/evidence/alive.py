"""Which brokers ran while their directories were copied, by the znodes of the same moment.

The files of a running broker are copied one after the other: a checkpoint that was copied last may be ahead of a
log that was copied first. Of a broker that was down it may not.
"""

from __future__ import annotations

import re
from functools import cached_property

from formats.values import Struct
from kctl.errors import KctlError
from kctl.evidence.model import FoundEvidence

BROKER = re.compile(r"/brokers/ids/(\d{1,9})")


class Registered(Struct, dict=True):
    """The brokers that were registered at each moment, by its znode export, which is read when first needed."""

    evidence: FoundEvidence

    @cached_property
    def _by_moment(self) -> dict[str | None, frozenset[int]]:
        brokers_by_moment: dict[str | None, frozenset[int]] = {}
        if not self.evidence.znode_exports:
            return brokers_by_moment
        from kctl.evidence.znodes import read_znodes

        for export in self.evidence.znode_exports:
            try:
                paths = read_znodes(export.path)
            except KctlError:
                continue  # a finding of `discover`
            matches = (BROKER.fullmatch(path) for path in paths)
            brokers_by_moment[export.moment] = frozenset(int(match[1]) for match in matches if match)
        return brokers_by_moment

    def ran(self, broker_id: int | None, moment: str | None) -> bool | None:
        """Whether a broker ran at a moment; None without znodes of that moment."""
        registered = self._by_moment.get(moment)
        return None if registered is None else broker_id in registered
