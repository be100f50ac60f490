"""Modules: layers that hold parameters, built on the calls of `regard`."""

from regard.nn.attention import Attention, Cache, LengthMap, MultiHeadAttention
from regard.nn.baselines import FullyConnectedSequence, FullyConnectedWindow, parameter_counts
from regard.nn.layers import DecoderLayer, DecoderStack, EncoderLayer, EncoderStack, FeedForward, LayerCache
from regard.nn.positions import Learned, Rotary, Sinusoidal

__all__ = [
    "Attention",
    "Cache",
    "DecoderLayer",
    "DecoderStack",
    "EncoderLayer",
    "EncoderStack",
    "FeedForward",
    "FullyConnectedSequence",
    "FullyConnectedWindow",
    "LayerCache",
    "Learned",
    "LengthMap",
    "MultiHeadAttention",
    "Rotary",
    "Sinusoidal",
    "parameter_counts",
]
