"""How often the lab's verdicts on steps and capacities are wrong, by simulation. Those of
comparisons are in bench/comparison_verdicts.py.

No lab and no load is needed. The same seed gives the same figures.
"""

import heapq
import math
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from scipy.optimize import brentq

from spikelab.objectives import Verdict
from spikelab.statistics.batches import batches_of, dependence
from spikelab.statistics.search import Capacity, Observation, Search, answer, next_rate
from spikelab.statistics.shares import judge_share

# The verdict of a step, from its rate and the number of steps before.
Judge = Callable[[float, int], Verdict]

_WARM_UP_SECONDS = 5.0


@dataclass(frozen=True)
class Queue:
    """A server with `workers` and exponential service times, asked at random moments (M/M/c).

    `limit_seconds`: an objective of the wait for a worker; `allowed`: the share above it.
    """

    workers: int = 20
    service_seconds: float = 0.05
    limit_seconds: float = 0.1
    allowed: float = 0.05

    def late_share(self, rate: float) -> float:
        """Of a wait above the limit, in the long run. Source: Erlang's C formula (Kleinrock,
        Queueing Systems 1 (1975), ch. 3); the wait of those that wait is exponential."""
        load = rate * self.service_seconds
        blocked = 1.0
        for worker in range(1, self.workers + 1):
            blocked = load * blocked / (worker + load * blocked)
        waits = blocked / (1 - load / self.workers * (1 - blocked))
        spare = self.workers / self.service_seconds - rate
        return waits * math.exp(-spare * self.limit_seconds)

    def capacity(self) -> float:
        """The rate at which exactly the allowed share waits too long."""
        most = self.workers / self.service_seconds
        return float(brentq(lambda rate: self.late_share(rate) - self.allowed, most / 100, most))

    def step(self, rate: float, seconds: int, random: Generator) -> tuple[list[int], list[int]]:
        """Late requests and all of a step, in its batches, after a warm-up."""
        count = int(rate * (seconds + _WARM_UP_SECONDS) * 1.2)
        arrivals = random.exponential(1 / rate, count).cumsum()
        arrivals = arrivals[arrivals < seconds + _WARM_UP_SECONDS]
        services = random.exponential(self.service_seconds, len(arrivals)).tolist()
        free = [0.0] * self.workers
        batches = batches_of(seconds)
        late, asked = [0] * batches, [0] * batches
        for arrival, service in zip(arrivals.tolist(), services, strict=True):
            begun = max(arrival, free[0])
            heapq.heapreplace(free, begun + service)
            if arrival >= _WARM_UP_SECONDS:
                batch = int((arrival - _WARM_UP_SECONDS) * batches / seconds)
                asked[batch] += 1
                late[batch] += begun - arrival >= self.limit_seconds
        return late, asked

    def judge(self, seconds: int, random: Generator) -> Judge:
        def verdict(rate: float, _: int) -> Verdict:
            late, asked = self.step(rate, seconds, random)
            return _by_batches(late, asked, self.allowed)

        return verdict


def falling(start: float, fall: float) -> Judge:
    """A server that holds exactly `start` at first, and the share `fall` less with each step."""
    return lambda rate, done: "pass" if rate <= start * (1 - fall) ** done else "fail"


def run_search(search: Search, judge: Judge) -> tuple[Capacity, list[Observation]]:
    """A whole search without a driver."""
    steps: list[Observation] = []
    while (rate := next_rate(search, steps)) is not None:
        steps.append(Observation(rate, judge(rate, len(steps))))
    return answer(search, steps), steps


def _judge_shares(steps: int, random: Generator) -> None:
    queue = Queue()
    for seconds in (30, 120):
        print(f"\nrate / capacity  requests of a step of {seconds} s   pass   fail  inconclusive")
        for factor in (0.9, 0.95, 0.975, 1.0, 1.025, 1.05):
            rate = factor * queue.capacity()
            for name, found in _step_verdicts(queue, rate, seconds, steps, random).items():
                shares = [found[one] / found.total() for one in ("pass", "fail", "inconclusive")]
                print(
                    f"{factor:>15}  {name:>27}" + "".join(f"{s:>7.1%}" for s in shares), flush=True
                )


def _step_verdicts(
    queue: Queue, rate: float, seconds: int, steps: int, random: Generator
) -> dict[str, Counter[Verdict]]:
    """Of independent requests, and of one queue with and without what its batches say."""
    found = {name: Counter[Verdict]() for name in ("independent", "queue", "queue, as if not")}
    batches = batches_of(seconds)
    size = int(seconds * rate / batches)
    for _ in range(steps):
        late = random.binomial(size, queue.late_share(rate), batches).tolist()
        asked = [size] * batches
        found["independent"][_by_batches(late, asked, queue.allowed)] += 1
        late, asked = queue.step(rate, seconds, random)
        found["queue"][_by_batches(late, asked, queue.allowed)] += 1
        found["queue, as if not"][judge_share(sum(late), sum(asked), queue.allowed)] += 1
    return found


def _by_batches(late: list[int], asked: list[int], allowed: float) -> Verdict:
    return judge_share(sum(late), sum(asked), allowed, dependence(late, asked))


def _search_capacity(searches: int, random: Generator) -> None:
    queue, search = Queue(), Search(first_rate=50, lowest_rate=1, highest_rate=10_000)
    capacity = queue.capacity()
    print(f"\nSearches of the queue's capacity, {capacity:.1f}/s by Erlang C, by length of a step")
    for seconds in (10, 30, 60, 120):
        ended = [run_search(search, queue.judge(seconds, random)) for _ in range(searches)]
        outcomes = Counter(_grade(found, capacity) for found, _ in ended)
        steps = sum(len(steps) for _, steps in ended) / searches
        print(f"{seconds:>5} s  {steps:.1f} steps  {dict(outcomes)}", flush=True)
    print("\nSearches of a capacity that falls by so much with each step, and is sharp otherwise")
    for fall in (0, 0.002, 0.005, 0.01, 0.02, 0.05):
        outcomes = Counter()
        for start in random.uniform(300, 600, searches):
            found, done = run_search(search, falling(start, fall))
            outcomes[_grade(found, start * (1 - fall) ** len(done))] += 1
        print(f"{fall:>7.1%}  {dict(outcomes)}", flush=True)


def _grade(found: Capacity, capacity: float) -> str:
    if found.outcome != "found":
        return found.outcome
    assert found.highest_pass is not None
    assert found.lowest_fail is not None
    if found.highest_pass <= capacity <= found.lowest_fail:
        return "found, holds it"
    near = found.highest_pass / 1.05 <= capacity <= found.lowest_fail * 1.05
    return "found, ends within 5 % of it" if near else "found, wrong"


def main() -> None:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument(
        "--steps", type=int, default=1000, help="of each row, default 1000; 0: none"
    )
    parser.add_argument(
        "--searches", type=int, default=100, help="of each row, default 100; 0: none"
    )
    parser.add_argument("--seed", type=int, default=1, help="default 1")
    asked = parser.parse_args()
    if asked.steps:
        _judge_shares(asked.steps, np.random.default_rng(asked.seed))
    if asked.searches:
        _search_capacity(asked.searches, np.random.default_rng(asked.seed))


if __name__ == "__main__":
    main()
