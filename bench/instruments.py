"""What the target's instruments cost: the lab's target against a bare Tomcat, at full throttle.

The bare one is bench/BareTomcat.java on the target's libraries, JVM and connector settings: one
servlet with the same answer, and nothing that counts or times.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from bench.k6_run import K6Load
from bench.pairs import pairs_parser
from bench.running_lab import running_lab
from bench.throttle import Throttle
from spikelab import paths
from spikelab.settings import load_target_declaration
from spikelab.stack.programs import target_jar
from tests.support.lab import wait_until
from tests.support.ports import free_ports

# Attributes of Tomcat's connector by the target's setting.
_ATTRIBUTES = {
    "TOMCAT_MAX_THREADS": "maxThreads",
    "TOMCAT_MIN_SPARE_THREADS": "minSpareThreads",
    "TOMCAT_MAX_CONNECTIONS": "maxConnections",
    "TOMCAT_ACCEPT_COUNT": "acceptCount",
    "TOMCAT_CONNECTION_TIMEOUT": "connectionTimeout",
    "TOMCAT_KEEP_ALIVE_TIMEOUT": "keepAliveTimeout",
    "TOMCAT_MAX_KEEP_ALIVE_REQUESTS": "maxKeepAliveRequests",
}
_PATH = "/hello?ms=0"


def main() -> int:
    """Returns the exit code: 1 if an answer was wrong or the machine never steady."""
    parser = pairs_parser(__doc__)
    parser.add_argument("--users", type=int, default=50, help="default 50")
    asked = parser.parse_args()
    with running_lab() as endpoints, bare_tomcat() as bare:
        loads = {
            name: K6Load("steady.js", url, _PATH, "users", asked.users)
            for name, url in {"bare": bare, "target": endpoints.target}.items()
        }
        good = Throttle(loads, asked.seconds).measure(asked.pairs)
    return 0 if good else 1


@contextmanager
def bare_tomcat() -> Iterator[str]:
    """Its URL, while it runs."""
    (port,) = free_ports(1)
    home = os.environ.get("JAVA_HOME")
    command = [
        f"{home}/bin/java" if home else "java",
        "-XX:-UsePerfData",
        "-cp",
        str(target_jar().parent / "lib" / "*"),
        str(Path(__file__).parent / "BareTomcat.java"),
        str(port),
        *_attributes(),
    ]
    server = subprocess.Popen(command, cwd=paths.ROOT, stderr=subprocess.DEVNULL)
    try:
        url = f"http://127.0.0.1:{port}"
        wait_until(lambda: _answers(url + _PATH), 60, "the bare Tomcat")
        yield url
    finally:
        server.terminate()
        server.wait()


def _attributes() -> list[str]:
    declaration = load_target_declaration()
    values = declaration.resolve(declaration.given(os.environ))
    return [f"{attribute}={values[name]}" for name, attribute in _ATTRIBUTES.items()]


def _answers(url: str) -> bool:
    try:
        return httpx.get(url).status_code == httpx.codes.OK
    except httpx.TransportError:
        return False


if __name__ == "__main__":
    sys.exit(main())
