"""Compiled code over sorted lists of parent sets."""
