"""The map in docs/development.md has a place for every module of the package, and for no other."""

import re

from spikelab import paths


def test_the_map_names_every_module() -> None:
    page = (paths.ROOT / "docs" / "development.md").read_text(encoding="utf-8")
    table = page.partition("| | modules |")[2].partition("\n\n")[0]
    named = re.findall(r"`([a-z0-9_/]+[a-z0-9])`", table)
    package = paths.ROOT / "spikelab"
    modules = {
        str(path.relative_to(package).with_suffix(""))
        for path in package.rglob("*.py")
        if not path.stem.startswith("__")
    }
    assert sorted(named) == sorted(modules)
