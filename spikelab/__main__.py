"""Entry point of ``python -m spikelab``, which the launcher ``./lab`` calls."""

from spikelab.cli import main

main()
