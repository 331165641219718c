"""How long InfluxDB keeps raw samples. Phases and finished runs stay: only what drivers write for
each request grows without end.

Published k6 commands write into the database's own retention policy, where phases and runs are as
well, so a shorter policy would take all of them. Raw samples are deleted by their age instead.
"""

import re

from spikelab.console import working
from spikelab.errors import UsageError
from spikelab.stores.influxdb import InfluxDB

VARIABLE = "INFLUXDB_RAW_RETENTION"
# Everything that the lab and its drivers' phases write.
_STAYS = ("events", "runs", "run_steps", "run_series")
_AGE = re.compile(r"([1-9][0-9]{0,4})([hdw])")
_HOURS = {"h": 1, "d": 24, "w": 7 * 24}
# InfluxDB counts nanoseconds in 64 bits with a sign: 292 years.
_MOST_HOURS = (2**63 - 1) // (3600 * 10**9)
_DELETE_SECONDS = 120


def require_age(text: str) -> str:
    """An age in InfluxQL, or 0. Raises UsageError."""
    found = _AGE.fullmatch(text)
    if found and int(found[1]) * _HOURS[found[2]] > _MOST_HOURS:
        raise UsageError(
            f"{VARIABLE}={text}: is more than the 292 years that InfluxDB counts; 0 is for ever "
            "(compose/.env)"
        )
    if found or text == "0":
        return text
    raise UsageError(
        f"{VARIABLE}={text}: must be an age such as 30d, 12h or 4w, or 0 for ever (compose/.env)"
    )


def forget_raw_samples(influxdb: InfluxDB, age: str) -> list[str]:
    """Deletes what is older and no phase or run; the measurements that lost something. Raises
    LabError."""
    if require_age(age) == "0":
        return []
    past = f"time < now() - {age}"
    names = [str(row["name"]) for row in influxdb.query("SHOW MEASUREMENTS")]
    raw = [_quoted(name) for name in names if name not in _STAYS]
    old = [name for name in raw if influxdb.query(f"SELECT * FROM {name} WHERE {past} LIMIT 1")]
    if old:
        with working(f"deleting raw samples older than {age}"):
            for name in old:
                influxdb.query(f"DELETE FROM {name} WHERE {past}", _DELETE_SECONDS)
    return old


def _quoted(name: str) -> str:
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'
