"""What is checked before any load: the stack, the target's address, this machine's limits."""

import ipaddress
import socket
from collections.abc import Mapping
from urllib.parse import urlsplit

import psutil

from spikelab.errors import LabError, UsageError
from spikelab.host_facts import most_users
from spikelab.plans.model import Plan
from spikelab.plans.studies import Variant
from spikelab.runtime import Runtime
from spikelab.stack_settings import load_stack_settings, target_settings_of
from spikelab.target_settings import Value, load_target_declaration

_CONNECT_SECONDS = 5


def require_stack(runtime: Runtime, plan: Plan) -> None:
    """The components that the plan needs are running. Raises LabError naming those that are not."""
    needed = {"prometheus", *plan.components}
    if not plan.foreign_urls:
        needed |= {"target", "sockets"}
    states = {each.name: each.state for each in runtime.status()}
    # One that was left out is stopped. One that has died would leave holes in the run's history.
    if states.get("influxdb", "stopped") != "stopped":
        needed.add("influxdb")
    # One that was started a moment ago has answered its health check, whatever its state is called.
    up = {name for name, state in states.items() if state in ("running", "starting")}
    missing = sorted(needed - up)
    if missing:
        optional = ",".join(sorted(set(missing) & set(plan.components)))
        start = "./lab up" + (f" --with {optional}" if optional else "")
        raise LabError(f"not running: {', '.join(missing)}: start it with {start}")


def require_users(users: int) -> None:
    """This machine can carry so many users. Raises UsageError naming the limit."""
    most, reason = most_users()[0]
    if users > most:
        raise UsageError(
            f"{users:,} users are more than this machine carries: about {most:,} ({reason}); "
            "ask for fewer, or raise the limit (./lab doctor)"
        )


def require_target(url: str, owned: bool) -> None:
    """The target is reachable, and this machine's or the user's own. Raises UsageError."""
    parts = urlsplit(url)
    port = parts.port or {"http": 80, "https": 443}[parts.scheme]
    try:
        host = socket.getaddrinfo(parts.hostname, port, type=socket.SOCK_STREAM)[0][4][0]
    except OSError as error:
        raise UsageError(f"target.url: '{parts.hostname}' is unknown: {error.strerror}") from error
    if not owned and not _of_this_machine(str(host)):
        raise UsageError(
            f"target.url: {parts.hostname} is not this machine: put load only on what is yours, "
            "and say so with --i-own-this-target"
        )
    try:
        socket.create_connection((str(host), port), _CONNECT_SECONDS).close()
    except OSError as error:
        raise UsageError(
            f"target.url: {url} is unreachable ({error.strerror or error}): is it running?"
        ) from error


def _of_this_machine(address: str) -> bool:
    parsed = ipaddress.ip_address(address)
    if parsed.is_loopback or parsed.is_unspecified:
        return True
    own = {each.address for addresses in psutil.net_if_addrs().values() for each in addresses}
    return address in own


def target_settings(
    plan: Plan, variant: Variant | None, given: Mapping[str, str]
) -> dict[str, Value]:
    """Every setting of the lab's own target in this variant's run; none for another target.

    Raises UsageError for a setting that is unknown, out of range or not the lab's to change.
    """
    own = variant.settings if variant else {}
    if plan.foreign_urls:
        # A variant with a url of its own stands beside others on the lab's target.
        others = variant is not None and variant.url is not None
        if own or (not others and (given or plan.target.settings)):
            raise UsageError(
                "target settings apply to the lab's own target, and this plan's is "
                + ", ".join(sorted(plan.foreign_urls))
            )
        return {}
    declaration = load_target_declaration()
    defaults = target_settings_of(load_stack_settings().values, declaration.settings)
    return declaration.resolve(defaults, plan.target.settings, own, given)
