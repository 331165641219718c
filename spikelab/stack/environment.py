"""The environment of a driver: what it gets of the user's is named here, and nothing else reaches
it. docs/drivers.md says what each variable does."""

import os
from collections.abc import Mapping
from pathlib import Path

from spikelab.errors import UsageError
from spikelab.settings import LOCUST_PROCESSES

# What programs need to run at all; LAB_HOME marks whose they are.
SYSTEM = ("PATH", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "LAB_HOME")
# How Go, in which k6 is written, runs; and how many processes of Locust there are.
TUNING = ("GODEBUG", "GOGC", "GOMAXPROCS", "GOMEMLIMIT", LOCUST_PROCESSES)
# Files: those of containers are mounted.
CERTIFICATES = "SSL_CERT_FILE"
TOKEN = "TOKEN"  # the variable's name
TOKEN_FILE = "TOKEN_FILE"  # likewise
# Read by the lab itself, which tells k6.
DASHBOARD_PORT = "K6_WEB_DASHBOARD_PORT"
# Names of further variables, separated by commas.
ALSO = "LAB_DRIVER_ENV"

DOCUMENTED = (*TUNING, CERTIFICATES, TOKEN, TOKEN_FILE, DASHBOARD_PORT, ALSO)
_OF_DRIVERS = ("K6_", "LOCUST_")


def tuning() -> dict[str, str]:
    """What reaches a driver wherever it runs, as it is set: `TUNING`, and what LAB_DRIVER_ENV
    names. Raises UsageError for a name of the latter that is not set."""
    also = [name.strip() for name in os.environ.get(ALSO, "").split(",") if name.strip()]
    for name in also:
        if name not in os.environ:
            raise UsageError(f"{ALSO}: {name} is not set: set it, or take it out")
    return {name: os.environ[name] for name in (*TUNING, *also) if name in os.environ}


def of_this_machine(home: Path) -> dict[str, str]:
    """The same for a process of this machine, with files by their whole paths. In `home`, a folder
    of the lab's own, it finds no configuration of the user's."""
    system = {name: os.environ[name] for name in SYSTEM if name in os.environ}
    token = {TOKEN: os.environ[TOKEN]} if os.environ.get(TOKEN) else {}
    files = {name: str(file) for name in (CERTIFICATES, TOKEN_FILE) if (file := named_file(name))}
    return {**system, "HOME": str(home), **files, **token, **tuning()}


def named_file(variable: str) -> Path | None:
    """The file that a variable of the user's names, whole: Compose would look for it beside its
    own file, k6 beside its script."""
    named = os.environ.get(variable)
    return Path(named).resolve() if named else None


def ignored(known: Mapping[str, str]) -> list[str]:
    """Variables of drivers that the user has set and that reach none. `known`: those of
    compose/.env, which are not meant for a driver."""
    handed_on = {*DOCUMENTED, *known, *tuning()}
    return sorted(n for n in os.environ if n.startswith(_OF_DRIVERS) and n not in handed_on)
