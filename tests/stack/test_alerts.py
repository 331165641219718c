"""Alerts of the real Prometheus, made real."""

import os
import signal
from pathlib import Path

from tests.support.lab import Lab, wait_until

# Room for 21 connections. Answers and idle connections are short, so that all users that are
# turned away at first get in with one of their next attempts.
SMALL = (
    "TOMCAT_MAX_CONNECTIONS=10",
    "TOMCAT_ACCEPT_COUNT=10",
    "TOMCAT_KEEP_ALIVE_TIMEOUT=500",
    "TARGET_HELLO_DELAY_MS=500",
)
# How long TargetDown waits.
PATIENCE_SECONDS = 10


def firing(lab: Lab, alert: str) -> bool:
    found = lab.prometheus.query(f'ALERTS{{alertname="{alert}", alertstate="firing"}}')
    return bool(found)


def java(lab: Lab) -> int:
    """The target's process."""
    (found,) = [
        pid
        for pid in lab.processes()
        if Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip() == "java"
    ]
    return found


def test_a_spike_beyond_the_capacity_overflows_the_accept_queue(lab: Lab) -> None:
    settings = [word for setting in SMALL for word in ("--target-set", setting)]
    soon = ("--set", "request.timeout=20s")
    process = lab.start("run", "tomcat-spike", "--set", "users=100", *soon, *settings)
    try:
        wait_until(lambda: firing(lab, "AcceptQueueOverflowing"), 60, "the alert fires")
    finally:
        process.communicate(timeout=120)
    assert process.returncode in (0, 99)
    assert lab.records()[-1]["connections"]["listen_overflows"] > 0
    wait_until(lambda: not firing(lab, "AcceptQueueOverflowing"), 30, "the alert ends")


def test_a_restart_for_a_setting_is_no_target_down_and_a_frozen_target_is(lab: Lab) -> None:
    load = ("--set", "users=5", "--set", "request.path=/hello?ms=100")
    lab.run("tomcat-spike", *load, "--target-set", "TOMCAT_MAX_THREADS=7")
    fired = lab.prometheus.query(
        'last_over_time(ALERTS{alertname="TargetDown", alertstate="firing"}[1m])'
    )
    # On a busy machine a start may take as long as the alert waits: then it is right.
    down = 'count_over_time((max(up{job="target"}) == 0)[1m:1s])'
    assert not fired or (lab.prometheus.value(down) or 0) >= PATIENCE_SECONDS
    target = java(lab)
    os.kill(target, signal.SIGSTOP)
    try:
        wait_until(lambda: firing(lab, "TargetDown"), 30, "the alert fires")
    finally:
        os.kill(target, signal.SIGCONT)
    wait_until(lambda: not firing(lab, "TargetDown"), 30, "the alert ends")
