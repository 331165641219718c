"""What the locustfiles share."""
