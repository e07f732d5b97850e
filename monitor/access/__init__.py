"""Who may do what: principals and roles, passwords, sessions, lockout, and the audit log."""
