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

    def step(self, rate: float, seconds: float, random: Generator) -> tuple[int, int]:
        """Late requests and all of a step, after a warm-up."""
        count = int(rate * (seconds + _WARM_UP_SECONDS))
        arrivals = random.exponential(1 / rate, count).cumsum().tolist()
        services = random.exponential(self.service_seconds, count).tolist()
        free = [0.0] * self.workers
        late = asked = 0
        for arrival, service in zip(arrivals, services, strict=True):
            begun = max(arrival, free[0])
            heapq.heapreplace(free, begun + service)
            if arrival >= _WARM_UP_SECONDS:
                asked += 1
                late += begun - arrival >= self.limit_seconds
        return late, asked

    def judge(self, seconds: float, random: Generator) -> Judge:
        return lambda rate, _: judge_share(*self.step(rate, seconds, random), self.allowed)


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
    judge = queue.judge(30, random)
    print("\nrate / capacity  requests of a step of 30 s   pass   fail  inconclusive")
    for factor in (0.9, 0.95, 0.975, 1.0, 1.025, 1.05):
        rate = factor * queue.capacity()
        independent = Counter(
            judge_share(int(late), int(30 * rate), queue.allowed)
            for late in random.binomial(int(30 * rate), queue.late_share(rate), steps)
        )
        queued = Counter(judge(rate, 0) for _ in range(steps // 10))
        for name, found in (("independent", independent), ("one queue", queued)):
            shares = [found[one] / found.total() for one in ("pass", "fail", "inconclusive")]
            print(f"{factor:>15}  {name:>26}" + "".join(f"{s:>7.1%}" for s in shares), flush=True)


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
    parser.add_argument("--steps", type=int, default=2000, help="of each row, default 2000")
    parser.add_argument("--searches", type=int, default=100, help="of each row, default 100")
    parser.add_argument("--seed", type=int, default=1, help="default 1")
    asked = parser.parse_args()
    random = np.random.default_rng(asked.seed)
    _judge_shares(asked.steps, random)
    _search_capacity(asked.searches, random)


if __name__ == "__main__":
    main()
