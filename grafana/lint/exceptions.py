"""What may break a rule, and why. One that excuses nothing is itself a finding."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Excuse:
    """Lets a place of a dashboard break a rule.

    `place` is a panel's title or a finding's other place; "*" is any. `dashboard` likewise.
    """

    rule: str
    dashboard: str
    place: str
    reason: str

    def covers(self, rule: str, dashboard: str, place: str) -> bool:
        """Whether it excuses a finding there."""
        return (
            self.rule == rule and self.dashboard in {"*", dashboard} and self.place in {"*", place}
        )


_KEPT_BY_LINKS = (
    "Every dashboard offers the same choices, so that a link to the next one keeps them all."
)

_OWN_TIME = "Its time is days, or seconds since a run's start: no time to look at one run."

EXCUSES: tuple[Excuse, ...] = (
    Excuse("variable-used", "*", "variable phase", _KEPT_BY_LINKS),
    Excuse("variable-used", "*", "variable name", _KEPT_BY_LINKS),
    Excuse("dashboard-shared", "runs", "dashboard", _OWN_TIME),
    Excuse("dashboard-shared", "compare", "dashboard", _OWN_TIME),
    Excuse(
        "panel-type",
        "compare",
        "*",
        "Only an XY chart draws one figure over another. It is written as 9.3 has it, and later "
        "versions convert that themselves.",
    ),
)
