"""From one row of scores to its weights, and from the weights' gradient to the scores'.

A pair that does not exist has score -inf and gets weight exactly 0. `stat` keeps two numbers of each row,
with which backward finds the weights again without looking for maxima or thresholds.
"""

from __future__ import annotations

import math

from regard.backends.cpu.codes import ENTMAX, GUMBEL, HARD, IDENTITY, RELU, SIGMOID, SOFTMAX
from regard.backends.cpu.kernels.elementary import exp, fill, power, sigmoid
from regard.backends.cpu.kernels.jit import inner
from regard.backends.cpu.kernels.simd import lanes, largest, load, root, some, store, total, where

NOTHING = -math.inf


@inner
def greatest(s, start, stop):
    """The largest of s[start:stop], -inf if there is none; NaN may be passed over."""
    best = fill(load(s, start), NOTHING)
    for c in range(start, stop, lanes(s)):
        x = load(s, c)
        best = where(x > best, x, best)
    return largest(best)


@inner
def exponentials(s, start, stop, w, to, shift, factor):
    """w = exp((s - shift) · factor), and their sum."""
    step = lanes(s)
    sum_ = fill(load(s, start), 0.0)
    low, by = fill(sum_, shift), fill(sum_, factor)
    for c in range(0, stop - start, step):
        x = exp((load(s, start + c) - low) * by)
        store(w, to + c, x)
        sum_ = sum_ + x
    return total(sum_)


@inner
def first_place(s, start, stop, value):
    for c in range(start, stop):
        if s[c] == value:
            return c
    return start  # a NaN hid it


@inner
def _gather(s, start, stop, least, near):
    """The scores above `least`, side by side in `near`, filled up to whole registers with -inf; how many."""
    step, count = lanes(s), 0
    bound = fill(load(s, start), least)
    for c in range(start, stop, step):
        if some(load(s, c) > bound):
            for x in range(c, c + step):
                if s[x] > least:
                    near[count] = s[x]
                    count += 1
    for x in range(count, count + step):
        near[x] = NOTHING
    return count


@inner
def _power_sums(near, count, top, scale, tau, exponent):
    """Σ z₊^p and Σ z₊^(p-1) with z = (s - top)·scale - tau."""
    zero = fill(load(near, 0), 0.0)
    sums, slopes = zero, zero
    for c in range(0, count, lanes(near)):
        z = (load(near, c) - fill(zero, top)) * fill(zero, scale) - fill(zero, tau)
        z = where(z > zero, z, zero)
        if exponent == 1.0:
            sums = sums + z
            slopes = slopes + where(z > zero, fill(zero, 1.0), zero)
        elif exponent == 2.0:
            sums = sums + z * z
            slopes = slopes + z
        else:
            p = power(z, exponent)
            sums = sums + p
            slopes = slopes + where(z > zero, p / where(z > zero, z, fill(zero, 1.0)), zero)
    return total(sums), total(slopes)


@inner
def threshold(near, count, top, alpha):
    """τ in [-1, 0] with Σ [(α-1)(s - top) - τ]₊^(1/(α-1)) = 1.

    The sum falls with τ and is convex for α ≤ 2, so Newton's steps from below never overshoot. For larger
    α bisection of log(-τ) brings it close first."""
    scale, p = alpha - 1.0, 1.0 / (alpha - 1.0)
    precision = 6e-8 if near.itemsize == 4 else 1e-16
    tau, steps = -1.0, 100
    if alpha > 2.0:
        low, high = 0.0, max((1.0 - alpha) * math.log(count), -87.0)
        for _ in range(60):
            middle = (low + high) / 2
            above, _ = _power_sums(near, count, top, scale, -math.exp(middle), p)
            if above > 1.0:
                low = middle
            else:
                high = middle
        tau, steps = -math.exp((low + high) / 2), 2
    for _ in range(steps):
        sum_, slope = _power_sums(near, count, top, scale, tau, p)
        if not slope > 0.0:
            break
        step = (sum_ - 1.0) / (p * slope)
        step = min(max(step, tau / 2), -tau / 2)
        before, tau = tau, tau + step
        if tau == before or abs(step) <= -tau * precision:
            break
    return tau


@inner
def weigh(s, start, stop, kind, number, sink, near, stat, row):
    """Replace the scores s[start:stop] of one row by weights; returns what they are still to be multiplied by."""
    step = lanes(s)
    if kind == SOFTMAX:
        top = max(greatest(s, start, stop), sink)
        if top == NOTHING:
            stat[2 * row], stat[2 * row + 1] = NOTHING, 0.0
            return nothing_but_nan(s, start, stop)
        sum_ = exponentials(s, start, stop, s, start, top, 1.0) + math.exp(sink - top)
        stat[2 * row], stat[2 * row + 1] = top, 1.0 / sum_
        return 1.0 / sum_
    if kind in (IDENTITY, RELU, SIGMOID):
        zero = fill(load(s, start), 0.0)
        nothing, bias = fill(zero, NOTHING), fill(zero, number)
        for c in range(start, stop, step):
            x = load(s, c)
            if kind == RELU:
                w = where(x <= zero, zero, x)
            elif kind == SIGMOID:
                w = sigmoid(x + bias)
            else:
                w = where(x == nothing, zero, x)
            store(s, c, w)
        return 1.0
    top = greatest(s, start, stop)
    stat[2 * row], stat[2 * row + 1] = top, 0.0
    if kind == ENTMAX and top != NOTHING:
        scale = number - 1.0
        count = _gather(s, start, stop, top - 1.0 / scale, near)
        tau = threshold(near, count, top, number)
        stat[2 * row + 1] = tau
        return entmax_weights(s, start, stop, s, start, number, top, tau)
    if kind == ENTMAX:
        return nothing_but_nan(s, start, stop)
    place = -1 if top == NOTHING else first_place(s, start, stop, top)
    for c in range(start, stop, step):
        store(s, c, fill(load(s, c), 0.0))
    if place >= 0:
        s[place] = 1.0
    return 1.0


