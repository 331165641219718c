"""The target's settings: declared in its target.yml, validated here before anything starts."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Literal

import yaml
from pydantic import BaseModel, ConfigDict

from spikelab import paths
from spikelab.errors import UsageError, did_you_mean
from spikelab.units import parse_whole_number

Value = int | bool | str


class Setting(BaseModel):
    """One setting as target.yml declares it."""

    model_config = ConfigDict(extra="forbid")

    about: str
    property: str
    type: Literal["integer", "milliseconds", "boolean", "choice"]
    default: Value
    choices: list[str] = []
    minimum: int | None = None
    maximum: int | None = None
    default_follows: str | None = None
    at_most: str | None = None
    needs_java: int | None = None
    metric: str

    def parse(self, name: str, text: str) -> Value:
        """The value of a text such as ``200`` or ``true``. Raises UsageError in one line."""
        if self.type == "boolean":
            if text.lower() not in ("true", "false"):
                raise UsageError(f"{name}={text}: must be true or false (target.yml)")
            return text.lower() == "true"
        if self.type == "choice":
            if text not in self.choices:
                known = " or ".join(self.choices)
                raise UsageError(
                    f"{name}={text}: must be {known} (target.yml)"
                    + did_you_mean(text, self.choices)
                )
            return text
        low, high = self.minimum, self.maximum
        number = parse_whole_number(text)
        if number is None or not (low or 0) <= number <= (high or 2**31 - 1):
            unit = " of milliseconds" if self.type == "milliseconds" else ""
            raise UsageError(
                f"{name}={text}: must be a whole number{unit} from {low} to {high} (target.yml)"
            )
        return number

    def exported(self, value: Value) -> float:
        """The value as `tomcat_setting` shows it; of a choice its place in the list."""
        return float(self.choices.index(value) if isinstance(value, str) else value)


class TargetDeclaration(BaseModel):
    """A target.yml: its name and its settings by environment variable."""

    model_config = ConfigDict(extra="forbid")

    name: str
    about: str
    settings: dict[str, Setting]

    def resolve(self, *layers: Mapping[str, object]) -> dict[str, Value]:
        """Every setting's value: the defaults, overridden layer by layer, last wins.

        Raises UsageError for an unknown name or a value out of its range.
        """
        chosen: dict[str, Value] = {}
        for layer in layers:
            for name, value in layer.items():
                if name not in self.settings:
                    raise UsageError(
                        f"unknown target setting '{name}'" + did_you_mean(name, self.settings)
                    )
                text = str(value).lower() if isinstance(value, bool) else str(value).strip()
                if text:
                    chosen[name] = self.settings[name].parse(name, text)
        return self._complete(chosen)

    def _complete(self, chosen: dict[str, Value]) -> dict[str, Value]:
        """Fills in the defaults, some of which depend on other settings."""
        values: dict[str, Value] = {}
        for name, setting in self.settings.items():
            follows = setting.default_follows
            default = values[follows] if follows else setting.default
            values[name] = chosen.get(name, default)
            limit = values[setting.at_most] if setting.at_most else None
            if limit is not None and float(values[name]) > float(limit):
                if name in chosen:
                    raise UsageError(
                        f"{name}={values[name]}: may not exceed {setting.at_most}={limit} "
                        "(target.yml)"
                    )
                values[name] = limit
        return values


@cache
def load_target_declaration(folder: Path = paths.TARGET) -> TargetDeclaration:
    """The declaration of the target in a folder of targets/."""
    return TargetDeclaration.model_validate(
        yaml.safe_load((folder / "target.yml").read_text(encoding="utf-8"))
    )
