"""Node relaxations of the tree search."""
