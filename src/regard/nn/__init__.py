"""Modules: layers that hold parameters, built on the calls of `regard`."""

from regard.nn.attention import Attention, Cache, LengthMap, MultiHeadAttention
from regard.nn.baselines import FullyConnectedSequence, FullyConnectedWindow, parameter_counts
from regard.nn.embeddings import Embedding, OneHot, Pretrained
from regard.nn.layers import DecoderLayer, DecoderStack, EncoderLayer, EncoderStack, FeedForward, LayerCache
from regard.nn.positions import Learned, Rotary, Sinusoidal
from regard.nn.vectors import Vectors, read_vectors

__all__ = [
    "Attention",
    "Cache",
    "DecoderLayer",
    "DecoderStack",
    "Embedding",
    "EncoderLayer",
    "EncoderStack",
    "FeedForward",
    "FullyConnectedSequence",
    "FullyConnectedWindow",
    "LayerCache",
    "Learned",
    "LengthMap",
    "MultiHeadAttention",
    "OneHot",
    "Pretrained",
    "Rotary",
    "Sinusoidal",
    "Vectors",
    "parameter_counts",
    "read_vectors",
]
