"""Decomposable scores as sorted lists of parent sets: bounds by dual ascent, search over orders."""
