"""The lines of vegeta's text report: `Name  [label, …]  value, …`.

Versions differ in the labels, so that a value is found by its label and never by its place.
"""

import re
from dataclasses import dataclass, field

from spikelab.importers.report import ReportError
from spikelab.units import parse_go_duration

_LINE = re.compile(
    r"(Requests|Duration|Latencies|Bytes In|Bytes Out|Success|Status Codes)\s+\[([^\]]*)\](.*)"
)
_COUNT = re.compile(r"[0-9]{1,15}")
_NUMBER = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,20})?")
_CODE = re.compile(r"([0-9]{1,3}):([0-9]{1,15})")
_ERRORS = "Error Set:"


@dataclass
class Lines:
    """Values by line and label. Each reader raises ReportError naming the line."""

    values: dict[tuple[str, str], str] = field(default_factory=dict)
    codes: dict[int, int] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)

    def has(self, name: str, label: str) -> bool:
        return (name, label) in self.values

    def count(self, name: str, label: str) -> int:
        return int(self._matching(_COUNT, name, label, "a whole number"))

    def number(self, name: str, label: str) -> float:
        return float(self._matching(_NUMBER, name, label, "a number"))

    def number_if_any(self, name: str, label: str) -> float | None:
        return self.number(name, label) if self.has(name, label) else None

    def share(self, name: str, label: str) -> float:
        """A share of 1 from a percentage."""
        percent = self._value(name, label).removesuffix("%")
        share = float(percent) / 100 if _NUMBER.fullmatch(percent) else 2.0
        if share > 1:
            raise ReportError(f"{name} [{label}]: '{percent}%' is no percentage")
        return share

    def seconds(self, name: str, label: str) -> float:
        try:
            return parse_go_duration(self._value(name, label))
        except ValueError as error:
            raise ReportError(f"{name} [{label}]: {error}") from error

    def _matching(self, form: re.Pattern[str], name: str, label: str, what: str) -> str:
        text = self._value(name, label)
        if not form.fullmatch(text):
            raise ReportError(f"{name} [{label}]: '{text}' is not {what}")
        return text

    def _value(self, name: str, label: str) -> str:
        if not self.has(name, label):
            raise ReportError(
                f"this is no text report of vegeta: it has no line '{name}' with '{label}'"
            )
        return self.values[name, label]


def read_lines(text: str) -> Lines:
    """The lines of one report. Raises ReportError."""
    lines = Lines()
    in_errors = False
    seen = set()
    for line in map(str.strip, text.splitlines()):
        match = _LINE.fullmatch(line)
        if not match:
            if in_errors and line:
                lines.errors.append(line)
            in_errors = in_errors or line == _ERRORS
            continue
        name, labels, values = match.groups()
        if name in seen:
            raise ReportError(f"it has two lines '{name}': keep one report in a file")
        seen.add(name)
        if name == "Status Codes":
            lines.codes = _codes(values)
        else:
            _take(lines, name, labels, values)
    return lines


def _take(lines: Lines, name: str, labels: str, values: str) -> None:
    keys = [label.strip() for label in labels.split(",")]
    texts = [value.strip() for value in values.split(",")]
    if len(keys) != len(texts):
        raise ReportError(f"{name}: {len(keys)} names, but {len(texts)} values")
    lines.values.update({(name, key): text for key, text in zip(keys, texts, strict=True)})


def _codes(values: str) -> dict[int, int]:
    codes: dict[int, int] = {}
    for word in values.split():
        match = _CODE.fullmatch(word)
        if not match:
            raise ReportError(f"Status Codes: '{word}' is not like 200:6000")
        codes[int(match[1])] = codes.get(int(match[1]), 0) + int(match[2])
    return codes
