"""What is optimised: candidate parent sets, their scores and margins, and the problem made of them."""
