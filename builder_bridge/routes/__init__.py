"""Ways to reach a builder prefix on a phone, behind one small protocol."""
