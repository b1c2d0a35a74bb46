"""Durable workflows that carry a build from the queue to its result."""
