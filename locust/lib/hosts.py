"""The addresses of targets with a name, as the lab has looked them up and checked them."""

import socket
from collections.abc import Callable, Mapping
from typing import Any

import gevent.socket

_Found = list[tuple[Any, ...]]


def pin(hosts: Mapping[str, str]) -> None:
    """From here on this process takes the address of `name:port` from here. TLS still asks for, and
    checks, the name."""
    if not hosts:
        return
    look_up: Callable[..., _Found] = gevent.socket.getaddrinfo

    def getaddrinfo(host: Any, port: Any, family: int = 0, *others: Any, **named: Any) -> _Found:
        address = hosts.get(f"{host}:{port}".lower())
        if address is None:
            return look_up(host, port, family, *others, **named)
        # The one that was checked, whichever family was asked for.
        return look_up(address, port, 0, *others, **named)

    for module in (socket, gevent.socket):
        setattr(module, "getaddrinfo", getaddrinfo)  # noqa: B010
