"""The phone: workspace, hand-off over adb, build, log and artifacts."""
