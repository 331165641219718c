"""Asks the stores what a dashboard asks, with its queries interpolated as Grafana does it.

Grafana's browser part replaces the dashboard's variables, its server the macros of time. What is
here follows both: `packages/grafana-data/.../rangeutil.ts`, `templateSrv`, and the two data
sources' own formats. A macro or format that is not known here is an error, not a guess.
"""

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx

from grafana.lint.reading import Json, Query, variables
from spikelab.settings import DATABASE

# A browser of 1280 px; what a panel of w columns draws at most.
_SCREEN_WIDTH_PX, _COLUMNS = 1280, 24
# timeInterval of both data sources in grafana/provisioning.
_SHORTEST_STEP_MS = 1000
_MOST_POINTS = 11_000
_DEFAULT_ANNOTATION_STEP = "60s"
_TIMEOUT_SECONDS = 30
# Grafana's steps: up to the first number (ms) an interval becomes the second.
_ROUNDED_MS = (
    (10, 1),
    (15, 10),
    (35, 20),
    (75, 50),
    (150, 100),
    (350, 200),
    (750, 500),
    (1_500, 1_000),
    (3_500, 2_000),
    (7_500, 5_000),
    (12_500, 10_000),
    (17_500, 15_000),
    (25_000, 20_000),
    (45_000, 30_000),
    (90_000, 60_000),
    (210_000, 120_000),
    (450_000, 300_000),
    (750_000, 600_000),
    (1_050_000, 900_000),
    (1_500_000, 1_200_000),
    (2_700_000, 1_800_000),
    (5_400_000, 3_600_000),
)
_UNIT_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_REFERENCE = re.compile(r"\$(\w+)|\$\{(\w+)(?::(\w+))?\}")


@dataclass(frozen=True)
class Stores:
    """Addresses of the two stores."""

    prometheus: str
    influxdb: str


@dataclass(frozen=True)
class View:
    """What a dashboard shows: a time range in epoch milliseconds, and choices by variable.

    Without a choice a variable has the one its JSON says.
    """

    start_ms: int
    end_ms: int
    choices: Mapping[str, str | Sequence[str]] = field(default_factory=dict)

    @property
    def length_ms(self) -> int:
        return self.end_ms - self.start_ms

    @property
    def parameters(self) -> dict[str, str | Sequence[str]]:
        """The choices as a dashboard's address has them."""
        return {f"var-{name}": chosen for name, chosen in self.choices.items()}


@dataclass(frozen=True)
class Asked:
    """A query as it goes to its store: `step_ms` None is an instant query."""

    query: Query
    text: str
    start_ms: int
    end_ms: int
    step_ms: int | None


@dataclass(frozen=True)
class Answer:
    """How many values a store returned, or why it refused; of Prometheus also their sum."""

    asked: Asked
    values: int
    error: str | None = None
    total: float = 0.0

    def __str__(self) -> str:
        said = self.error or "no data"
        return f"{self.asked.query}: {said}: {self.asked.text}"


def interpolated(query: Query, board: Json, view: View) -> Asked:
    """The query as Grafana sends it for this view."""
    step_ms = _step_ms(query, view)
    text = with_variables(query, board, view)
    text = _with_macros(text, query, view, step_ms)
    start, end = view.start_ms, view.end_ms
    if query.is_promql and not query.is_variable and not _instant(query):
        start, end = start // step_ms * step_ms, end // step_ms * step_ms
    return Asked(query, text, start, end, None if _instant(query) else step_ms)


def with_variables(query: Query, board: Json, view: View) -> str:
    """The browser's part: the dashboard's variables, `${__from}` and `${__to}`."""
    declared = {variable["name"]: variable for variable in variables(board)}

    def replaced(match: re.Match[str]) -> str:
        name, form = match[1] or match[2], match[3]
        if name in {"__from", "__to"}:
            return str(view.start_ms if name == "__from" else view.end_ms)
        if name not in declared:
            return match[0]
        return _formatted(declared[name], view, form, query.is_promql)

    return _REFERENCE.sub(replaced, query.text)


def _formatted(variable: Json, view: View, form: str | None, promql: bool) -> str:
    chosen = view.choices.get(variable["name"], variable.get("current", {}).get("value", ""))
    if chosen in ("$__all", ["$__all"]):
        # Grafana formats no "custom all value".
        if variable.get("allValue"):
            return str(variable["allValue"])
        chosen = [option["value"] for option in variable.get("options", [])]
    several = bool(variable.get("multi") or variable.get("includeAll"))
    if form is not None:
        return _FORMATS[form](chosen)
    if promql:
        return _promql_format(chosen, several)
    return _regex(chosen)


