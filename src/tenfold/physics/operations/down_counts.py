"""Nodes down at once in a larger fleet, from those of today's.

A fleet of several times the size is as many fleets side by side that fail at other times. So its
nodes down are a sum of independent counts: their distribution is a convolution, and their spread
grows with the root of the size. Nothing is drawn again for it.
"""

import numpy as np

from tenfold.physics.arrays import Floats


def tails_of_sum(*counts: tuple[Floats, int]) -> Floats:
    """Return the chance of more than 0, 1, 2 ... for a sum of independent counts.

    Each is given as its distributions, one a row, and how often it is added.
    """
    most = 1 + sum(times * (shares.shape[1] - 1) for shares, times in counts)
    length = 1 << (most - 1).bit_length()
    transformed = np.ones(1, complex)
    for shares, times in counts:
        transformed = transformed * np.fft.rfft(shares, length) ** times
    found = np.clip(np.fft.irfft(transformed, length)[:, :most], 0.0, None)
    above = np.cumsum(found[:, ::-1], axis=1)[:, ::-1]
    return np.concatenate([above[:, 1:], np.zeros((len(above), 1))], axis=1)
