"""What attackers try, line by line of docs/threat-model.md."""
