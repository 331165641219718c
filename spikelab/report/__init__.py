"""Reports: a run, a sweep, a capacity search or a comparison as one HTML page, Markdown, CSV or
JUnit XML. They read the results folder alone, never a store.

What is heavy (matplotlib, Jinja2) is imported when a report is made.
"""

from pathlib import Path

from spikelab.files import write_whole
from spikelab.report.subject import Subject, find

FILE = "report.html"
# Format to file name, where none is given.
FORMATS = {"html": FILE, "md": "report.md", "csv": "report.csv", "junit": "report.xml"}


def write_report(name: str) -> Path:
    """Makes the HTML report of a run or an experiment by its name: results/<name>/report.html.

    Raises UsageError when there is no such run, OSError when it cannot be written.
    """
    subject = find(name)
    path = subject.folder / FILE
    write_whole(path, rendered(subject, "html"))
    return path


def rendered(subject: Subject, format_name: str) -> str:
    """A report in one of `FORMATS`."""
    # ruff: noqa: PLC0415
    match format_name:
        case "html":
            from spikelab.report.page import html

            return html(subject)
        case "md":
            from spikelab.report.markdown import markdown

            return markdown(subject)
        case "csv":
            from spikelab.report.csv_rows import rows_of

            return rows_of(subject)
        case "junit":
            from spikelab.report.junit import junit

            return junit(subject)
    raise ValueError(format_name)
