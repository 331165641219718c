"""Entry point of ``python -m spikelab``, which the launcher ``./lab`` calls."""

import sys

if __name__ == "__main__":
    try:
        from spikelab.cli import main

        main()
    except KeyboardInterrupt:
        # So early that there was nothing to stop yet.
        sys.exit(130)
