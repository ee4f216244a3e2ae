"""A proxy that does harm: `python -m tests.stores.proxy PORT [raw]` passes on to a server of this machine.

It prints its own port, then takes a list of rules a line, as JSON, and answers with the requests seen since. It is a
process of its own: the client of Google's store holds the interpreter's lock while it waits. What it takes for a request is
one of HTTP, or with `raw` whatever a client sends at once; of that only delays and kills are done.

A rule with `kill` holds a request back until a process is dead: the one of this number, `client`, which
asked, or `executor`, the Java process that started it. The request as seen tells who was killed: ` killed PID`.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
PIECE = 64 << 10


class Head(NamedTuple):
    """A request up to its body; `line` is its method, target and range."""

    text: bytes
    line: str
    length: int


class Harm:
    """The rules, each with how often it still applies, and the requests that were seen."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.rules: list[dict[str, Any]] = []
        self.seen: list[str] = []

    def for_request(self, line: str) -> dict[str, Any]:
        """The first rule that fits, used up by one; none passes on."""
        with self.lock:
            self.seen.append(line)
            for rule in self.rules:
                if rule.get("times", 1 << 30) > 0 and re.search(rule["match"], line, re.DOTALL):
                    rule["times"] = rule.get("times", 1 << 30) - 1
                    return rule
        return {}

    def now(self, rules: list[dict[str, Any]]) -> list[str]:
        """Take other rules; gives the requests seen under the earlier ones."""
        with self.lock:
            seen, self.seen, self.rules = self.seen, [], rules
        return seen


def head_of(client: socket.socket) -> tuple[Head, bytes] | None:
    """The head, and what came of the body with it."""
    data = b""
    while b"\r\n\r\n" not in data:
        more = client.recv(PIECE)
        if not more:
            return None
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    first, *fields = head.decode("latin-1").split("\r\n")
    values = {name.lower(): value for name, _, value in (field.partition(": ") for field in fields)}
    kept = [field for field in fields if not re.match(r"(?i)(connection|expect|proxy-connection):", field)]
    asked = values.get("range") or values.get("x-ms-range") or ""
    text = "\r\n".join([first, *kept, "Connection: close", "", ""]).encode("latin-1")
    method, target, _ = first.split(" ", 2)
    return Head(text, f"{method} {target} {asked}".rstrip(), int(values.get("content-length", 0))), body


def process_of(client: socket.socket) -> int:
    """The process at the other end of a connection of this machine."""
    address, port = client.getpeername()
    local = f"{struct.unpack('<I', socket.inet_aton(address))[0]:08X}:{port:04X}"
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    link = f"socket:[{next(row[9] for row in rows if row[1] == local)}]"
    for descriptor in Path("/proc").glob("[0-9]*/fd/*"):
        with suppress(OSError):
            if str(descriptor.readlink()) == link:
                return int(descriptor.parts[2])
    raise LookupError(f"nobody has {link}")


def java_above(process: int) -> int:
    """The nearest Java among the processes that started this one."""
    while (Path("/proc") / str(process) / "comm").read_text() != "java\n":
        status = (Path("/proc") / str(process) / "stat").read_text()
        process = int(status.rpartition(")")[2].split()[1])
    return process


def kill(rule: dict[str, Any], client: socket.socket, harm: Harm, line: str) -> None:
    """Kill, and note it; who has given its request up stays alive, and the next one that fits is meant."""
    who = rule["kill"]
    try:
        dead = who if isinstance(who, int) else process_of(client)
    except (LookupError, StopIteration):
        with harm.lock:
            rule["times"] += 1
        return
    dead = java_above(dead) if who == "executor" else dead
    with harm.lock:  # who waits for the process may ask at once who was killed
        os.kill(dead, signal.SIGKILL)
        harm.seen.append(f"{line} killed {dead}")
    with suppress(OSError):
        while "Z" not in (Path("/proc") / str(dead) / "stat").read_text().rpartition(")")[2]:
            time.sleep(0.01)


def serve_raw(client: socket.socket, port: int, harm: Harm) -> None:
    """One connection, in whatever protocol."""

    def back() -> None:
        with suppress(OSError):
            while data := upstream.recv(PIECE):
                client.sendall(data)
        with suppress(OSError):
            client.shutdown(socket.SHUT_RDWR)

    with client, socket.create_connection(("127.0.0.1", port)) as upstream:
        threading.Thread(target=back, daemon=True).start()
        while data := client.recv(PIECE):
            line = data.decode("latin-1")
            rule = harm.for_request(line)
            time.sleep(rule.get("delay", 0))
            if "kill" in rule:
                kill(rule, client, harm, line)
            upstream.sendall(data)
        with suppress(OSError):
            upstream.shutdown(socket.SHUT_RDWR)


def serve(client: socket.socket, port: int, harm: Harm) -> None:
    """One connection: one request."""
    with client:
        got = head_of(client)
        if got is None:
            return
        head, body = got
        while len(body) < head.length:
            body += client.recv(PIECE)
        rule = harm.for_request(head.line)
        time.sleep(rule.get("delay", 0))
        if "kill" in rule:
            kill(rule, client, harm, head.line)
        if "run" in rule:  # something happens to the object meanwhile
            subprocess.run(rule["run"], cwd=ROOT, check=True, timeout=120)
        if rule.get("reset"):
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return
        if "status" in rule:
            said = rule.get("body", "").encode()
            said = b"" if head.line.startswith("HEAD") else said
            # Azure's client ends the process where an answer of this type has no body.
            kind = "Content-Type: application/xml\r\n" if said else ""
            fields = f"HTTP/1.1 {rule['status']} No\r\nContent-Length: {len(said)}\r\n{kind}Connection: close\r\n\r\n"
            client.sendall(fields.encode() + said)
            return
        with socket.create_connection(("127.0.0.1", port)) as upstream:
            upstream.sendall(head.text + body)
            left = rule.get("cut", 1 << 62)
            while left and (data := upstream.recv(PIECE)):
                at = data.find(b"\r\n\r\n") + 4 if left == rule.get("cut") else 0
                client.sendall(data[: at + left])
                left = max(0, left - max(0, len(data) - at))
                time.sleep(rule.get("pace", 0))


def main() -> None:
    """Until standard input ends."""
    harm, port = Harm(), int(sys.argv[1])
    serving = serve_raw if sys.argv[2:] == ["raw"] else serve
    listening = socket.create_server(("127.0.0.1", 0), backlog=128)
    print(listening.getsockname()[1], flush=True)

    def accept() -> None:
        while True:
            client, _ = listening.accept()
            threading.Thread(target=quietly, args=(client,), daemon=True).start()

    def quietly(client: socket.socket) -> None:
        try:
            serving(client, port, harm)
        except OSError:  # the client or the server went away
            client.close()

    threading.Thread(target=accept, daemon=True).start()
    for line in sys.stdin:
        print(json.dumps(harm.now(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
