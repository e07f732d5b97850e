"""`gpuwarden doctor`: checks of an installation, and what to do about what they find."""
