"""The report as JUnit XML: a test case for each objective of each step.

A missed objective is a failure. A step that decided nothing is skipped: it is no fault of the
service; nor is a run that was not made. A run that is no result is an error, unless another one of
its cell is.
"""

import re
from collections.abc import Iterator

from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite

from spikelab.experiments.cells import cell_name
from spikelab.record import RunRecord, Step
from spikelab.report import words
from spikelab.report.assemble import content
from spikelab.report.content import SIGNS, Content
from spikelab.report.missed import Check, checks
from spikelab.report.subject import Subject

# XML 1.0 has no way to write these.
_NOT_IN_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(subject: Subject) -> str:
    """One suite, with its cases named by what the step was run with."""
    suite = TestSuite(_safe(subject.name))
    for name, value in {"plan": subject.plan, "kind": subject.kind}.items():
        suite.add_property(name, _safe(value))
    if subject.records or subject.spoiled:
        suite.timestamp = (subject.records or subject.spoiled)[0].started.isoformat()
    # All at once: for each call the suite counts all of its cases anew.
    suite.add_testcases([*_decided(subject), *_open(subject)])
    xml = JUnitXml("spikelab")
    xml.add_testsuite(suite)
    return bytes(xml.tostring()).decode()  # type: ignore[no-untyped-call]


def _decided(subject: Subject) -> Iterator[TestCase]:
    if subject.kind in ("comparison", "capacity"):
        yield _answer(content(subject))
        return
    for record in subject.records:
        for step in record.steps:
            yield from _step(record, step)


def _step(record: RunRecord, step: Step) -> Iterator[TestCase]:
    seconds = (step.ended - step.started).total_seconds()
    name = words.cell_of(record, step) + (f" #{step.repeat}" if step.repeat > 1 else "")
    for check in checks(step) or [Check("no objective", "met", "")]:
        case = TestCase(_safe(f"{name}: {check.name}"), _safe(record.plan), round(seconds, 3))
        if step.verdict == "inconclusive":
            why = "the driver was short of CPU" if step.generator.limited else "inconclusive"
            case.result = [Skipped(why)]
        elif check.result == "missed":
            case.result = [Failure(_safe(check.seen), "missed")]
        yield case


def _answer(said: Content) -> TestCase:
    """Of a comparison or a search the answer itself, which is better than the sum of its runs."""
    case = TestCase(_safe(said.title), said.kind)
    meaning, text = SIGNS[said.word][0], _safe(said.sentence)
    if meaning == "bad":
        case.result = [Failure(text, said.word)]
    elif meaning == "open":
        case.result = [Skipped(text)]
    else:
        case.system_out = text
    return case


def _open(subject: Subject) -> Iterator[TestCase]:
    """What was tried without a result, or not at all. What an attempt left open and the next one
    closed is no error, and a comparison's answer is there without."""
    if subject.state is None:
        yield from map(_spoiled, () if subject.comparison else subject.spoiled)
        return
    spoiled = {record.testid: record for record in subject.spoiled}
    for cell in subject.state.cells:
        if cell.done:
            continue
        tried = [spoiled[name] for name in cell.attempts if name in spoiled]
        yield from map(_spoiled, tried)
        if not tried:
            name = cell_name(cell.values, cell.variant, cell.repeat)
            case = TestCase(_safe(name), _safe(subject.plan))
            case.result = [Skipped("not run")]
            yield case


def _spoiled(record: RunRecord) -> TestCase:
    case = TestCase(_safe(record.testid), _safe(record.plan))
    case.result = [Error(_safe("; ".join(record.reasons) or "it did not end"), "invalid")]
    return case


def _safe(text: str) -> str:
    return _NOT_IN_XML.sub("\ufffd", text)
