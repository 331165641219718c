"""What a plan says of several runs: presets, variants, sweeps, searches; how long they take."""

from pathlib import Path

import pytest

from spikelab.errors import UsageError
from spikelab.plans.estimate import RUN_OVERHEAD_SECONDS, estimate
from spikelab.plans.load import load_plan, plan_files, plan_of
from spikelab.statistics.pairs import fewest_pairs
from spikelab.statistics.shares import requests_needed

PLAN = """\
name: mine
about: a plan of the test
script: {k6: steady, locust: hello}
parameters:
  rate: {about: how many, default: 200, minimum: 1, maximum: 2000}
  word: {about: a text, default: x}
phases:
  - {name: a, kind: rate, value: "${rate}", duration: 60s}
slo: [p99 < 100ms]
variants:
  - {name: one, set: {word: y}}
  - {name: two, settings: {TOMCAT_MAX_THREADS: 5}}
sweep:
  values: {rate: [100, 400]}
repeats: 3
cool_down: 10s
compare: {primary: p99, at: {rate: 400}}
presets:
  quick: {about: less, set: {rate: 20}}
"""


VARIANTS = PLAN[PLAN.index("variants:") : PLAN.index("sweep:")]


SEARCH = "capacity: {parameter: rate, first: 100, lowest: 50, highest: 1600"


ALL_PRESETS = [
    (name, preset) for name in plan_files() for preset in (None, *load_plan(name).presets)
]


@pytest.fixture
def plan_file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.yaml"
    path.write_text(PLAN)
    return path


def test_a_preset_sets_parameters_before_set_does(plan_file: Path) -> None:
    name = str(plan_file)
    assert load_plan(name, preset="quick").phases[0].value == 20
    assert load_plan(name, ["rate=30"], preset="quick").phases[0].value == 30
    with pytest.raises(UsageError, match=r"unknown preset 'qick' \(did you mean 'quick'\?\)"):
        load_plan(name, preset="qick")
    with pytest.raises(UsageError, match=r"unknown preset 'quick' \(the plan has none\)"):
        load_plan("steady", preset="quick")


def test_a_phase_is_judged_by_its_own_objectives_or_the_plan_s(plan_file: Path) -> None:
    own = ", duration: 60s, slo: [p95 < 3s]}\n  - {name: b, kind: rate, value: 10, duration: 60s}"
    plan_file.write_text(PLAN.replace(", duration: 60s}", own))
    plan = load_plan(str(plan_file))
    assert [[o.text for o in plan.objectives_of(phase)] for phase in plan.phases] == [
        ["p95 < 3s"],
        ["p99 < 100ms"],
    ]


def _with_sweep(path: Path, sweep: str) -> str:
    text = PLAN.replace(VARIANTS, "").replace("  values: {rate: [100, 400]}", f"  {sweep}")
    path.write_text(text.replace("compare: {primary: p99, at: {rate: 400}}\n", ""))
    return str(path)


@pytest.mark.parametrize(
    ("settings", "names"),
    [
        (
            "TOMCAT_MAX_THREADS: [1, 2], TOMCAT_ACCEPT_COUNT: {first: 10, last: 25, step: 10}",
            [f"threads-{threads}-accept-{length}" for threads in (1, 2) for length in (10, 20)],
        ),
        (
            "TOMCAT_MAX_THREADS: [200], TOMCAT_MAX_CONNECTIONS: [8192], TOMCAT_ACCEPT_COUNT: [100]",
            ["threads-200-connections-8192-accept-100"],
        ),
        ("TOMCAT_VIRTUAL_THREADS: [true]", ["virtual-threads-true"]),
        (
            "TOMCAT_CONNECTION_TIMEOUT: [20000], TOMCAT_KEEP_ALIVE_TIMEOUT: [20000], "
            "TOMCAT_MAX_KEEP_ALIVE_REQUESTS: [-1]",
            ["20000-20000--1"],
        ),
    ],
)
def test_a_grid_of_settings_becomes_variants(
    plan_file: Path, settings: str, names: list[str]
) -> None:
    plan = load_plan(_with_sweep(plan_file, f"settings: {{{settings}}}"))
    assert [variant.name for variant in plan.variants] == names
    assert plan.variants[0].settings


