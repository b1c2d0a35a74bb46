"""HTTP routes: parse, call, answer."""
