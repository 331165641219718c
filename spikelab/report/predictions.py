"""Tables of what was predicted of spikes, beside what was measured."""

from collections.abc import Sequence

from spikelab.prediction.compare import as_predicted, checks, within
from spikelab.record import RunRecord
from spikelab.report import words
from spikelab.report.content import Table

_TITLE = "Predicted and measured"
_WITHIN = {True: "yes", False: "no", None: words.NONE}


def of_run(record: RunRecord) -> Table | None:
    """A row a figure; None without a prediction."""
    rows = [
        (check.name, check.measured or words.NONE, check.predicted, _WITHIN[check.within])
        for check in checks(record)
    ]
    return Table(_TITLE, ("", "measured", "predicted", "as predicted"), rows) if rows else None


def of_runs(records: Sequence[RunRecord], most_rows: int) -> Table | None:
    """A row a run; None where none has a prediction."""
    spikes = [record for record in records if checks(record)]
    if not spikes:
        return None
    repeats = any(record.steps[0].repeat > 1 for record in spikes)
    columns = ["run with", *(["repeat"] if repeats else []), "as predicted"]
    columns += [f"{check.name} (predicted)" for check in checks(spikes[0])]
    rows = [
        [
            words.run_of(record),
            *([str(record.steps[0].repeat)] if repeats else []),
            _WITHIN[within(record)],
            *(check.text for check in checks(record)),
        ]
        for record in spikes[:most_rows]
    ]
    return Table(_TITLE, columns, rows)


def sentence(records: Sequence[RunRecord]) -> str:
    """Whether they came so; empty without a prediction."""
    spikes = [record for record in records if checks(record)]
    if len(spikes) > 1:
        return f" {as_predicted(spikes)}."
    wrong = [
        f"{each.name} {each.text}" for r in spikes for each in checks(r) if each.within is False
    ]
    if wrong:
        return f" Not as predicted: {'; '.join(wrong)}."
    return " It came as predicted." if spikes else ""
