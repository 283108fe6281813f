"""The class model: p(class | features) as a sum of trained tables, and its answers."""
