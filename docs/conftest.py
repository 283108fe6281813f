"""Doctests of the pages run with the tests; settings and generated pages are no tests."""

collect_ignore = ["conf.py", "conftest.py"]
collect_ignore += ["results.rst", "unseen.rst", "benchmarks.rst", "recovery.rst"]
collect_ignore_glob = ["_build/*", "gallery/*", "api/generated/*"]
