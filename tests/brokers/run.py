"""`make cluster`: three brokers of a KRaft cluster on this machine, until Ctrl-C; nothing of it is kept."""

from __future__ import annotations

import argparse
import contextlib
import signal

from tests.brokers.cluster import kraft_cluster


def main() -> None:
    """Start the cluster, print its address, and wait."""
    parser = argparse.ArgumentParser(prog="make cluster")
    parser.add_argument("--kafka", default="4.3", help="a version of the rig, 3.9 or later")
    with kraft_cluster(parser.parse_args().kafka, brokers=3) as c:
        print(f"export KCTL_BOOTSTRAP_SERVER={c.bootstrap}", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            signal.pause()


if __name__ == "__main__":
    main()
