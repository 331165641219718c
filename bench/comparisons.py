"""How often `./lab compare` is right on the real stack: A/A of identical arms, A/B with 10 % more
service time, one design and margin for both, mixed in time. Going on is the same command again."""

import math
import sys
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from time import monotonic

from scipy.stats import binom

from bench.running_lab import running_lab
from spikelab import paths
from spikelab.comparison.experiment import (
    compare_identical_arms,
    compare_variants,
    identical_arms,
    new_comparison,
    run_comparison,
)
from spikelab.comparison.verdict import ComparisonQuestion
from spikelab.experiments.session import digest
from spikelab.experiments.sweep import run_cells
from spikelab.plans.load import changed, load_plan
from spikelab.plans.model import Plan
from spikelab.results.comparison import ComparisonRecord, MetricName, Noise
from spikelab.results.experiment import ExperimentState
from spikelab.run import RunOptions
from spikelab.stack import current
from spikelab.statistics.pairs import Answer, chances
from spikelab.units import show_duration

_PLAN = str(paths.ROOT / "bench" / "comparisons.yaml")
_SERVICE_MS = 20
_SLOWER_MS = 22
# So many of the equal ones may be called different, so many of the others must be found.
_MOST_FALSE_SHARE = 5 / 60
_FEWEST_EQUIVALENT_SHARE = 0.5
_FEWEST_FOUND_SHARE = 16 / 20
_LABEL = "bench"
_ANSWERS: tuple[Answer, ...] = ("better", "worse", "equivalent", "inconclusive")


@dataclass(frozen=True)
class Trial:
    """One comparison: `slower` says whether B's service time is longer."""

    name: str
    slower: bool
    pairs: int

    @property
    def plan(self) -> Plan:
        ms = _SLOWER_MS if self.slower else _SERVICE_MS
        variants = [{"name": "a"}, {"name": "b", "set": {"ms": ms}}]
        return changed(load_plan(_PLAN), variants=variants, repeats=self.pairs)

    @property
    def options(self) -> RunOptions:
        return RunOptions(labels={_LABEL: self.name})

    @property
    def question(self) -> ComparisonQuestion:
        return ComparisonQuestion.of(self.plan.compare)

    def state(self) -> ExperimentState | None:
        """Of an earlier start of this bench with the same design."""
        wanted = digest("comparison", self.plan, self.options)
        return next((state for state in ExperimentState.read_all() if state.digest == wanted), None)

    def run(self) -> ComparisonRecord:
        """Runs what is not done, and judges."""
        question, state = self.question, self.state()
        if state is None or state.state != "finished":
            new = new_comparison(self.plan, self.options, question)
            experiment = new.resumed() or new
            state = experiment.state
            with experiment.session(current()) as session:
                run_comparison(session, question)
        return self.judged(state, question)

    def judged(self, state: ExperimentState, question: ComparisonQuestion) -> ComparisonRecord:
        return compare_variants(state, self.plan, question)[0]


def trials(equal: int, slower: int, pairs: int) -> list[Trial]:
    """Both kinds spread evenly, so that an hour's drift meets both."""
    places = [(number / equal, False, number) for number in range(equal)]
    places += [((number + 0.5) / slower, True, number) for number in range(slower)]
    return [
        Trial(f"{'ab' if is_slower else 'aa'}-{number + 1}", is_slower, pairs)
        for _, is_slower, number in sorted(places)
    ]


def run_all(asked: Sequence[Trial]) -> Iterator[ComparisonRecord]:
    """Each trial's comparison, with the time that is left."""
    began, ran = monotonic(), 0
    done = [trial.state() for trial in asked]
    left = sum(state is None or state.state != "finished" for state in done)
    print(f"{len(asked)} comparisons, {left} of them to be run", flush=True)
    for number, (trial, state) in enumerate(zip(asked, done, strict=True), 1):
        record = trial.run()
        assert record.deciding is not None
        line = f"{number:>3} {trial.name:<6} {record.confidence}"
        if state is None or state.state != "finished":
            ran += 1
            rest = (monotonic() - began) / ran * (left - ran)
            line += f", about {show_duration(rest)} left"
        print(line, flush=True)
        yield record


