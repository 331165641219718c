"""Where things lie. Everything the lab writes is under .lab/ and results/.

LAB_HOME puts the state of a second lab beside the first (the tests do): programs that are built
stay shared, everything else of that lab lies there.
"""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_SHARED = ROOT / ".lab"
BIN = _SHARED / "bin"
BUILD = _SHARED / "build"
VENV = _SHARED / "venv"
LOCUST_VENV = _SHARED / "locust"

_OTHER_HOME = os.environ.get("LAB_HOME")
LAB = Path(_OTHER_HOME).resolve() if _OTHER_HOME else _SHARED
RESULTS = LAB / "results" if _OTHER_HOME else ROOT / "results"
LOGS = LAB / "log"
STATE = LAB / "run"

K6 = ROOT / "k6"
LOCUST = ROOT / "locust"
REQUIREMENTS = ROOT / "requirements"
PLANS = ROOT / "plans"
COMPOSE_FILE = ROOT / "compose" / "docker-compose.yml"
ENV_EXAMPLE = ROOT / "compose" / ".env.example"
ENV_FILE = ROOT / "compose" / ".env"
TARGET = ROOT / "targets" / "spring-tomcat"
SOCKETS_EXPORTER = ROOT / "exporters" / "sockets"
SECRETS_PROGRAM = ROOT / "services" / "secrets"
HOST_TOOLS = ROOT / "host" / "tools"


def shown(path: Path) -> str:
    """The path as a user would type it: relative to where they are, if it lies below."""
    for base in (Path.cwd(), ROOT):
        if path.is_relative_to(base):
            return str(path.relative_to(base))
    return str(path)
