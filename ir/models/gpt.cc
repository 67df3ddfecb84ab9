#include "absl/strings/str_cat.h"
#include "ir/models/layers.h"
#include "ir/models/model.h"
#include "ir/op_kind.h"

// Decoder-only transformers. By default GPT-2 (Radford et al. 2019) and GPT-3 (Brown et al. 2020):
// norm before attention and before the feed-forward, learned positions, biases. With mlp=swiglu
// Llama (Touvron et al. 2023): root-mean-square norms, rotary positions, no biases, a head of its
// own. With experts Mixtral (Jiang et al. 2024).

namespace orrery::ir {
namespace gpt_cc {
namespace {

constexpr ModelKey kKeys[] = {
    {.name = "layers", .fallback = "12", .summary = "blocks", .max = 100'000},
    {.name = "hidden",
     .fallback = "768",
     .summary = "width of the residual stream",
     .max = 1 << 20},
    {.name = "heads", .fallback = "12", .summary = "attention heads", .max = 1 << 14},
    {.name = "seq", .fallback = "1024", .summary = "tokens a sample", .max = 1 << 24},
    {.name = "vocab", .fallback = "50257", .summary = "tokens there are", .max = 1 << 24},
    {.name = "kv_heads",
     .fallback = "",
     .summary = "heads of keys and values [heads]",
     .max = 1 << 14},
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
    {.name = "flash",
     .fallback = "0",
     .summary = "attention keeps sums in place of probabilities",
     .choices = "0|1"},
    {.name = "dropout",
     .fallback = "0",
     .summary = "ratio of residual dropout",
     .min = 0,
     .max = 0.99,
     .real = true},
    {.name = "attention_dropout",
     .fallback = "",
     .summary = "of attention's probabilities [dropout]",
     .min = 0,
     .max = 0.99,
     .real = true},
    {.name = "experts",
     .fallback = "0",
     .summary = "of each block; 0: a plain feed-forward",
     .min = 0,
     .max = 1 << 12},
    {.name = "topk", .fallback = "2", .summary = "experts a token goes to", .max = 1 << 12},
    {.name = "capacity_factor",
     .fallback = "1",
     .summary = "slots of the experts over the tokens that go to them",
     .min = 0.01,
     .max = 1000,
     .real = true},
};

// So many fields: a key each.
struct Shape {
  int64_t batch, seq, layers, hidden, heads, kv_heads, head_dim, ffn, vocab, experts, topk;
  bool swiglu, rms, learned, rotary, bias, tied, packed, flash;
  double dropout, attention_dropout, capacity_factor;
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
  return s;
}

absl::Status Check(const Shape& s, const ModelValues& values) {
  if (!values.Has("head_dim") && s.hidden % s.heads != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "hidden is ", s.hidden, "; wanted a multiple of ", s.heads, " heads, or try head_dim"));
  }
  if (s.heads % s.kv_heads != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("heads is ", s.heads, "; wanted a multiple of ", s.kv_heads, " kv_heads"));
  }
  if (s.rotary && s.head_dim % 2 != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "head_dim is ", s.head_dim, "; wanted an even number, or try position=learned"));
  }
  if (s.experts > 0 && s.topk > s.experts) {
    return absl::InvalidArgumentError(
        absl::StrCat("topk is ", s.topk, "; wanted at most ", s.experts, " experts"));
  }
  return absl::OkStatus();
}

class Gpt {
 public:
  Gpt(const Shape& shape, DType dtype) : s_(shape), layers_("gpt", dtype) {}

  absl::StatusOr<Function> Build() {
    const ValueId ids = layers_.Ids("input_ids", {s_.batch, s_.seq});
    const ValueId labels = layers_.Ids("labels", {s_.batch, s_.seq});
    const ValueId table = layers_.Parameter("wte.weight", {s_.vocab, s_.hidden});
    ValueId x = layers_.Op(OpKind::kGather, {table, ids}, "wte", {{"axis", int64_t{0}}});
    if (s_.learned) {
      const ValueId positions = layers_.Parameter("wpe.weight", {s_.seq, s_.hidden});
      x = layers_.Op(OpKind::kAdd, {x, positions}, "wpe");
    }
    if (s_.rotary) {
      cos_ = layers_.Buffer("rotary.cos", {s_.seq, s_.head_dim});
      sin_ = layers_.Buffer("rotary.sin", {s_.seq, s_.head_dim});
    }
    x = layers_.Dropout(x, s_.dropout, "drop");
    for (int64_t i = 0; i < s_.layers; ++i) x = Block(x, absl::StrCat("h.", i, "."));
    x = layers_.Norm(x, s_.rms, s_.bias, "ln_f");
    const ValueId logits =
        s_.tied ? layers_.Op(OpKind::kMatMul, {x, table}, "lm_head", {{"transpose_w", int64_t{1}}})
                : layers_.Linear(x, s_.vocab, {.bias = false}, "lm_head");
    return layers_.FinishWithCrossEntropy(logits, labels);
  }

