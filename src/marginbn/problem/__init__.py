"""What is maximised: candidate parent sets, their scores and margins, the problem made of them."""

ANY_NUMBER = "any number"
"""The label of the only bin of a numeric column without cuts."""

MISSING_LABEL = "(missing)"
"""The label of the state for missing values, where a column has one."""
