"""Reports of other tools as runs of the lab: a module a format, each with `parse(text)`.

docs/import.md says what each format holds, and what is made of what it lacks.
"""
