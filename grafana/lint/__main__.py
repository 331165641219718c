"""Checks the committed dashboards; exits with 1 when there is something to mend."""

import sys

from grafana.lint.reading import all_dashboards
from grafana.lint.rules import lint

findings = lint(list(all_dashboards().values()))
print(*findings, sep="\n")
sys.exit(1 if findings else 0)
