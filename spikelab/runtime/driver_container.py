"""A driver in a container of its own, inside the network of the stack."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from spikelab import paths
from spikelab.drivers.locust_processes import LOCUST_PROCESSES
from spikelab.runtime import DriverCommand
from spikelab.runtime.compose import compose_command
from spikelab.runtime.token_file import token_file
from spikelab.stack_settings import load_stack_settings

# Where it finds the folder of its run.
RESULTS = "/results"
_LIVE_FILE = paths.COMPOSE_FILE.with_name("docker-compose.live.yml")
_OWN_TARGET_FILE = paths.COMPOSE_FILE.with_name("docker-compose.own-target.yml")


def driver_container(
    driver: str,
    arguments: Sequence[str],
    env: Mapping[str, str],
    testid: str,
    *,
    overrides: Sequence[Path],
    dashboard_port: int | None,
) -> DriverCommand:
    """The command that runs k6 or Locust, as the user who runs the lab. `overrides`: Compose files
    of the target's build, which may change the driver as well."""
    name = f"spikelab-{driver}-{testid.lower()}"
    env = dict(env)
    options = [
        "--user",
        f"{os.getuid()}:{os.getgid()}",
        "--volume",
        f"{paths.RESULTS / testid}:{RESULTS}",
    ]
    if dashboard_port:
        env["K6_WEB_DASHBOARD_HOST"] = "0.0.0.0"
        options += ["--publish", f"127.0.0.1:{dashboard_port}:{dashboard_port}"]
    if driver == "locust":
        # As on the host, where the user's own environment decides; 0: one process does it all.
        env[LOCUST_PROCESSES] = os.environ.get(LOCUST_PROCESSES, "0")
    token = token_file()
    named = token.get("TOKEN_FILE")
    if named and not Path(named).exists():
        # Nothing to mount. A script that needs it says so, with its name; the others do not care.
        token = {"TOKEN_FILE": ""}
        options += ["--env", f"TOKEN_FILE={named}"]
    options += [word for key in env for word in ("--env", key)]
    return DriverCommand(
        compose_command(
            "--profile",
            driver,
            "run",
            "--rm",
            "--no-TTY",
            "--no-deps",
            "--name",
            name,
            *options,
            driver,
            *arguments,
            files=(*_networks(live=bool(dashboard_port)), *overrides),
        ),
        # The service's own K6_OUT gives way to the outputs on the command line.
        {**env, **token},
        pid_argv=["docker", "inspect", "--format", "{{.State.Pid}}", name],
        remove_argv=["docker", "rm", "--force", name],
    )


def _networks(*, live: bool) -> list[Path]:
    """The files that give a driver more networks: where it has a page, and where its target is not
    one of the lab's."""
    own = load_stack_settings().values.get("OWN_TARGET_ADDRESS")
    return [*([_OWN_TARGET_FILE] if own else []), *([_LIVE_FILE] if live else [])]
