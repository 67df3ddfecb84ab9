#include "absl/strings/str_cat.h"
#include "ir/models/feed_forward.h"
#include "ir/models/layers.h"
#include "ir/models/model.h"
#include "ir/models/transformer_keys.h"
#include "ir/op_kind.h"
#include "support/status.h"

// Decoder-only transformers. By default GPT-2 (Radford et al. 2019) and GPT-3 (Brown et al. 2020):
// norm before attention and before the feed-forward, learned positions, biases. With mlp=swiglu
// Llama (Touvron et al. 2023): root-mean-square norms, rotary positions, no biases, a head of its
// own. With experts Mixtral (Jiang et al. 2024). With attention=latent, shared experts and first
// layers without experts DeepSeek-V2 and V3 (2405.04434, 2412.19437).

namespace orrery::ir {
namespace gpt_cc {
namespace {

constexpr ModelKey kKeys[] = {
    {.name = "layers", .fallback = "12", .summary = "blocks", .max = 100'000},
    kHiddenKey,
    kHeadsKey,
    kSeqKey,
    kVocabKey,
    kKvHeadsKey,
    {.name = "head_dim",
     .fallback = "",
     .summary = "width of a head [hidden / heads]",
     .max = 1 << 20},
    {.name = "ffn",
     .fallback = "",
     .summary = "width of the feed-forward [4 hidden; swiglu: 8/3 hidden, up to a multiple of 256]",
     .max = 1 << 24},
    {.name = "mlp",
     .fallback = "gelu",
     .summary = "activation of the feed-forward",
     .choices = "gelu|swiglu"},
    {.name = "norm", .fallback = "", .summary = "[layer; swiglu: rms]", .choices = "layer|rms"},
    {.name = "position",
     .fallback = "",
     .summary = "how positions are told [learned; swiglu: rotary]",
     .choices = "learned|rotary|none"},
    {.name = "bias",
     .fallback = "",
     .summary = "of products and norms [1; swiglu: 0]",
     .choices = "0|1"},
    {.name = "tied_embeddings",
     .fallback = "",
     .summary = "whether the head is the embedding [1; swiglu: 0]",
     .choices = "0|1"},
    {.name = "qkv",
     .fallback = "",
     .summary = "one product that is split, or three side by side [separate]",
     .choices = "packed|separate"},
    kFlashKey,
    kDropoutKey,
    kAttentionDropoutKey,
    {.name = "experts",
     .fallback = "0",
     .summary = "of each block; 0: a plain feed-forward",
     .min = 0,
     .max = 1 << 12},
    kTopkKey,
    kExpertFfnKey,
    kSharedFfnKey,
    {.name = "dense_layers",
     .fallback = "0",
     .summary = "first blocks with a plain feed-forward in place of experts",
     .min = 0,
     .max = 100'000},
    {.name = "attention",
     .fallback = "heads",
     .summary = "latent: queries, keys and values of compressed inputs, head_dim wide without "
                "positions (DeepSeek-V2)",
     .choices = "heads|latent"},
    {.name = "q_rank",
     .fallback = "0",
     .summary = "latent: width of compressed inputs of queries; 0: not compressed",
     .min = 0,
     .max = 1 << 20},
    {.name = "kv_rank",
     .fallback = "512",
     .summary = "latent: width of compressed inputs of keys and values",
     .max = 1 << 20},
    {.name = "rope_dim",
     .fallback = "64",
     .summary = "latent: further width of queries and keys, with positions",
     .max = 1 << 16},
    {.name = "v_dim",
     .fallback = "",
     .summary = "latent: width of a head of values [head_dim]",
     .max = 1 << 20},
    {.name = "lora", .fallback = "0", .summary = "rank of adapters", .min = 0, .max = 1 << 16},
    {.name = "lora_targets", .fallback = "all", .summary = "what has them", .choices = "all|qkv"},
    kCapacityFactorKey,
};

// So many fields: a key each.
struct Shape {
  int64_t batch, seq, layers, hidden, heads, kv_heads, head_dim, ffn, vocab, experts, topk;
  bool swiglu, rms, learned, rotary, bias, tied, packed, flash, latent;
  double dropout, attention_dropout, capacity_factor;
  int64_t expert_ffn, shared_ffn, dense_layers;
  int64_t q_rank, kv_rank, rope_dim, v_dim;
  Adapters adapters;
};

Shape ShapeOf(const ModelValues& values) {
  Shape s = {};
  s.batch = values.batch();
  s.seq = values.Int("seq");
  s.layers = values.Int("layers");
  s.hidden = values.Int("hidden");
  s.heads = values.Int("heads");
  s.kv_heads = values.Int("kv_heads", s.heads);
  s.head_dim = values.Int("head_dim", s.hidden / s.heads);
  s.vocab = values.Int("vocab");
  s.experts = values.Int("experts");
  s.topk = values.Int("topk");
  s.swiglu = values.Text("mlp") == "swiglu";
  s.ffn = values.Int("ffn", s.swiglu ? (8 * s.hidden / 3 + 255) / 256 * 256 : 4 * s.hidden);
  s.rms = values.Text("norm", s.swiglu ? "rms" : "layer") == "rms";
  const std::string position = values.Text("position", s.swiglu ? "rotary" : "learned");
  s.learned = position == "learned";
  s.rotary = position == "rotary";
  s.bias = values.Int("bias", s.swiglu ? 0 : 1) != 0;
  s.tied = values.Int("tied_embeddings", s.swiglu ? 0 : 1) != 0;
  s.packed = values.Text("qkv", "separate") == "packed";
  s.flash = values.Int("flash") != 0;
  s.dropout = values.Number("dropout");
  s.attention_dropout =
      values.Has("attention_dropout") ? values.Number("attention_dropout") : s.dropout;
  s.capacity_factor = values.Number("capacity_factor");
  s.expert_ffn = values.Int("expert_ffn", s.ffn);
  s.shared_ffn = values.Int("shared_ffn");
  s.dense_layers = values.Int("dense_layers");
  s.latent = values.Text("attention") == "latent";
  s.q_rank = values.Int("q_rank");
  s.kv_rank = values.Int("kv_rank");
  s.rope_dim = values.Int("rope_dim");
  s.v_dim = values.Int("v_dim", s.head_dim);
  s.adapters = {.rank = values.Int("lora"), .qkv_only = values.Text("lora_targets") == "qkv"};
  return s;
}

absl::Status Check(const Shape& s, const ModelValues& values) {
  ORRERY_RETURN_IF_ERROR(CheckHeads(values, s.hidden, s.heads, s.kv_heads));
  if (s.latent && (!s.rotary || s.packed || s.kv_heads != s.heads || s.rope_dim % 2 != 0)) {
    return absl::InvalidArgumentError(
        "attention=latent wants position=rotary, qkv=separate, as many kv_heads as heads and an "
        "even rope_dim");
  }
  if (s.rotary && !s.latent && s.head_dim % 2 != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "head_dim is ", s.head_dim, "; wanted an even number, or try position=learned"));
  }
  if (s.experts == 0 && (s.shared_ffn > 0 || s.dense_layers > 0)) {
    return absl::InvalidArgumentError("shared_ffn and dense_layers want experts");
  }
  if (s.adapters.rank > 0 && (s.bias || s.tied || !s.swiglu)) {
    return absl::InvalidArgumentError("lora wants mlp=swiglu; no bias or tied table");
  }
  return s.experts > 0 ? CheckTopk(s.topk, s.experts) : absl::OkStatus();
}

class Gpt {
 public:
  Gpt(const Shape& shape, DType dtype) : s_(shape), layers_("gpt", dtype, shape.adapters) {}

