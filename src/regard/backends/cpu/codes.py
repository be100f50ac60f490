"""What plan and kernels call the parts by: numbers, since a kernel branches on them while it runs."""

DOT, GATED, TANH, GAUSSIAN, EXACT = range(5)  # what is between a query and a key
SOFTMAX, IDENTITY, RELU, SIGMOID, ENTMAX, HARD, GUMBEL = range(7)  # sparsemax is entmax with alpha = 2

# The columns of `at`: where each batch element begins in each flat array (for BITS, which table is its).
QUERY, KEY, VALUE, GATE_Q, GATE_K, UNITS, LINE, TABLE, SINK, RANGE, BITS, QUERY_ROWS, KEY_ROWS, VALUE_T = range(14)
ROLES = 14