@inner
def nothing_but_nan(s, start, stop):
    """The weights of a row that has no score above -inf: 0, or NaN, which must show."""
    for c in range(start, stop, lanes(s)):
        x = load(s, c)
        store(s, c, where(x == fill(x, NOTHING), fill(x, 0.0), x))
    return 1.0


@inner
def entmax_weights(s, start, stop, w, to, alpha, top, tau):
    """The weights, given the threshold, and what they are to be multiplied by for a sum of 1."""
    zero = fill(load(s, start), 0.0)
    sum_, p = zero, 1.0 / (alpha - 1.0)
    high, by, low = fill(zero, top), fill(zero, alpha - 1.0), fill(zero, tau)
    for c in range(0, stop - start, lanes(s)):
        z = (load(s, start + c) - high) * by - low
        z = where(z > zero, z, zero)
        if p == 2.0:
            z = z * z
        elif p != 1.0 and some(z > zero):
            z = power(z, p)
        store(w, to + c, z)
        sum_ = sum_ + z
    sum_ = total(sum_)
    return 1.0 / sum_ if p != 1.0 and p != 2.0 and sum_ > 0.0 else 1.0


@inner
def weigh_again(s, start, stop, w, kind, number, sink, stat, row):
    """The final weights of a row from its scores, into w[start:stop]; s is kept."""
    step = lanes(s)
    zero = fill(load(s, start), 0.0)
    first, second = stat[2 * row], stat[2 * row + 1]
    by = 1.0
    if kind == SOFTMAX:
        by = second
        if first != NOTHING:
            exponentials(s, start, stop, w, start, first, 1.0)
    elif kind == ENTMAX:
        if first != NOTHING:
            by = entmax_weights(s, start, stop, w, start, number, first, second)
    elif kind in (HARD, GUMBEL):
        top = greatest(s, start, stop)
        for c in range(start, stop, step):
            store(w, c, zero)
        if top != NOTHING:
            w[first_place(s, start, stop, top)] = 1.0
        return
    else:
        nothing, bias = fill(zero, NOTHING), fill(zero, number)
        for c in range(start, stop, step):
            x = load(s, c)
            if kind == RELU:
                x = where(x <= zero, zero, x)
            elif kind == SIGMOID:
                x = sigmoid(x + bias)
            else:
                x = where(x == nothing, zero, x)
            store(w, c, x)
        return
    if first == NOTHING:
        for c in range(start, stop, step):
            store(w, c, zero)
    elif by != 1.0:
        for c in range(start, stop, step):
            store(w, c, load(w, c) * fill(zero, by))


@inner
def scores_gradient(s, w, g, start, stop, kind, number):
    """g: from the gradient of the weights to the gradient of the scores, in place.
    Returns Σ w·g, what a sink needs."""
    step = lanes(s)
    zero = fill(load(s, start), 0.0)
    one = fill(zero, 1.0)
    sum_, norm = zero, zero
    if kind == GUMBEL:  # straight through: the gradient of softmax(s / temperature)
        top = greatest(s, start, stop)
        if top != NOTHING:
            all_ = exponentials(s, start, stop, w, start, top, 1.0 / number)
            for c in range(start, stop, step):
                store(w, c, load(w, c) * fill(zero, 1.0 / all_))
    if kind in (SOFTMAX, GUMBEL):
        for c in range(start, stop, step):
            sum_ = sum_ + load(w, c) * load(g, c)
        mean = total(sum_)
        by = 1.0 / number if kind == GUMBEL else 1.0
        for c in range(start, stop, step):
            store(g, c, load(w, c) * (load(g, c) - fill(zero, mean)) * fill(zero, by))
        return mean
    if kind == ENTMAX:
        for c in range(start, stop, step):
            u = load(w, c)
            inside = u > zero
            if number == 1.5:
                u = where(inside, root(u), zero)
            elif number == 2.0:
                u = where(inside, one, zero)
            elif some(inside):
                u = power(u, 2.0 - number)
            store(w, c, u)
            sum_ = sum_ + u * load(g, c)
            norm = norm + u
        norm_ = total(norm)
        mean = total(sum_) / norm_ if norm_ > 0.0 else 0.0
        for c in range(start, stop, step):
            u = load(w, c)
            store(g, c, where(u > zero, u * (load(g, c) - fill(zero, mean)), zero))
        return 0.0
    nothing = fill(zero, NOTHING)
    for c in range(start, stop, step):
        x, u = load(s, c), load(g, c)
        if kind == RELU:
            u = where(x > zero, u, zero)
        elif kind == SIGMOID:
            v = load(w, c)
            u = where(v > zero, v * (one - v) * u, zero)
        elif kind == IDENTITY:
            u = where(x == nothing, zero, u)
        else:
            u = zero
        store(g, c, u)
    return 0.0
