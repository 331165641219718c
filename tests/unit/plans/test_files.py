"""Plan files: the published schema fits them, and no damage to one gives more than a line."""

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spikelab import paths
from spikelab.errors import UsageError
from spikelab.plans.estimate import estimate
from spikelab.plans.load import load_plan, plan_files
from spikelab.plans.model import Plan

SCHEMA = jsonschema.Draft202012Validator(
    json.loads((paths.ROOT / "docs" / "plan.schema.json").read_text())
)


READY = {name: yaml.safe_load(path.read_text()) for name, path in plan_files().items()}


# Values of every kind that YAML knows, some of which are right in many places.
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 10**12),
    st.floats(),
    st.dates(),
    st.text(max_size=8),
    st.sampled_from(
        ["", "5s", "-1", "99999h", "rate", "${rate}", "${nobody}", "${", "k6", "users", "[0]"]
    ),
)


VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5) | SCALARS, inner)
    ),
    max_leaves=4,
)


KEYS = sorted({*Plan.model_fields, "value", "kind", "set", "settings", "values", "first", "step"})


def _places(value: Any, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [here] if here else []
    if not isinstance(value, dict | list):
        return found
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
        found += _places(inner, (*here, key))
    return found


def _damaged(data: st.DataObject, plan: Any) -> Any:
    """The plan with a part replaced, left out, doubled or added."""
    plan = deepcopy(plan)
    *above, last = data.draw(st.sampled_from(_places(plan)))
    parent = plan
    for key in above:
        parent = parent[key]
    match data.draw(st.sampled_from(["replace", "drop", "double", "add"])):
        case "replace":
            parent[last] = data.draw(VALUES)
        case "drop":
            del parent[last]
        case "double" if isinstance(parent, list):
            parent.append(parent[last])
        case _ if isinstance(parent, dict):
            parent[data.draw(st.sampled_from(KEYS) | st.text(max_size=5))] = data.draw(VALUES)
    return plan


@pytest.mark.parametrize("name", READY)
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_a_damaged_plan_is_a_plan_or_one_line(name: str, tmp_path: Path, data: Any) -> None:
    path = tmp_path / "damaged.yaml"
    plan = READY[name]
    for _ in range(data.draw(st.integers(1, 2))):
        plan = _damaged(data, plan) if plan else plan
    path.write_text(yaml.safe_dump(plan, allow_unicode=True), encoding="utf-8")
    try:
        estimate(load_plan(str(path)))
    except UsageError as error:
        assert "\n" not in str(error)
        assert str(error).startswith(f"{path}: ")


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(name=st.sampled_from(sorted(READY)), data=st.data())
def test_a_file_with_a_typing_mistake_is_a_plan_or_one_line(
    name: str, tmp_path: Path, data: Any
) -> None:
    path = tmp_path / "damaged.yaml"
    text = plan_files()[name].read_text()
    place = data.draw(st.integers(0, len(text)))
    left_out = data.draw(st.integers(0, 3))
    typed = data.draw(st.text(alphabet=':{}[]"&*!|>%@#- \n\tax0', max_size=3))
    path.write_text(text[:place] + typed + text[place + left_out :], encoding="utf-8")
    try:
        load_plan(str(path))
    except UsageError as error:
        assert "\n" not in str(error)
        assert str(error).startswith(f"{path}: ")


@pytest.mark.parametrize("name", READY)
def test_a_plan_s_file_fits_the_published_schema_as_it_is_written(name: str) -> None:
    SCHEMA.validate(READY[name])


def test_the_plan_in_the_docs_loads(tmp_path: Path) -> None:
    page = (paths.ROOT / "docs" / "plans.md").read_text()
    path = tmp_path / "my-rate.yaml"
    path.write_text(page.split("```yaml\n")[1].split("```")[0])
    SCHEMA.validate(yaml.safe_load(path.read_text()))
    assert load_plan(str(path), preset="quick").phases[1].value == 400


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("value: ${rate}", "value: many"),
        ("value: ${rate}", "value: 0"),
        ("value: ${rate}", "value: ${rate} a second"),
        ("kind: rate", "kind: rates"),
        ("phases:", "phazes:"),
        ("maximum: 20000", "maximum: '${rate}'"),
        ("judged: false", "judged: no way"),
    ],
)
def test_an_editor_sees_a_mistake_by_the_published_schema(old: str, new: str) -> None:
    text = (
        "name: mine\nabout: a plan\nscript: steady\n"
        "parameters: {rate: {about: r, default: 5, maximum: 20000}}\n"
        "phases:\n- name: a\n  kind: rate\n  value: ${rate}\n  duration: 5s\n  judged: false\n"
    )
    SCHEMA.validate(yaml.safe_load(text))
    assert old in text
    assert not SCHEMA.is_valid(yaml.safe_load(text.replace(old, new)))
