"""Clients of the two stores. Both are plain HTTP; each function says what it sends."""