  absl::StatusOr<Function> Build() {
    const ValueId ids = layers_.Ids("input_ids", {s_.batch, s_.seq});
    const ValueId labels = layers_.Ids("labels", {s_.batch, s_.seq});
    const ValueId table = layers_.Parameter("wte.weight", {s_.vocab, s_.hidden});
    ValueId x = layers_.Rows(table, ids, "wte");
    if (s_.learned) {
      const ValueId positions = layers_.Parameter("wpe.weight", {s_.seq, s_.hidden});
      x = layers_.Op(OpKind::kAdd, {x, positions}, "wpe");
    }
    if (s_.rotary) {
      const int64_t width = s_.latent ? s_.rope_dim : s_.head_dim;
      cos_ = layers_.Buffer("rotary.cos", {s_.seq, width});
      sin_ = layers_.Buffer("rotary.sin", {s_.seq, width});
    }
    x = layers_.Dropout(x, s_.dropout, "drop");
    for (int64_t i = 0; i < s_.layers; ++i) x = Block(x, i);
    x = layers_.Norm(x, s_.rms, s_.bias, "ln_f");
    const ValueId logits = s_.tied ? layers_.ByRows(x, table, "lm_head")
                                   : layers_.Linear(x, s_.vocab, {.bias = false}, "lm_head");
    return layers_.FinishWithCrossEntropy(logits, labels);
  }

