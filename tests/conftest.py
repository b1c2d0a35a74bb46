"""Fixtures for the whole test tree."""

pytest_plugins = ["tests.box.fixtures"]
