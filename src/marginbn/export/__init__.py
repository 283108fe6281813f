"""File formats for networks; each sibling reads or writes one of them."""
