"""The target and its replicas, seen from outside."""

import pytest

from spikelab import target
from spikelab.settings import Endpoints, load_target_declaration
from spikelab.target import TargetView
from tests.unit.http_server import Server

DECLARATION = load_target_declaration()


def exported(**changed: int) -> str:
    values = DECLARATION.resolve(changed)
    lines = [
        f'tomcat_setting{{name="{name}"}} {DECLARATION.settings[name].exported(value)}'
        for name, value in values.items()
    ]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(("threads", "differs"), [(200, False), (100, True)])
def test_a_replica_with_other_settings_differs(server: Server, threads: int, differs: bool) -> None:
    server.text = exported()
    replica = Server()
    replica.text = exported(TOMCAT_MAX_THREADS=threads)
    none = "http://127.0.0.1:1"
    endpoints = Endpoints(
        *(none, server.url, none, none, None, None), replicas=[(replica.url, none)]
    )
    try:
        found = target._differs(TargetView(endpoints), DECLARATION.resolve())
    finally:
        replica.close()
    assert found == differs
