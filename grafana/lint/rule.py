"""What a rule is, and the list of them."""

from collections.abc import Callable, Iterator

from grafana.lint.reading import Json

# (place, message)
Finding = tuple[str, str]
Rule = Callable[[Json], Iterator[Finding]]

RULES: dict[str, Rule] = {}


def rule(name: str) -> Callable[[Rule], Rule]:
    """Registers a rule under the name that exceptions use."""

    def register(function: Rule) -> Rule:
        RULES[name] = function
        return function

    return register
