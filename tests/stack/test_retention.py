"""How long what is stored stays."""

import time

from tests.support.lab import Lab

DAY_MS = 24 * 3600 * 1000


def test_up_deletes_old_raw_samples_and_no_phase_or_run(lab: Lab) -> None:
    old, young = (int(time.time() * 1000) - days * DAY_MS for days in (31, 29))
    for name in ("http_reqs", 'my "own"', "events", "runs", "run_steps", "run_series"):
        measurement = name.replace(" ", "\\ ")
        for when in (old, young):
            lab.influxdb.write(f"{measurement},testid=retention value=1 {when}")
    result = lab("up")
    assert result.returncode == 0, result.stderr
    assert "deleted raw samples older than 30d" in result.stderr

    assert _times(lab, "http_reqs") == _times(lab, 'my \\"own\\"') == [young]
    for name in ("events", "runs", "run_steps", "run_series"):
        assert _times(lab, name) == [old, young]
    assert "deleted" not in lab("up").stderr


def test_an_invalid_age_is_named_before_anything_starts(lab: Lab) -> None:
    other = Lab({**lab.env, "INFLUXDB_RAW_RETENTION": "30 days"})
    result = other("up")
    assert result.returncode == 2
    assert "INFLUXDB_RAW_RETENTION=30 days: must be an age such as 30d" in result.stderr


def _times(lab: Lab, measurement: str) -> list[int]:
    rows = lab.influxdb.query(f"""SELECT value FROM "{measurement}" WHERE testid = 'retention'""")
    return sorted(row["time"] for row in rows)
