"""A network of namespaces, in which brokers can be cut off from each other; needs root and `ip` (iproute2).

with network() as net:
    ... cluster("2.8", network=net): broker N is at net.host(N), and its quorum's listener at net.host(N, QUORUM)
    net.cut(1, [net.host(2)], 2); net.mend(1)
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tests.brokers.processes import NOBODY, Place

CLIENTS, QUORUM = 0, 1  # which of a node's two addresses
OUTSIDE = 254  # the number of the machine itself
ZOOKEEPER = 200


def why_not() -> str | None:
    """What this machine lacks; None where it can do this."""
    if os.geteuid():
        return "namespaces of the network need root"
    return None if shutil.which("ip") else "no ip on the PATH (Debian: iproute2)"


def ip(*args: object, namespace: str = "", check: bool = True) -> None:
    """Run `ip`, in a namespace where one is named."""
    within = ("-n", namespace) if namespace else ()
    ran = subprocess.run(
        ["ip", *within, *map(str, args)], capture_output=True, text=True, check=False, stdin=NOBODY
    )
    if check and ran.returncode:
        raise AssertionError(f"ip {' '.join(map(str, args))}: {ran.stderr}")


@dataclass
class Network:
    """Namespaces on one bridge, a node each; `number` tells this network from others of the machine."""

    number: int
    nodes: set[int] = field(default_factory=set)
    routes: dict[int, list[tuple[int, str]]] = field(default_factory=dict)  # of who is cut off: node, address

    @property
    def bridge(self) -> str:
        return f"kctl{self.number}"

    def host(self, node: int, which: int = CLIENTS) -> str:
        """An address of a node."""
        return f"10.{self.number}.{which}.{node}"

    def place(self, node: int) -> Place:
        """Where to run a node's process, which has a namespace of its own from then on."""
        name = f"kctl{self.number}-{node}"
        if node not in self.nodes:
            self.nodes.add(node)
            ip("netns", "add", name)
            ip("link", "add", f"k{self.number}n{node}", "type", "veth", "peer", "name", "eth0", "netns", name)
            ip("link", "set", f"k{self.number}n{node}", "master", self.bridge, "up")
            for which in (CLIENTS, QUORUM):
                ip("addr", "add", f"{self.host(node, which)}/16", "dev", "eth0", namespace=name)
            ip("link", "set", "eth0", "up", namespace=name)
            ip("link", "set", "lo", "up", namespace=name)
        return Place(self.host(node), ("ip", "netns", "exec", name))

    def cut(self, node: int, peers: Sequence[int], which: Sequence[int]) -> None:
        """No packet goes any more between a node and these addresses of the peers, or back to those of its own."""
        for at, towards in [*((node, peer) for peer in peers), *((peer, node) for peer in peers)]:
            for address in (self.host(towards, number) for number in which):
                ip("route", "replace", "blackhole", address, namespace=f"kctl{self.number}-{at}")
                self.routes.setdefault(node, []).append((at, address))

    def mend(self, node: int) -> None:
        """What `cut` cut off goes again."""
        for at, address in set(self.routes.pop(node, ())):
            if not any((at, address) in others for others in self.routes.values()):
                ip("route", "del", "blackhole", address, namespace=f"kctl{self.number}-{at}", check=False)

    def close(self) -> None:
        """Take all of it away."""
        for node in self.nodes:
            ip("netns", "del", f"kctl{self.number}-{node}", check=False)
        ip("link", "del", self.bridge, check=False)


@contextlib.contextmanager
def network() -> Iterator[Network]:
    """A network, removed with the block."""
    for number in random.sample(range(100, 250), 20):
        made = Network(number)
        with contextlib.suppress(AssertionError):
            ip("link", "add", made.bridge, "type", "bridge")
            break
    else:
        raise AssertionError("no network of this machine is free")
    try:
        ip("addr", "add", f"{made.host(OUTSIDE)}/16", "dev", made.bridge)
        ip("link", "set", made.bridge, "up")
        yield made
    finally:
        made.close()
