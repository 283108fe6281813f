"""Compiled array functions of the branch and cut."""
