"""What tests of several parts share: run records, servers, and runs of the drivers' scripts."""