def test_more_runs_than_anyone_waits_for_are_refused(plan_file: Path) -> None:
    name = _with_sweep(plan_file, "values: {rate: {first: 1, last: 1000, step: 1}}")
    plan_file.write_text(plan_file.read_text().replace("repeats: 3", "repeats: 11"))
    with pytest.raises(UsageError, match="line 10: sweep: with variants and repeats 11,000 runs"):
        load_plan(name)


def test_first_last_and_step_are_values(plan_file: Path) -> None:
    name = _with_sweep(plan_file, "values: {rate: {first: 200, last: 1000, step: 400}}")
    sweep = load_plan(name).sweep
    assert sweep and sweep.values == {"rate": [200, 600, 1000]}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("word: y", "wort: y", "line 11: variants.0.set.wort: 'wort' is no parameter of the plan "),
        ("word: y", "word: 7", "variants.0.set.word: word=7: must be like x"),
        ("word: y", "word: [y]", "variants.0.set.word: must be a text or a number or true"),
        ("word: y", "rate: 5", "the sweep gives 'rate' its values"),
        ("name: two", "name: one", "line 12: variants.1.name: the name 'one' stands twice"),
        ("MAX_THREADS: 5", "MAX_THREDS: 5", "did you mean 'TOMCAT_MAX_THREADS'?"),
        ("THREADS: 5", "THREADS: 0", "line 12: variants.1.settings.TOMCAT_MAX_THREADS: TOMCAT_"),
        ("[100, 400]", "[100, 4000]", "line 14: sweep.values.rate.1: rate=4000: must be at most"),
        ("[100, 400]", "[400, 400]", "sweep.values.rate.1: 400 stands twice"),
        ("[100, 400]", "[]", "sweep.values.rate: list should have at least 1 item"),
        ("[100, 400]", "{first: 1, last: 9, stop: 1}", "(did you mean 'step'?)"),
        ("[100, 400]", "{first: 1, last: 9e9, step: 1}", "give 1 to 1,000"),
        ("{rate: [100", "{rats: [100", "sweep.values.rats: 'rats' is no parameter of the plan"),
        ("repeats", "  settings: {TOMCAT_ACCEPT_COUNT: [1]}\nrepeats", "leave one of the two out"),
        ("at: {rate: 400}", "at: {word: x}", "'word' is no parameter of the sweep"),
        ("at: {rate: 400}", "at: {rate: 0}", "line 17: compare.at.rate: rate=0: must be at least"),
        ("at: {rate: 400}", "at: {rate: 400, phase: b}", "there is no judged phase 'b'"),
        ("  - {name: two, settings: {TOMCAT_MAX_THREADS: 5}}\n", "", "compared with nothing"),
        ("{rate: 20}", "{rats: 20}", "line 19: presets.quick.set.rats: 'rats' is no parameter"),
        ("{rate: 20}", "{rate: 0}", "presets.quick.set.rate: rate=0: must be at least 1"),
        ("set: {rate: 20}", "sett: {rate: 20}", "'presets.quick.sett' (did you mean 'set'?)"),
        ("p99 < 100ms", "'p99 < ${wort}'", "line 9: '${wort}' names no parameter"),
        ("{k6: steady, locust: hello}", "5", "line 3: script: must be a text or a mapping"),
        ("k6: steady", "k6: spike", "phases.0.kind: the script spike takes the kind users, not"),
        (
            "{k6: steady, locust: hello}",
            "step",
            "line 9: phases.1: the script step runs one phase",
        ),
    ],
)
def test_a_mistake_is_named_where_it_stands(
    plan_file: Path, old: str, new: str, message: str
) -> None:
    text = PLAN.replace(old, new, 1)
    if new == "step":
        second = "60s}\n  - {name: b, kind: rate, value: 5, duration: 60s}"
        text = text.replace("60s}", second, 1)
    plan_file.write_text(text)
    with pytest.raises(UsageError) as error:
        load_plan(str(plan_file))
    assert str(error.value).startswith(f"{plan_file}: line ")
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("rate,", "rats,"), "capacity.parameter: 'rats' is no parameter of the plan (did you"),
        (("rate,", "word,"), "capacity.parameter: 'word' is no number (known: rate)"),
        (("first: 100", "first: 10"), "capacity.first: 10: must be from lowest 50 to highest"),
        (("1600", "2600"), "capacity.highest: rate=2600: must be at most 2,000"),
        (("1600", "1600, precision: 1%"), "precision is at least 0.02"),
    ],
)
def test_a_search_stays_in_its_parameter_s_range(
    plan_file: Path, change: tuple[str, str], message: str
) -> None:
    plan_file.write_text(f"{PLAN}{SEARCH.replace(*change)}}}\n")
    with pytest.raises(UsageError) as error:
        load_plan(str(plan_file))
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("start", "message"),
    [
        ("30s", "phases.1: Locust runs one phase at a time, and a has not ended by then"),
        ("60.5s", "phases.1: less than 1s after a, in which Locust changes its load once"),
    ],
)
def test_what_locust_alone_cannot_run_is_said_before_it_starts(
    plan_file: Path, start: str, message: str
) -> None:
    second = f"60s}}\n  - {{name: b, kind: rate, value: 5, duration: 60s, start: {start}}}"
    plan_file.write_text(PLAN.replace("60s}", second, 1))
    load_plan(str(plan_file))
    with pytest.raises(UsageError) as error:
        load_plan(str(plan_file), driver="locust")
    assert message in str(error.value)


