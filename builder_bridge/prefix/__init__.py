"""The builder prefix on the phone: its contract, installation and settings."""
