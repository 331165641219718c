"""All rules, and the judgement of a dashboard by them."""

from dataclasses import dataclass

from grafana.lint import board_rules, panel_rules, query_rules
from grafana.lint.exceptions import EXCUSES, Excuse
from grafana.lint.reading import Json
from grafana.lint.rule import RULES

__all__ = ["RULES", "Broken", "board_rules", "judge", "lint", "panel_rules", "query_rules"]


@dataclass(frozen=True)
class Broken:
    """A rule that a place of a dashboard breaks."""

    rule: str
    dashboard: str
    place: str
    message: str

    def __str__(self) -> str:
        return f"{self.dashboard} / {self.place}: {self.message} [{self.rule}]"


def judge(board: Json) -> list[Broken]:
    """All that breaks a rule, excused or not."""
    uid = board.get("uid") or "?"
    return [
        Broken(name, uid, place, message)
        for name, check in RULES.items()
        for place, message in check(board)
    ]


def lint(boards: list[Json], excuses: tuple[Excuse, ...] = EXCUSES) -> list[str]:
    """What is to mend: findings without an excuse, and excuses without a finding."""
    broken = [finding for board in boards for finding in judge(board)]
    used = {
        excuse: [b for b in broken if excuse.covers(b.rule, b.dashboard, b.place)]
        for excuse in excuses
    }
    excused = {finding for found in used.values() for finding in found}
    return [
        *(str(finding) for finding in broken if finding not in excused),
        *(f"{excuse}: excuses nothing, remove it" for excuse, found in used.items() if not found),
    ]
