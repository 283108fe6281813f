"""A search that keeps its proof: one tree, two relaxations, one certificate."""