 private:
  ValueId Block(ValueId x, int64_t layer) {
    const std::string name = absl::StrCat("h.", layer, ".");
    ValueId y = layers_.Norm(x, s_.rms, s_.bias, name + "ln_1");
    y = layers_.Dropout(Attention(y, name + "attn."), s_.dropout, name + "attn.drop");
    x = layers_.Op(OpKind::kAdd, {x, y}, name + "attn.residual");
    y = layers_.Norm(x, s_.rms, s_.bias, name + "ln_2");
    y = s_.experts > 0 && layer >= s_.dense_layers
            ? Mixture(layers_, y, Experts(), name + "moe.")
            : FeedForward(layers_, y, s_.ffn, Style(), name + "mlp.");
    y = layers_.Dropout(y, s_.dropout, name + "mlp.drop");
    return layers_.Op(OpKind::kAdd, {x, y}, name + "mlp.residual");
  }

  // q, k and v, each [batch,seq,heads width].
  std::vector<ValueId> Projections(ValueId x, const std::string& name) {
    const int64_t q = s_.heads * s_.head_dim, kv = s_.kv_heads * s_.head_dim;
    if (!s_.packed) return layers_.LinearGroup(x, {{"q", q}, {"k", kv}, {"v", kv}}, s_.bias, name);
    const ValueId qkv = layers_.Linear(x, q + 2 * kv, {.bias = s_.bias}, name + "qkv");
    const std::vector<ValueId> parts =
        layers_.Ops(OpKind::kSplit, {qkv}, 3, name + "q",
                    {{"axis", int64_t{2}}, {"sizes", std::vector<int64_t>{q, kv, kv}}});
    layers_.SetName(parts[1], name + "k");
    layers_.SetName(parts[2], name + "v");
    return parts;
  }

  // [batch,seq,heads a + heads b] of [batch,seq,heads a] and [batch,seq,heads b], head by head.
  ValueId JoinHeads(ValueId a, ValueId b, const std::string& name) {
    const auto heads = [&](ValueId value, int64_t count) {
      const int64_t width = layers_.Dim(value, -1) / count;
      value = layers_.Op(OpKind::kReshape, {value}, "",
                         {{"shape", std::vector<int64_t>{-1, s_.seq, count, width}}});
      if (count == s_.heads) return value;
      return layers_.Op(OpKind::kExpand, {value}, "",
                        {{"shape", std::vector<int64_t>{-1, -1, s_.heads, -1}}});
    };
    const bool shared = layers_.Dim(b, -1) == s_.rope_dim;  // one for all heads
    const ValueId joined =
        layers_.Op(OpKind::kConcat, {heads(a, s_.heads), heads(b, shared ? 1 : s_.heads)}, "",
                   {{"axis", int64_t{3}}});
    return layers_.Op(
        OpKind::kReshape, {joined}, name,
        {{"shape", std::vector<int64_t>{-1, s_.seq, s_.heads * layers_.Dim(joined, -1)}}});
  }

