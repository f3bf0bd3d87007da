"""Ways to break the package on purpose, each with the test that notices: ``make mutants``."""
