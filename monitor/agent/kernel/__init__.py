"""Classifies lines of the kernel log, and keeps a bounded summary of them."""