@pytest.mark.parametrize("values", [{"rate": 0}, {"rats": 1}, {"rate": 2.5}])
def test_a_cell_s_values_are_checked_like_any_other(
    plan_file: Path, values: dict[str, float]
) -> None:
    plan = load_plan(str(plan_file))
    assert plan_of(plan, {"rate": 7}).phases[0].value == 7
    with pytest.raises(UsageError):
        plan_of(plan, values)


def test_an_estimate_counts_every_run(plan_file: Path) -> None:
    plan = load_plan(str(plan_file))
    whole = estimate(plan)
    assert whole.runs == 2 * 2 * 3
    assert whole.seconds == pytest.approx(12 * (60 + 10 + RUN_OVERHEAD_SECONDS))
    assert not whole.at_most


@pytest.mark.parametrize(
    ("assignments", "load_seconds", "at_most"),
    [
        ([], 25, False),
        (["users=200", "request.path=/hello?ms=2000"], 2, False),
        (["request.path=/bytes/5"], 300, True),
        (["users=100000"], 300, False),
    ],
)
def test_a_spike_takes_as_many_waves_as_it_has(
    assignments: list[str], load_seconds: float, at_most: bool
) -> None:
    plan = load_plan("tomcat-spike", assignments)
    guess = estimate(plan)
    assert guess.seconds == pytest.approx(load_seconds + RUN_OVERHEAD_SECONDS)
    assert (guess.at_most, guess.runs) == (at_most, 1)
    assert str(guess).startswith("up to") == at_most


def test_an_estimate_of_a_search_is_as_long_as_its_course(plan_file: Path) -> None:
    plan_file.write_text(f"{PLAN}{SEARCH}, overload: {{duration: 30s, recovery: 60s}}}}\n")
    plan = load_plan(str(plan_file))
    guess = estimate(plan)
    assert 10 <= guess.runs <= 20
    steps = guess.runs - 1
    assert guess.seconds == pytest.approx(
        steps * (60 + 10 + RUN_OVERHEAD_SECONDS) + 30 + 60 + RUN_OVERHEAD_SECONDS
    )


@pytest.mark.parametrize(("name", "preset"), ALL_PRESETS)
def test_ready_plans_and_their_presets_load_and_can_be_estimated(
    name: str, preset: str | None
) -> None:
    plan = load_plan(name, preset=preset)
    guess = estimate(plan)
    assert guess.runs >= 1
    if preset == "quick":
        assert guess.seconds <= 15 * 60
    if plan.compare is not None:
        assert "quick" in plan.presets
        assert plan.repeats >= fewest_pairs()
        for key, values in (plan.sweep.values if plan.sweep else {}).items():
            assert plan.compare.at[key] in values


@pytest.mark.parametrize(("name", "preset"), ALL_PRESETS)
def test_a_ready_plan_sends_enough_requests_to_pass(name: str, preset: str | None) -> None:
    """A rate that misses nothing must be able to show it, at the lowest value of its sweep."""
    plan = load_plan(name, preset=preset)
    sweep = plan.sweep.values if plan.sweep else {}
    lowest = plan_of(plan, {key: min(values) for key, values in sweep.items()})
    for phase in lowest.phases:
        rate = lowest.offered_rate(phase)
        if rate is None or not phase.judged:
            continue
        for objective in lowest.objectives_of(phase):
            needed = requests_needed(0, 1, objective.allowed_share)
            assert needed is not None, f"{objective.text} cannot be shown of a rate"
            assert rate * phase.duration_seconds >= needed, (phase.name, objective.text)
