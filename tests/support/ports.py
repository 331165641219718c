"""Free ports for tests with stacks or servers of their own."""

import itertools
import os
import socket

# Port → the turn in which it was given last.
_given: dict[int, int] = {}
_turns = itertools.count(1)


def free_ports(count: int) -> list[int]:
    """Ports below the ephemeral range, so that no client takes one in between.

    Tests that run beside these look elsewhere: theirs are free until they are taken. So are those
    that this process was given before, which are given again last.
    """
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    first = 21000 + worker * 1000 + os.getpid() % 500
    found: list[int] = []
    for port in sorted(range(first, first + 500), key=lambda each: _given.get(each, 0)):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        found.append(port)
        if len(found) == count:
            _given.update(dict.fromkeys(found, next(_turns)))
            return found
    raise AssertionError("no free ports")