  // q, k and v of DeepSeek-V2: of compressed inputs, each head with a part that has no position and
  // one that has; that of keys is the same for all heads.
  std::vector<ValueId> LatentProjections(ValueId x, const std::string& name) {
    ValueId q = x;
    if (s_.q_rank > 0) {
      q = layers_.Linear(x, s_.q_rank, {.bias = s_.bias}, name + "q_a");
      q = layers_.Norm(q, s_.rms, s_.bias, name + "q_norm");
    }
    const int64_t plain = s_.heads * s_.head_dim;
    const auto queries = layers_.LinearGroup(
        q, {{"q_plain", plain}, {"q_rope", s_.heads * s_.rope_dim}}, s_.bias, name);
    const auto shared =
        layers_.LinearGroup(x, {{"kv_a", s_.kv_rank}, {"k_rope", s_.rope_dim}}, s_.bias, name);
    const ValueId latent = layers_.Norm(shared[0], s_.rms, s_.bias, name + "kv_norm");
    const auto keys = layers_.LinearGroup(latent, {{"k_plain", plain}, {"v", s_.heads * s_.v_dim}},
                                          s_.bias, name);
    const ValueId q_rope = layers_.Op(OpKind::kRotary, {queries[1], cos_, sin_}, name + "q_rot");
    const ValueId k_rope = layers_.Op(OpKind::kRotary, {shared[1], cos_, sin_}, name + "k_rot");
    return {JoinHeads(queries[0], q_rope, name + "q"), JoinHeads(keys[0], k_rope, name + "k"),
            keys[1]};
  }

  ValueId Attention(ValueId x, const std::string& name) {
    std::vector<ValueId> qkv = s_.latent ? LatentProjections(x, name) : Projections(x, name);
    for (size_t i = 0; s_.rotary && !s_.latent && i < 2; ++i) {
      qkv[i] =
          layers_.Op(OpKind::kRotary, {qkv[i], cos_, sin_}, name + (i == 0 ? "q_rot" : "k_rot"));
    }
    return layers_.Attention(qkv,
                             {.heads = s_.heads,
                              .kv_heads = s_.kv_heads,
                              .head_dim = s_.latent ? s_.head_dim + s_.rope_dim : s_.head_dim,
                              .width = s_.hidden,
                              .bias = s_.bias,
                              .causal = true,
                              .flash = s_.flash,
                              .dropout = s_.attention_dropout},
                             name);
  }

  FeedForwardStyle Style() const {
    return {.activation = s_.swiglu ? "swiglu" : "gelu", .bias = s_.bias};
  }

  MixtureShape Experts() const {
    return {.experts = s_.experts,
            .topk = s_.topk,
            .ffn = s_.expert_ffn,
            .shared_ffn = s_.shared_ffn,
            .capacity_factor = s_.capacity_factor,
            .style = Style()};
  }

  const Shape s_;
  Layers layers_;
  ValueId cos_, sin_;
};

absl::StatusOr<Function> Build(const ModelValues& values) {
  const Shape shape = ShapeOf(values);
  if (absl::Status status = Check(shape, values); !status.ok()) return status;
  return Gpt(shape, values.dtype()).Build();
}

}  // namespace
}  // namespace gpt_cc

extern constinit const ModelInfo kGptModel = {
    .name = "gpt",
    .summary = "a decoder-only transformer: GPT, Llama, Mixtral; loss: cross-entropy of each token",
    .keys = gpt_cc::kKeys,
    .default_batch = 8,
    .build = gpt_cc::Build,
};

}  // namespace orrery::ir
