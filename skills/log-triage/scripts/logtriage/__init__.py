"""Log triage, along the data: lines → entries (moments, severity) → template → groups → render."""
