"""Where the journal is."""

import os
from collections.abc import Mapping
from pathlib import Path


def journal_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Where the journal is: `KCTL_JOURNAL`, else the XDG state folder."""
    if folder := environ.get("KCTL_JOURNAL"):
        return Path(folder)
    return Path(environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "kctl" / "journal"
