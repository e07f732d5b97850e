"""Interoperation with Alertmanager: its silences, and its webhook calls to this daemon."""
