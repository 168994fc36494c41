"""The shape of a transformer: the dimensions needed to size and time it."""

from msgspec import Struct

from tenfold.model.facts.fact import Fact


class Mla(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Multi-head latent attention: keys and values come from one small latent.

    Without `q_rank` the queries are projected straight from the hidden state.
    """

    q_rank: int | None = None
    kv_rank: int
    rope_head_dim: int
    nope_head_dim: int
    value_head_dim: int


class ModelShape(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Layer counts and widths of a decoder (or encoder) stack.

    `ffn` is the inner width of one expert in a mixture; the first `dense_layers`
    layers use `dense_ffn` instead. `heads * head_dim` need not equal `hidden`.
    """

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    vocab: int
    gated: bool = True
    tied: bool = False
    attention_bias: bool = False
    experts: int = 0
    experts_per_token: int = 0
    shared_experts: int = 0
    shared_ffn: int | None = None
    dense_layers: int = 0
    moe_every: int = 1
    dense_ffn: int | None = None
    learned_positions: int = 0
    mla: Mla | None = None
    attention_layers: int | None = None
    """Of hybrids: the other layers carry a state through the sequence in linear time."""
    mixer_width: int = 0
    """Width of the projection into such a mixer, where it is not that of attention."""
    scan_width: int = 0
    window: int = 0
    window_layers: int = 0
    """Layers that attend only to the last `window` tokens."""
    native_4bit_experts: bool = False
    """The released weights have 4-bit experts and 16-bit everything else."""
    parallel_block: bool = False
    """Attention and feed-forward read the same input and are summed once."""
    rope_theta: float = 0.0
    """Base of the rotary positions; 0 where it is not known."""
    qk_norm: bool = False
    """Queries and keys are normalised before attention."""
    context: int = 4096

    @property
    def moe_layers(self) -> int:
        """Layers whose feed-forward part is a mixture of experts."""
        return (self.layers - self.dense_layers) // self.moe_every if self.experts else 0

    @property
    def attention_params(self) -> int:
        """Weights of one attention block, biases left out."""
        if self.mixer_width:
            return self.hidden * (self.mixer_width + self.heads * self.head_dim)
        if self.mla is None:
            return self.hidden * self.head_dim * (2 * self.heads + 2 * self.kv_heads)
        mla = self.mla
        query_dim = self.heads * (mla.nope_head_dim + mla.rope_head_dim)
        query = (
            self.hidden * query_dim
            if mla.q_rank is None
            else mla.q_rank * (self.hidden + query_dim)
        )
        latent = self.hidden * (mla.kv_rank + mla.rope_head_dim)
        expand = mla.kv_rank * self.heads * (mla.nope_head_dim + mla.value_head_dim)
        return query + latent + expand + self.heads * mla.value_head_dim * self.hidden

    def ffn_params(self, width: int) -> int:
        """Weights of one feed-forward block of the given inner width."""
        return (3 if self.gated else 2) * self.hidden * width

    @property
    def params(self) -> int:
        """All weights, norms and biases left out (they are below 0.1%)."""
        return self._params(self.experts)

    @property
    def params_active(self) -> int:
        """Weights that one token passes through."""
        return self._params(self.experts_per_token)

    def _params(self, experts: int) -> int:
        shared = self.shared_experts * self.ffn_params(self.shared_ffn or self.ffn)
        router = self.hidden * self.experts
        moe = self.moe_layers * (experts * self.ffn_params(self.ffn) + shared + router)
        dense = (self.layers - self.moe_layers) * self.ffn_params(self.dense_ffn or self.ffn)
        embeddings = self.vocab * self.hidden * (1 if self.tied else 2)
        positions = self.learned_positions * self.hidden
        return self.layers * self.attention_params + moe + dense + embeddings + positions

    @property
    def kv_bytes_per_token(self) -> int:
        """Key-value cache of one token over all layers, at two bytes a value."""
        if self.mla is not None:
            return 2 * self.layers * (self.mla.kv_rank + self.mla.rope_head_dim)
        return 2 * 2 * self.layers * self.kv_heads * self.head_dim


class ModelPreset(Fact, frozen=True, kw_only=True):
    """A published model: its shape and the parameter count its authors state."""

    family: str
    params_b: float
    params_active_b: float | None = None
    shape: ModelShape
