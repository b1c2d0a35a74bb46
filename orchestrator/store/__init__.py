"""What the service keeps: builds, logs and artifacts."""
