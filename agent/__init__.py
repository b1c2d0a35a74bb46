"""The model: provider bytes, messages, decisions, tools and transcripts."""
