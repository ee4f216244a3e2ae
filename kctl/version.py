"""Which kctl this is."""

__version__ = "0.1.0"
__date__ = "2026-11-22"  # of the version; the manual pages show it
