"""Access control: principals and roles, passwords, sessions, lockout, and the audit log."""
