"""Speed: instances, one record per run, tables with ratios. See ``python -m benchmarks --help``."""
