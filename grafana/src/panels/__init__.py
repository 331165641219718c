"""Panels in the lab's one style, made from signals.

A panel's description is how to read it, followed by what each of its signals means. `width` and
`height` are in grid cells (24 columns).
"""
