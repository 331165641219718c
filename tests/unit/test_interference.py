"""Load on a run's target that is not the run's: what counts as such, and in whose name."""

from collections.abc import Iterator

import pytest

from spikelab.interference import Interference, other_runs
from spikelab.stores import Prometheus
from tests.support.past_prometheus import at, needs_prometheus, past_prometheus

SECONDS = 60
# The run in question.
BEGIN, END = at(20), at(50)
OURS = "http://127.0.0.1:8080"


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (Interference(1000, 0), None),
        # A page that somebody looks at, and a hundredth of the run.
        (Interference(100, 10), None),
        (Interference(10_000, 100), None),
        (Interference(10_000, 101, {"a": 99}), "a loaded the target as well: it served 101 "),
        (Interference(100, 11), "something that no testid names loaded the target as well"),
        (Interference(100, 30, {"b": 20, "a": 9}), "a, b loaded the target as well"),
        (Interference(100, 30, {"": 30}), "a run without a testid loaded the target as well"),
        # The target that does not count is taken to be the same.
        (Interference(100, None, {"a": 11}), "a loaded the target as well: 11 requests"),
        (Interference(100, None, {"a": 10}), None),
    ],
)
def test_more_than_a_trifle_is_a_reason(found: Interference, reason: str | None) -> None:
    assert (found.reason or "").startswith(reason or "")
    assert (found.reason is None) == (reason is None)


def test_who_did_not_load_the_lab_s_own_target_is_a_warning() -> None:
    assert Interference(100, 0, {"a": 500}).warning == "a ran at the same time, on another target"
    assert Interference(100, 50, {"a": 500}).warning is None
    assert Interference(100, None, {"a": 500}).warning is None
    assert Interference(100, 0).warning is None


def test_requests_that_nobody_answered_may_hide_those_of_others() -> None:
    """The target served 600, as many as were sent in all: 500 of 600 here, and 100 of `a`."""
    hidden = Interference(600, 0, {"a": 100}, unanswered=100)
    assert (hidden.warning or "").startswith("a ran at the same time, perhaps on this target: 100 ")
    # So few hide none.
    assert Interference(600, 0, {"a": 100}, unanswered=10).warning == (
        "a ran at the same time, on another target"
    )


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """Totals as the rules record them: while a run pushes, and 10 s after."""

    def series(testid: str, name: str = "/hello") -> str:
        return f'loadtest:requests:total{{driver="k6", name="{name}", testid="{testid}"}}'

    recorded = {
        # Its own, of two phases.
        series("ours"): lambda s: 10.0 * min(s - 20, 30) if s >= 20 else None,
        series("ours", "/other"): lambda s: 10.0 * min(s - 35, 15) if s >= 35 else None,
        # Ended as ours began; what it pushed last was counted 2 s later, and stays for 10 s.
        series("before"): lambda s: 10.0 * min(s, 22) if s < 32 else None,
        # Goes on all the time.
        series("across"): lambda s: 10.0 * s,
        # Within.
        series("during"): lambda s: 10.0 * min(s - 30, 5) if 30 < s < 45 else None,
        # On other servers, and on ours by its whole URL.
        series("elsewhere", "http://192.0.2.7/x?a=1,2"): lambda s: 10.0 * s,
        series("by-url", f"{OURS}/x"): lambda s: 10.0 * s,
    }
    folder = tmp_path_factory.mktemp("prometheus")
    with past_prometheus(folder, range(SECONDS), recorded) as found:
        yield found


@needs_prometheus
def test_other_runs_are_those_that_sent_something_in_this_one_s_time(
    prometheus: Prometheus,
) -> None:
    assert other_runs(prometheus, "ours", BEGIN, END, {OURS}) == {
        "across": 270,
        "during": 50,
        "by-url": 270,
    }


@needs_prometheus
def test_a_run_that_is_too_short_to_tell_knows_of_none(prometheus: Prometheus) -> None:
    assert other_runs(prometheus, "ours", BEGIN, at(22), {OURS}) == {}
