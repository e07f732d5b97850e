"""Tests of monitor.job_results."""
