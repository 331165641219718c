"""A against B in finished runs: what is compared, in which pairs, and what came of it."""
