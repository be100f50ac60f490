"""HOW attention is computed. Backends never import each other; each offers

    forward(query, key, value, call) -> output        what the formula says, its own way
    rows(query, key, call, rows)     -> weights       the chosen queries' weights over all keys
    summary(query, key, call, ...)   -> statistics    without an n_q x n_k tensor where it can
    why_not(query, key, value, call) -> str | None    the reason it must refuse, or None

and receives tensors whose shapes have been checked and whose unreachable keys have been blanked.
"""
