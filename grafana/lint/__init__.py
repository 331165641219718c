"""The rules of the dashboards: `python -m grafana.lint` checks grafana/dashboards/*.json.

Modelled on Grafana's dashboard-linter, which asks for a job and an instance where this lab has a
run (testid) and a target. `reading` finds panels and queries in a dashboard's JSON, `rules` judges
them, `exceptions` lists what may break a rule, each with its reason.
"""
