"""Target settings: declared in target.yml, resolved and checked before anything starts."""

import json
from typing import Any

import pytest

from spikelab import paths
from spikelab.errors import UsageError
from spikelab.settings import TargetDeclaration, as_variables, load_target_declaration

DECLARATION = load_target_declaration()

# The target reads the same table: SettingVectorsTest.java.
TABLE = json.loads((paths.ROOT / "tests" / "data" / "target_settings.json").read_text())
EXAMPLE = TargetDeclaration.model_validate(TABLE["declaration"])


# Which Java runs the target, only the target knows.
@pytest.mark.parametrize("case", [case for case in TABLE["cases"] if case.get("java") != 17])
def test_a_declaration_is_read_as_the_target_reads_it(case: dict[str, Any]) -> None:
    if "refused" in case:
        with pytest.raises(UsageError, match=f"^{case['refused']}="):
            EXAMPLE.resolve(case["given"])
        return
    values = EXAMPLE.resolve(case["given"])
    assert {name: values[name] for name in case["values"]} == case["values"]
    for name, metric in case.get("metrics", {}).items():
        assert EXAMPLE.settings[name].exported(values[name]) == metric, name
    # What the lab hands over, the target reads back.
    assert EXAMPLE.resolve(as_variables(values)) == values


def test_defaults_are_those_of_the_published_spike_ladder() -> None:
    values = DECLARATION.resolve()
    assert values["TOMCAT_MAX_THREADS"] == 200
    assert values["TOMCAT_MAX_CONNECTIONS"] == 8192
    assert values["TOMCAT_ACCEPT_COUNT"] == 100
    assert values["TOMCAT_CONNECTION_TIMEOUT"] == 20_000


def test_later_layers_win_and_empty_values_mean_the_default() -> None:
    values = DECLARATION.resolve(
        {"TOMCAT_MAX_THREADS": "300", "TOMCAT_ACCEPT_COUNT": ""}, {"TOMCAT_MAX_THREADS": 400}
    )
    assert values["TOMCAT_MAX_THREADS"] == 400
    assert values["TOMCAT_ACCEPT_COUNT"] == 100


def test_keep_alive_timeout_follows_connection_timeout_unless_set() -> None:
    follows = DECLARATION.resolve({"TOMCAT_CONNECTION_TIMEOUT": "5000"})
    assert follows["TOMCAT_KEEP_ALIVE_TIMEOUT"] == 5000
    both = {"TOMCAT_CONNECTION_TIMEOUT": "5000", "TOMCAT_KEEP_ALIVE_TIMEOUT": "7000"}
    assert DECLARATION.resolve(both)["TOMCAT_KEEP_ALIVE_TIMEOUT"] == 7000


def test_spare_threads_shrink_with_the_maximum_only_by_default() -> None:
    assert DECLARATION.resolve({"TOMCAT_MAX_THREADS": "1"})["TOMCAT_MIN_SPARE_THREADS"] == 1
    with pytest.raises(UsageError, match="TOMCAT_MIN_SPARE_THREADS=5: may not exceed"):
        DECLARATION.resolve({"TOMCAT_MAX_THREADS": "1", "TOMCAT_MIN_SPARE_THREADS": "5"})


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("TOMCAT_MAX_THREADS", "0", "TOMCAT_MAX_THREADS=0: must be a whole number from 1 to 20000"),
        ("TOMCAT_MAX_THREADS", "many", "must be a whole number"),
        ("TOMCAT_MAX_THREADS", "1.5", "must be a whole number"),
        ("TOMCAT_VIRTUAL_THREADS", "yes", "must be true or false"),
        ("TOMCAT_MAX_KEEP_ALIVE_REQUESTS", "-2", "from -1 to"),
        ("TOMCAT_MAX_THREDS", "5", "(did you mean 'TOMCAT_MAX_THREADS'?)"),
    ],
)
def test_a_wrong_setting_is_one_line(name: str, value: str, message: str) -> None:
    with pytest.raises(UsageError) as error:
        DECLARATION.resolve({name: value})
    assert message in str(error.value)
