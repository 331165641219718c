"""Figures of reports: matplotlib's, as SVG that stands in a page."""
