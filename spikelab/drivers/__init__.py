"""The load drivers, one module each, and the process they run in."""
