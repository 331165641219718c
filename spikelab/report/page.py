"""A report as one HTML page, with its figures.

The page needs nothing beside it: no script, no request, no font.
"""

from dataclasses import replace
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup

from spikelab.prediction.check import predicted_rates
from spikelab.report.content import capacity_of, content
from spikelab.report.experiment_figures import by_cell, comparison, over_rate, predicted, search
from spikelab.report.run_figures import errors_by_class, over_time, percentiles
from spikelab.report.sentences import SIGNS
from spikelab.report.steps import curves
from spikelab.report.style import Figure
from spikelab.report.tables import meaning_of
from spikelab.results.lookup import Subject
from spikelab.series import load_series

_FOLDER = Path(__file__).parent / "templates"


def html(subject: Subject) -> str:
    """The whole page. Everything from records is escaped; figures are our own SVG."""
    report = content(subject)
    meaning, sign = SIGNS[report.word]
    return _template().render(
        report=report,
        meaning=meaning,
        sign=sign,
        meaning_of=meaning_of,
        figures=[(figure, Markup(figure.svg)) for figure in figures(subject)],
        css=Markup((_FOLDER / "page.css").read_text(encoding="utf-8")),
    )


@cache
def _template() -> Template:
    environment = Environment(
        loader=FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html.j2")


def figures(subject: Subject) -> list[Figure]:
    """What is drawn of it, in order."""
    if subject.comparison:
        return comparison(subject.comparison)
    if not subject.records:
        return []
    if answer := capacity_of(subject):
        # The search itself, without the overload after it.
        steps = {step.testid for step in answer.steps}
        searched = tuple(record for record in subject.records if record.testid in steps)
        return [*search(answer), *_of_runs(replace(subject, records=searched))]
    if subject.kind == "run":
        return _of_run(subject)
    return _of_runs(subject)


def _of_runs(subject: Subject) -> list[Figure]:
    found = curves(subject.records)
    if found and found.several_rates:
        steps = {
            name: [step for repeats in rates.values() for step in repeats]
            for name, rates in found.rates.items()
        }
        drawn = over_rate(steps, subject.slo, predicted_rates(subject.records))
    else:
        drawn = by_cell(subject.records, subject.slo)
    drawn += predicted(subject.records)
    errors = errors_by_class(subject.steps)
    return [*drawn, errors] if errors else drawn


def _of_run(subject: Subject) -> list[Figure]:
    (record,) = subject.records
    series = load_series(subject.folder)
    drawn = over_time(record, series) if series else []
    more = (percentiles(record.steps), errors_by_class(record.steps))
    return [*drawn, *(figure for figure in more if figure)]
