"""The catalogue of providers, as data."""
