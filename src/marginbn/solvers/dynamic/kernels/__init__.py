"""Compiled loops."""
