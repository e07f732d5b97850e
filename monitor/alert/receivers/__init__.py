"""Receivers of alerts, one file each. They send; they decide nothing about what is worth sending."""
