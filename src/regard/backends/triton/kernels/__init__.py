"""The kernels: only here, and in launch.py, is Triton imported."""
