"""The experiments of the paper: 31 data sets, nine methods, three tables; see README.md."""
