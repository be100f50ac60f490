"""The small whole numbers by which the kernels know their parts: constants of a compilation, without Triton."""

from __future__ import annotations

DOT, GATED, GAUSSIAN, TANH, DISTANCE, EXACT = range(6)  # scores; from TANH on: a loop over units, pair by pair
SOFTMAX, SIGMOID, RELU, IDENTITY, SPARSEMAX, ENTMAX15, ENTMAX = range(7)  # normalizers; from SPARSEMAX on: a threshold
END, ALIBI, RELATIVE, DENSE, CAP = range(5)  # what is done to a score after its content
(
    AND,
    OR,
    NOT,
    BAND,
    STRIDE,
    DIAGONAL,
    RANDOM,
    PADDING,
    DOCUMENTS,
    TABLE,
    CROSS,
    LISTS,
    HEADS,
    SHIFT,
    FIRST_HEAD,
) = range(15)  # masks
WHOLE, HALF, BRAIN = range(3)  # how exact: float32, float16, bfloat16
ALL, RANGE, LISTED = range(3)  # which blocks of keys a tile of rows visits: all, one run, those on a list


def varying(*numbers: int) -> tuple[int, ...]:
    """Whole numbers inside a tuple, so that Triton compiles no kernel of its own where one of them is 1 or divisible by
    16: of a tuple it cannot be told to look away."""
    return tuple(4 * number + 3 for number in numbers)
