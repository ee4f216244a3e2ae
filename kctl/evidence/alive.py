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
    """The brokers that were registered at each moment; what no export tells is not known. Read when first asked."""

    evidence: FoundEvidence

    @cached_property
    def _by_moment(self) -> dict[str | None, frozenset[int]]:
        found: dict[str | None, frozenset[int]] = {}
        if not self.evidence.znode_exports:
            return found
        from kctl.evidence.znodes import read_znodes

        for export in self.evidence.znode_exports:
            try:
                paths = read_znodes(export.path)
            except KctlError:
                continue  # said elsewhere
            matches = (BROKER.fullmatch(path) for path in paths)
            found[export.moment] = frozenset(int(match[1]) for match in matches if match)
        return found

    def ran(self, broker_id: int | None, moment: str | None) -> bool | None:
        """Whether a broker ran at a moment; None where no znodes say."""
        known = self._by_moment.get(moment)
        return None if known is None else broker_id in known
