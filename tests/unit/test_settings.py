"""Target settings: declared in target.yml, resolved and checked before anything starts."""

import pytest

from spikelab.errors import UsageError
from spikelab.settings import load_target_declaration

DECLARATION = load_target_declaration()


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
