"""Compiled loops over sets of variables; a set is a row of words of 64 bits."""
