"""What NVIDIA documents about its error codes: XIDs of GPUs and SXids of NVSwitches."""