 private:
  ValueId Block(ValueId x, const std::string& name) {
    ValueId y = layers_.Norm(x, s_.rms, s_.bias, name + "ln_1");
    y = layers_.Dropout(Attention(y, name + "attn."), s_.dropout, name + "attn.drop");
    x = layers_.Op(OpKind::kAdd, {x, y}, name + "attn.residual");
    y = layers_.Norm(x, s_.rms, s_.bias, name + "ln_2");
    y = s_.experts > 0 ? Experts(y, name + "moe.") : FeedForward(y, name + "mlp.");
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

  ValueId Attention(ValueId x, const std::string& name) {
    std::vector<ValueId> qkv = Projections(x, name);
    for (size_t i = 0; s_.rotary && i < 2; ++i) {
      qkv[i] =
          layers_.Op(OpKind::kRotary, {qkv[i], cos_, sin_}, name + (i == 0 ? "q_rot" : "k_rot"));
    }
    return layers_.Attention(qkv,
                             {.heads = s_.heads,
                              .kv_heads = s_.kv_heads,
                              .head_dim = s_.head_dim,
                              .width = s_.hidden,
                              .bias = s_.bias,
                              .causal = true,
                              .flash = s_.flash,
                              .dropout = s_.attention_dropout},
                             name);
  }

  ValueId FeedForward(ValueId x, const std::string& name) {
    ValueId y;
    if (s_.swiglu) {
      const auto both = layers_.LinearGroup(x, {{"gate", s_.ffn}, {"up", s_.ffn}}, s_.bias, name);
      y = layers_.Op(OpKind::kSwiGlu, {both[0], both[1]}, name + "act");
    } else {
      y = layers_.Linear(x, s_.ffn, {.bias = s_.bias, .activation = "gelu_tanh"}, name + "up");
    }
    return layers_.Linear(y, s_.hidden, {.bias = s_.bias}, name + "down");
  }

  // The weights of the chosen experts, and which they are. One expert keeps its share of all, so
  // that the router learns (Fedus et al. 2021); several share 1 among them, as in Mixtral.
  std::vector<ValueId> Choose(ValueId x, const std::string& name) {
    const AttributeSet last = {{"axis", int64_t{2}}};
    const AttributeSet most = {
        {"axis", int64_t{2}}, {"k", s_.topk}, {"largest", int64_t{1}}, {"sorted", int64_t{1}}};
    ValueId scores = layers_.Linear(x, s_.experts, {.bias = false}, name + "router");
    if (s_.topk == 1) scores = layers_.Op(OpKind::kSoftmax, {scores}, name + "shares", last);
    std::vector<ValueId> chosen = layers_.Ops(OpKind::kTopK, {scores}, 2, name + "chosen", most);
    if (s_.topk > 1) {
      chosen[0] = layers_.Op(OpKind::kSoftmax, {chosen[0]}, name + "shares", last);
    }
    return chosen;
  }

  ValueId Product(ValueId x, int64_t width, const std::string& name) {
    const ValueId w = layers_.Parameter(name + ".weight", {s_.experts, layers_.Dim(x, -1), width});
    return layers_.Op(OpKind::kMatMul, {x, w}, name);
  }

  // Experts have no biases.
  ValueId Experts(ValueId x, const std::string& name) {
    const std::vector<ValueId> chosen = Choose(x, name);
    const std::vector<ValueId> route =
        layers_.Ops(OpKind::kRoute, {chosen[0], chosen[1]}, 2, name + "slots",
                    {{"experts", s_.experts}, {"capacity_factor", s_.capacity_factor}});
    const int64_t capacity = layers_.Dim(route[0], -1);
    const std::vector<int64_t> rows = {s_.experts, -1, s_.hidden};
    const std::vector<int64_t> slots = {s_.experts, -1, capacity, s_.hidden};
    ValueId y = layers_.Op(OpKind::kDispatch, {x, route[0]}, name + "dispatch");
    y = layers_.Op(OpKind::kReshape, {y}, name + "rows", {{"shape", rows}});
    if (s_.swiglu) {
      const ValueId gate = Product(y, s_.ffn, name + "gate"), up = Product(y, s_.ffn, name + "up");
      y = layers_.Op(OpKind::kSwiGlu, {gate, up}, name + "act");
    } else {
      y = layers_.Op(OpKind::kGelu, {Product(y, s_.ffn, name + "up")}, name + "act",
                     {{"approximate", std::string("tanh")}});
    }
    y = Product(y, s_.hidden, name + "down");
    y = layers_.Op(OpKind::kReshape, {y}, name + "slots_out", {{"shape", slots}});
    return layers_.Op(OpKind::kCombine, {y, route[0], route[1]}, name + "combine",
                      {{"size", s_.seq}});
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
