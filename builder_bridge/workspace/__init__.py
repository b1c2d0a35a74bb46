"""What is handed over: snapshots of a workspace, archives and checks before the hand-off."""
