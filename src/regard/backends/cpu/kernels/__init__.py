"""The compiled part. Importing this imports numba."""

from regard.backends.cpu.kernels.backward import backward
from regard.backends.cpu.kernels.forward import forward
from regard.backends.cpu.kernels.pack import pack
from regard.backends.cpu.kernels.records import GRADIENTS, OUTPUT, PROBLEM
from regard.backends.cpu.kernels.simd import BYTES

__all__ = ["BYTES", "GRADIENTS", "OUTPUT", "PROBLEM", "backward", "forward", "pack"]
