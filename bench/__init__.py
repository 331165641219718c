"""Measurements of the lab itself, each printing a ratio; see README.md."""
