"""The report as one HTML page that needs nothing beside it: no script, no request, no font."""

from dataclasses import replace
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup

from spikelab.prediction.compare import predicted_rates
from spikelab.report.assemble import content
from spikelab.report.content import SIGNS
from spikelab.report.curves import curves
from spikelab.report.figures import over_rate, over_time, spread
from spikelab.report.figures.search import search
from spikelab.report.figures.style import Figure
from spikelab.report.searched import capacity_of, searching
from spikelab.report.subject import Subject
from spikelab.series import load_series

# Words of cells that are coloured like verdicts.
_MARKS = {
    **dict.fromkeys(("pass", "held", "better", "equivalent"), "good"),
    **dict.fromkeys(("fail", "failed", "invalid", "worse"), "bad"),
    **dict.fromkeys(("inconclusive", "not reached"), "open"),
}
_FOLDER = Path(__file__).parent / "templates"


def html(subject: Subject) -> str:
    """The whole page. Everything from records is escaped; figures are our own SVG."""
    said = content(subject)
    meaning, sign = SIGNS[said.word]
    return _template().render(
        report=said,
        meaning=meaning,
        sign=sign,
        marks=_MARKS,
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
        # SciPy comes with it.
        from spikelab.report.figures.ratios import comparison  # noqa: PLC0415

        return comparison(subject.comparison)
    if not subject.records:
        return []
    if answer := capacity_of(subject):
        searched = replace(subject, records=searching(subject, answer))
        return [*search(answer), *_of_runs(searched)]
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
        drawn = over_rate.over_rate(steps, subject.slo, predicted_rates(subject.records))
    else:
        drawn = spread.by_cell(subject.records, subject.slo)
    drawn += spread.predicted(subject.records)
    errors = over_time.errors_by_class(subject.steps)
    return [*drawn, errors] if errors else drawn


def _of_run(subject: Subject) -> list[Figure]:
    (record,) = subject.records
    series = load_series(subject.folder)
    drawn = over_time.over_time(record, series) if series else []
    more = (over_time.percentiles(record.steps), over_time.errors_by_class(record.steps))
    return [*drawn, *(figure for figure in more if figure)]
