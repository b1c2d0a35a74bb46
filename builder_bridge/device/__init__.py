"""What runs on the phone: `pb`, the runner of the hand-off protocol, in POSIX shell."""