def _listed(chosen: str | Sequence[str]) -> list[str]:
    return [chosen] if isinstance(chosen, str) else list(chosen)


def _joined(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"({'|'.join(parts)})"


def _regex(chosen: str | Sequence[str]) -> str:
    return _joined([re.sub(r"[\\^$*+?.()|\[\]{}/]", r"\\\g<0>", v) for v in _listed(chosen)])


def _promql_format(chosen: str | Sequence[str], several: bool) -> str:
    """Within double quotes: escaped for them, and for a regular expression if it may be several."""
    if not several:
        return str(chosen).replace("\\", "\\\\").replace("'", "\\\\'")
    quoted = [value.replace("\\", "\\\\\\\\") for value in _listed(chosen)]
    return _joined([re.sub(r"[$^*{}\[\]'+?.()|]", r"\\\\\g<0>", value) for value in quoted])


_FORMATS: dict[str, Callable[[str | Sequence[str]], str]] = {
    "raw": lambda chosen: ",".join(_listed(chosen)),
    "csv": lambda chosen: ",".join(_listed(chosen)),
    "pipe": lambda chosen: "|".join(_listed(chosen)),
    "regex": _regex,
}


def _with_macros(text: str, query: Query, view: View, step_ms: int) -> str:
    """The server's part: the macros of time."""
    seconds = round(view.length_ms / 1000)
    values = {"__interval_ms": str(step_ms), "__interval": _written(step_ms)}
    if query.is_promql:
        rate_ms = max(step_ms + _SHORTEST_STEP_MS, 4 * _SHORTEST_STEP_MS)
        values |= {
            "__rate_interval": _written(rate_ms),
            "__range_ms": str(view.length_ms),
            "__range_s": str(seconds),
            "__range": f"{seconds}s",
        }
    else:
        bounds = f"time >= {view.start_ms}ms and time <= {view.end_ms}ms"
        values |= {"timeFilter": bounds, "interval": _written(step_ms)}

    def replaced(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        if name in values:
            return values[name]
        if query.is_promql and name.isdigit():
            return match[0]  # a group of label_replace
        raise AssertionError(f"{query}: nothing is known of {match[0]}")

    # A `$` that ends a regular expression is followed by a slash, so it is no reference.
    return _REFERENCE.sub(replaced, text)


def _written(milliseconds: int) -> str:
    for unit in ("h", "m", "s"):
        if milliseconds % _UNIT_MS[unit] == 0:
            return f"{milliseconds // _UNIT_MS[unit]}{unit}"
    return f"{milliseconds}ms"


def milliseconds(text: str) -> int:
    """The length of a duration such as 500ms, 2s or >1s."""
    match = re.fullmatch(r">?(\d+)(ms|s|m|h|d)", text.strip())
    assert match, f"no duration: {text}"
    return int(match[1]) * _UNIT_MS[match[2]]


def _step_ms(query: Query, view: View) -> int:
    """The length of a point, as Grafana rounds it for the panel's width."""
    if query.panel is None:
        return milliseconds(query.model.get("step") or _DEFAULT_ANNOTATION_STEP)
    columns = query.panel["gridPos"]["w"]
    points = query.panel.get("maxDataPoints") or _SCREEN_WIDTH_PX * columns // _COLUMNS
    shortest = _SHORTEST_STEP_MS
    if query.panel.get("interval"):
        shortest = milliseconds(query.panel["interval"])
    if query.is_promql and query.model.get("interval"):
        shortest = max(shortest, milliseconds(query.model["interval"]))
    rounded = next((step for end, step in _ROUNDED_MS if view.length_ms / points < end), 7_200_000)
    return max(shortest, rounded, math.ceil(view.length_ms / _MOST_POINTS))


def _instant(query: Query) -> bool:
    return bool(query.is_promql and query.model.get("instant") and not query.model.get("range"))


# Asking.


def ask(asked: Asked, stores: Stores, client: httpx.Client) -> Answer:
    """Sends a query to its store."""
    if asked.query.source == "influxdb":
        return _ask_influxdb(asked, stores.influxdb, client)
    if asked.query.is_variable:
        return _ask_for_choices(asked, stores.prometheus, client)
    return _ask_prometheus(asked, stores.prometheus, client)


def _ask_prometheus(asked: Asked, url: str, client: httpx.Client) -> Answer:
    parameters = {"query": asked.text}
    if asked.step_ms is None:
        path = "query"
        parameters["time"] = f"{asked.end_ms / 1000:.3f}"
    else:
        path = "query_range"
        parameters |= {
            "start": f"{asked.start_ms / 1000:.3f}",
            "end": f"{asked.end_ms / 1000:.3f}",
            "step": f"{asked.step_ms / 1000:g}",
        }
    body = client.post(f"{url}/api/v1/{path}", data=parameters, timeout=_TIMEOUT_SECONDS).json()
    if body["status"] != "success":
        return Answer(asked, 0, body["error"])
    numbers = list(_numbers(body["data"]))
    return Answer(asked, len(numbers), total=sum(numbers))


def _numbers(data: Json) -> Iterator[float]:
    """Values that are numbers; a native histogram is one by its count."""
    if data["resultType"] in {"scalar", "string"}:
        data = {"result": [{"value": data["result"]}]}
    for series in data["result"]:
        samples = series.get("values") or [series["value"]] if _floats(series) else []
        histograms = series.get("histograms") or [series.get("histogram")]
        texts = [sample[1] for sample in samples]
        texts += [sample[1]["count"] for sample in histograms if sample]
        yield from (number for number in map(float, texts) if not math.isnan(number))


def _floats(series: Json) -> bool:
    return "values" in series or "value" in series


def _ask_for_choices(asked: Asked, url: str, client: httpx.Client) -> Answer:
    """The functions of Grafana's variables: label_values(selector, label) and query_result(…)."""
    bounds = {"start": f"{asked.start_ms / 1000:.3f}", "end": f"{asked.end_ms / 1000:.3f}"}
    if match := re.fullmatch(r"label_values\((?:(.+),\s*)?(\w+)\)", asked.text, re.DOTALL):
        path = f"label/{match[2]}/values"
        parameters = {**bounds, **({"match[]": match[1]} if match[1] else {})}
    else:
        match = re.fullmatch(r"query_result\((.+)\)", asked.text, re.DOTALL)
        assert match, f"{asked.query}: nothing is known of {asked.text}"
        path, parameters = "query", {"query": match[1], "time": bounds["end"]}
    address = f"{url}/api/v1/{path}"
    body = client.get(address, params=parameters, timeout=_TIMEOUT_SECONDS).json()
    if body["status"] != "success":
        return Answer(asked, 0, body["error"])
    data = body["data"]
    texts = data if isinstance(data, list) else list(map(_as_text, data["result"]))
    return Answer(asked, sum(map(_option(asked.query), texts)))


def _as_text(series: Json) -> str:
    """A result of query_result as Grafana writes it, for a variable's pattern to read."""
    labels = ",".join(f'{k}="{v}"' for k, v in series["metric"].items() if k != "__name__")
    at, value = series["value"]
    return f"{series['metric'].get('__name__', '')}{{{labels}}} {value} {at * 1000:g}"


def _option(query: Query) -> Callable[[str], bool]:
    """Whether a text is one of a variable's options: what its pattern, if any, finds."""
    written = query.model.get("regex") or ""
    inner = re.sub(r"^/(.*)/\w*$", r"\1", written, flags=re.DOTALL)
    pattern = re.compile(re.sub(r"\(\?<(\w)", r"(?P<\1", inner))
    return lambda text: pattern.search(text) is not None


def _ask_influxdb(asked: Asked, url: str, client: httpx.Client) -> Answer:
    parameters = {"db": DATABASE, "q": asked.text, "epoch": "ms"}
    body = client.get(f"{url}/query", params=parameters, timeout=_TIMEOUT_SECONDS).json()
    (result,) = body.get("results", [{"error": body.get("error")}])
    if "error" in result:
        return Answer(asked, 0, result["error"])
    values = 0
    for series in result.get("series", []):
        at = [n for n, name in enumerate(series["columns"]) if name != "time"]
        values += sum(1 for row in series["values"] if any(row[n] is not None for n in at))
    return Answer(asked, values)


# Grafana's own API.


def grafana_body(query: Query, board: Json, view: View) -> dict[str, Any]:
    """What the browser posts to `/api/ds/query` for one query; the server knows the macros."""
    step_ms = _step_ms(query, view)
    text = with_variables(query, board, view)
    key = "expr" if query.is_promql else "query"
    target = {
        **json.loads(json.dumps(query.model)),
        key: text,
        "refId": query.ref_id or "A",
        "datasource": {"uid": query.source, "type": query.source},
        "intervalMs": step_ms,
        "maxDataPoints": math.ceil(view.length_ms / step_ms),
    }
    if query.panel is None and query.is_promql:
        target |= {"range": True, "instant": False, "interval": _written(step_ms)}
    if query.panel is None and not query.is_promql:
        target |= {"rawQuery": True, "resultFormat": "table"}
    return {"queries": [target], "from": str(view.start_ms), "to": str(view.end_ms)}
