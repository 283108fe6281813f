"""The answer as a Bayesian network: its questions, explanations and pictures."""
