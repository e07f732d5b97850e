"""What users read, and what makes a part of it. Nothing of this is installed."""
