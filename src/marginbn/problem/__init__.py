"""What is maximised: candidate parent sets, their scores and margins, the problem made of them."""