def show(asked: Sequence[Trial]) -> bool:
    """The verdicts by metric; whether the primary one's are as they should be.

    The others are judged as if each had been the primary one.
    """
    question = asked[0].question
    states = [(trial, state) for trial in asked if (state := trial.state()) is not None]
    found: dict[tuple[MetricName, bool], Counter[Answer]] = {}
    for metric in question.all_metrics:
        alone = replace(question, primary=metric, metrics=[])
        for trial, state in states:
            verdict = trial.judged(state, alone).verdict
            assert verdict is not None
            found.setdefault((metric, trial.slower), Counter())[verdict] += 1
    print("\nmetric      arms        " + "".join(f"{answer:>14}" for answer in _ANSWERS))
    for (metric, is_slower), counts in found.items():
        arms = "B slower" if is_slower else "identical"
        print(f"{metric:<12}{arms:<12}" + "".join(f"{counts[answer]:>14}" for answer in _ANSWERS))
    primary = question.primary
    return good(found.get((primary, False), Counter()), found.get((primary, True), Counter()))


def good(equal: Counter[Answer], slower: Counter[Answer]) -> bool:
    """Few false differences, enough equivalences, enough found and none the wrong way."""
    return (
        equal["better"] + equal["worse"] <= _MOST_FALSE_SHARE * equal.total()
        and equal["equivalent"] >= _FEWEST_EQUIVALENT_SHARE * equal.total()
        and slower["worse"] >= _FEWEST_FOUND_SHARE * slower.total()
        and not slower["better"]
    )


def pilot(pairs: int, equal: int, slower: int, later: int) -> None:
    """The noise of identical arms, and how likely the bench then shows what it should."""
    trial = Trial("pilot", False, pairs)
    question = trial.question
    plan = identical_arms(trial.plan)
    experiment = new_comparison(plan, trial.options, question)
    state = experiment.state
    began = monotonic()
    with experiment.session(current()) as session:
        run_cells(session)
        session.finish()
    seconds = (monotonic() - began) / len(state.cells)
    whole = show_duration(seconds * 2 * later * (equal + slower))
    print(f"{seconds:.2f} s a run: about {whole} in all")
    record = compare_identical_arms(state, question)
    for noise in record.noise or []:
        if noise.log_deviation:
            print(_prediction(noise, noise.log_deviation, equal, slower, later, question.margin))


def _prediction(
    noise: Noise, deviation: float, equal: int, slower: int, pairs: int, margin: float
) -> str:
    """By the exact power of both tests, as if the deviation were the true one."""
    log_margin, error = math.log1p(margin), deviation / math.sqrt(pairs)
    same = chances(0, log_margin, error, pairs - 1)
    other = chances(math.log(_SLOWER_MS / _SERVICE_MS), log_margin, error, pairs - 1)
    likely = (
        float(binom.cdf(math.floor(_MOST_FALSE_SHARE * equal), equal, same.higher + same.lower))
        * float(binom.sf(math.ceil(_FEWEST_EQUIVALENT_SHARE * equal) - 1, equal, same.equivalent))
        * float(binom.sf(math.ceil(_FEWEST_FOUND_SHARE * slower) - 1, slower, other.higher))
        * (1 - other.lower) ** slower
    )
    return (
        f"{noise.metric:<11} noise of a pair {deviation:6.2%}: with {pairs} pairs "
        f"A/A equivalent {same.equivalent:.1%}, different {same.higher + same.lower:.2%}; "
        f"A/B found {other.higher:.1%}; all as it should be {likely:.1%}"
    )


def main() -> int:
    """Returns the exit code: 1 if the verdicts are not as they should be."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--equal", type=int, default=60, help="A/A comparisons, default 60")
    parser.add_argument("--slower", type=int, default=20, help="A/B comparisons, default 20")
    parser.add_argument("--pairs", type=int, default=6, help="of each comparison, default 6")
    parser.add_argument(
        "--pilot", type=int, metavar="PAIRS", help="only measure the noise, by so many pairs"
    )
    asked = parser.parse_args()
    with running_lab():
        if asked.pilot:
            pilot(asked.pilot, asked.equal, asked.slower, asked.pairs)
            return 0
        all_trials = trials(asked.equal, asked.slower, asked.pairs)
        for _ in run_all(all_trials):
            pass
        return 0 if show(all_trials) else 1


if __name__ == "__main__":
    sys.exit(main())
