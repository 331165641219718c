"""Spikelab: the thin thread between k6, Locust, a target and the stores (the code behind ./lab)."""

__version__ = "0.1.0"
