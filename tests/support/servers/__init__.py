"""Servers whose behaviour is known, as processes of their own."""
