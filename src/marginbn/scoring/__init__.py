"""Local scores of all parent sets that can matter, at speed."""
