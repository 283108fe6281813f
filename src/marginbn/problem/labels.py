"""Labels of states that stand for no value of their own.

A module of their own, without numpy: the command line words its help with them.
"""

ANY_NUMBER = "any number"
"""The only bin of a numeric column without cuts."""

MISSING_LABEL = "(missing)"
"""The state for missing values, where a column has one."""
