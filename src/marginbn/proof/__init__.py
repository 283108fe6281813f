"""Certificates: files that let anybody check what a search claims, see :mod:`.file`."""
