"""What the rules ask of a PromQL query as it is written, with Grafana's variables in it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import promql_parser as parser

# What stands for Grafana's own variables while a query is parsed; no dashboard would write these.
_STAND_INS = {
    "$__rate_interval": "7001s",
    "$__interval_ms": "7002",
    "$__interval": "7003s",
    "$__range_ms": "7004",
    "$__range_s": "7005",
    "$__range": "7006s",
}
_WRITTEN = {stand_in: name for name, stand_in in _STAND_INS.items()}


@dataclass(frozen=True)
class Selector:
    """A series selector and what is done to it.

    `matchers` are (label, operator, value); `window` is the range as written, in seconds where it
    is a number; `functions` are those around it, the innermost first.
    """

    metric: str
    matchers: tuple[tuple[str, str, str], ...]
    window: str | None
    functions: tuple[str, ...]

    @property
    def function(self) -> str:
        """The innermost function around it."""
        return self.functions[0] if self.functions else ""


def selectors(expression: str) -> list[Selector]:
    """All series selectors. Raises ValueError where the expression is no PromQL."""
    for name, stand_in in _STAND_INS.items():
        expression = expression.replace("${" + name[1:] + "}", stand_in).replace(name, stand_in)
    return list(_walk(parser.parse(expression), (), None))


def _walk(node: Any, functions: tuple[str, ...], window: str | None) -> Iterator[Selector]:
    match node:
        case parser.VectorSelector():
            yield _selector(node, functions, window)
        case parser.MatrixSelector():
            yield _selector(node.vector_selector, functions, _duration(node.range))
        case parser.Call():
            for argument in node.args:
                yield from _walk(argument, (node.func.name, *functions), window)
        case parser.SubqueryExpr():
            yield from _walk(node.expr, functions, _duration(node.range))
        case parser.BinaryExpr():
            yield from _walk(node.lhs, functions, window)
            yield from _walk(node.rhs, functions, window)
        case parser.AggregateExpr() | parser.ParenExpr() | parser.UnaryExpr():
            yield from _walk(node.expr, functions, window)


def _selector(node: Any, functions: tuple[str, ...], window: str | None) -> Selector:
    listed = [*node.matchers.matchers, *(m for ms in node.matchers.or_matchers for m in ms)]
    matchers = tuple((matcher.name, str(matcher.op), matcher.value) for matcher in listed)
    return Selector(node.name or "", matchers, window, functions)


def _duration(found: Any) -> str:
    seconds = f"{found.total_seconds():g}s"
    return _WRITTEN.get(seconds, seconds)
