"""Several runs that answer one question: their order, their state on disk, their answer."""
