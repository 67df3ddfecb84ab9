#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/models/feed_forward.h"
#include "ir/models/layers.h"
#include "ir/models/model.h"
#include "ir/models/transformer_keys.h"
#include "ir/op_kind.h"
#include "support/status.h"

// Decoders whose layers are of several kinds, one after the other as a word says: Mamba-2 (Dao & Gu
// 2024), attention, feed-forwards and experts, each behind a norm of its own and added to the
// residual stream. Nemotron-H (NVIDIA 2025, 2504.03624) and Nemotron 3 (2512.20856).

namespace orrery::ir {
namespace hybrid_cc {
namespace {

constexpr ModelKey kKeys[] = {
    {.name = "pattern",
     .fallback = "M-M-M*-M-M-M*-",
     .summary = "layers, a letter each: M Mamba-2, * attention, - feed-forward, E experts",
     .letters = "M*-E"},
    kHiddenKey,
    kSeqKey,
    kVocabKey,
    {.name = "mamba_heads",
     .fallback = "",
     .summary = "heads of a Mamba-2 layer [2 hidden / mamba_dim]",
     .max = 1 << 14},
    {.name = "mamba_dim", .fallback = "64", .summary = "width of such a head", .max = 1 << 16},
    {.name = "groups",
     .fallback = "8",
     .summary = "of heads that share B and C, and a norm",
     .max = 1 << 14},
    {.name = "state", .fallback = "128", .summary = "numbers a head keeps of each", .max = 1 << 16},
    {.name = "conv", .fallback = "4", .summary = "positions that a convolution sees", .max = 64},
    {.name = "chunk",
     .fallback = "128",
     .summary = "positions of a chunk of the scan",
     .max = 1 << 16},
    kHeadsKey,
    kKvHeadsKey,
    {.name = "head_dim",
     .fallback = "",
     .summary = "width of a head of attention [hidden / heads]",
     .max = 1 << 20},
    kFlashKey,
    {.name = "ffn",
     .fallback = "",
     .summary = "width of a feed-forward [4 hidden]",
     .max = 1 << 24},
    {.name = "mlp",
     .fallback = "relu2",
     .summary = "activation of feed-forwards and experts",
     .choices = "relu2|gelu|swiglu"},
    {.name = "tied_embeddings",
     .fallback = "0",
     .summary = "whether the head is the embedding",
     .choices = "0|1"},
    {.name = "experts", .fallback = "8", .summary = "of each E", .max = 1 << 12},
    kTopkKey,
    kExpertFfnKey,
    kSharedFfnKey,
    {.name = "latent",
     .fallback = "0",
     .summary = "width of what goes to experts; 0: hidden",
     .min = 0,
     .max = 1 << 20},
    {.name = "predicted",
     .fallback = "0",
     .summary = "further tokens that each position predicts, by layers of its own",
     .min = 0,
     .max = 16},
    {.name = "predicted_pattern",
     .fallback = "*E",
     .summary = "layers that predict each of them",
     .letters = "M*-E"},
    kCapacityFactorKey,
};

// So many fields: a key each.
struct Shape {
  std::string pattern, predicted_pattern;
  int64_t predicted;
  int64_t batch, seq, hidden, vocab, mamba_heads, mamba_dim, groups, state, conv, chunk;
  int64_t heads, kv_heads, head_dim, ffn;
  bool flash, tied;
  MixtureShape experts;
  std::string mlp;
};

Shape ShapeOf(const ModelValues& values) {
  Shape s = {};
  s.pattern = values.Text("pattern");
  s.predicted = values.Int("predicted");
  s.predicted_pattern = values.Text("predicted_pattern");
  s.batch = values.batch();
  s.seq = values.Int("seq");
  s.hidden = values.Int("hidden");
  s.vocab = values.Int("vocab");
  s.mamba_dim = values.Int("mamba_dim");
  s.mamba_heads = values.Int("mamba_heads", std::max<int64_t>(2 * s.hidden / s.mamba_dim, 1));
  s.groups = values.Int("groups");
  s.state = values.Int("state");
  s.conv = values.Int("conv");
  s.chunk = values.Int("chunk");
  s.heads = values.Int("heads");
  s.kv_heads = values.Int("kv_heads", s.heads);
  s.head_dim = values.Int("head_dim", s.hidden / s.heads);
  s.flash = values.Int("flash") != 0;
  s.ffn = values.Int("ffn", 4 * s.hidden);
  s.mlp = values.Text("mlp");
  s.tied = values.Int("tied_embeddings") != 0;
  s.experts = {.experts = values.Int("experts"),
               .topk = values.Int("topk"),
               .ffn = values.Int("expert_ffn", s.ffn),
               .shared_ffn = values.Int("shared_ffn"),
               .latent = values.Int("latent"),
               .capacity_factor = values.Number("capacity_factor")};
  return s;
}

absl::Status Check(const Shape& s, const ModelValues& values) {
  const std::string all = s.predicted > 0 ? s.pattern + s.predicted_pattern : s.pattern;
  const auto has = [&](char letter) { return all.find(letter) != std::string::npos; };
  if (has('M') && s.mamba_heads % s.groups != 0) {
    return absl::InvalidArgumentError(absl::StrCat("mamba_heads is ", s.mamba_heads,
                                                   "; wanted a multiple of ", s.groups, " groups"));
  }
  if (has('*')) {
    ORRERY_RETURN_IF_ERROR(CheckHeads(values, s.hidden, s.heads, s.kv_heads));
  }
  return has('E') ? CheckTopk(s.experts.topk, s.experts.experts) : absl::OkStatus();
}

class Hybrid {
 public:
  Hybrid(const Shape& shape, DType dtype) : s_(shape), layers_("hybrid", dtype) {
    s_.experts.style = {.activation = s_.mlp};
  }

  absl::StatusOr<Function> Build() {
    const ValueId ids = layers_.Ids("input_ids", {s_.batch, s_.seq});
    const ValueId labels = layers_.Ids("labels", {s_.batch, s_.seq});
    table_ = layers_.Parameter("wte.weight", {s_.vocab, s_.hidden});
    ValueId x = Stream(layers_.Rows(table_, ids, "wte"), s_.pattern, "h.");
    std::vector<Prediction> predictions = {{layers_.Norm(x, true, false, "ln_f"), labels, ""}};
    for (int64_t i = 0; i < s_.predicted; ++i) predictions.push_back(Further(x, i));
    if (!s_.tied) head_ = layers_.Parameter("lm_head.weight", {s_.hidden, s_.vocab});
    for (const Prediction& p : predictions) {
      const ValueId logits = s_.tied ? layers_.ByRows(p.x, table_, "lm_head" + p.name)
                                     : layers_.builder().MatMul(p.x, head_, "lm_head" + p.name);
      layers_.ReturnCrossEntropy(logits, p.labels, "loss" + p.name);
    }
    return std::move(layers_.builder()).Finalize();
  }

 private:
  // What the head is applied to, what it is to say, and what the names of both end in.
  struct Prediction {
    ValueId x, labels;
    std::string name;
  };

  // x through the layers of a pattern, called "prefix" + 0, 1, ….
  ValueId Stream(ValueId x, const std::string& pattern, const std::string& prefix) {
    for (size_t i = 0; i < pattern.size(); ++i) {
      const std::string name = absl::StrCat(prefix, i, ".");
      const ValueId y = Mix(pattern[i], layers_.Norm(x, true, false, name + "ln_1"), name);
      x = layers_.Op(OpKind::kAdd, {x, y}, name + "residual");
    }
    return x;
  }

  // One token further: of what predicts the token before, which becomes what predicts this one, and
  // of that token itself (DeepSeek-AI 2024, 2412.19437, section 2.2).
  Prediction Further(ValueId& x, int64_t i) {
    const std::string name = absl::StrCat("mtp.", i, "."), suffix = absl::StrCat(".", i + 1);
    const ValueId ids = layers_.Ids("input_ids" + suffix, {s_.batch, s_.seq});
    const ValueId labels = layers_.Ids("labels" + suffix, {s_.batch, s_.seq});
    const ValueId token =
        layers_.Norm(layers_.Rows(table_, ids, "wte" + suffix), true, false, name + "ln_e");
    x = layers_.Norm(x, true, false, name + "ln_h");
    x = layers_.Op(OpKind::kConcat, {token, x}, name + "joined", {{"axis", int64_t{2}}});
    x = layers_.Linear(x, s_.hidden, {.bias = false}, name + "in");
    x = Stream(x, s_.predicted_pattern, name + "h.");
    return {layers_.Norm(x, true, false, name + "ln_f"), labels, suffix};
  }

  ValueId Mix(char letter, ValueId x, const std::string& name) {
    switch (letter) {
      case 'M':
        return Mamba(x, name + "mamba.");
      case '*':
        return Attention(x, name + "attn.");
      case 'E':
        return Mixture(layers_, x, s_.experts, name + "moe.");
      default:
        return FeedForward(layers_, x, s_.ffn, s_.experts.style, name + "mlp.");
    }
  }

  // Nothing tells positions: the scans before have seen them.
  ValueId Attention(ValueId x, const std::string& name) {
    const int64_t q = s_.heads * s_.head_dim, kv = s_.kv_heads * s_.head_dim;
    const auto qkv = layers_.LinearGroup(x, {{"q", q}, {"k", kv}, {"v", kv}}, false, name);
    return layers_.Attention(qkv,
                             {.heads = s_.heads,
                              .kv_heads = s_.kv_heads,
                              .head_dim = s_.head_dim,
                              .width = s_.hidden,
                              .bias = false,
                              .causal = true,
                              .flash = s_.flash},
                             name);
  }

  ValueId Convolved(ValueId x, const std::string& name) {
    const int64_t channels = layers_.Dim(x, -1);
    const ValueId w = layers_.Parameter(name + ".weight", {channels, s_.conv});
    const ValueId bias = layers_.Parameter(name + ".bias", {channels});
    return layers_.Op(OpKind::kCausalConv, {x, w, bias}, name,
                      {{"activation", std::string("silu")}});
  }

  // [batch,seq,parts width] as [batch,seq,parts,width].
  ValueId InParts(ValueId x, int64_t parts) {
    return layers_.Op(
        OpKind::kReshape, {x}, "",
        {{"shape", std::vector<int64_t>{-1, s_.seq, parts, layers_.Dim(x, -1) / parts}}});
  }
  ValueId Joined(ValueId x, const std::string& name) {
    const int64_t width = layers_.Dim(x, -1) * layers_.Dim(x, -2);
    return layers_.Op(OpKind::kReshape, {x}, name,
                      {{"shape", std::vector<int64_t>{-1, s_.seq, width}}});
  }

  // The scan of what a convolution leaves; its result gated, and normalized group by group.
  ValueId Mamba(ValueId x, const std::string& name) {
    const int64_t inner = s_.mamba_heads * s_.mamba_dim, shared = s_.groups * s_.state;
    const auto in = layers_.LinearGroup(
        x, {{"z", inner}, {"x", inner}, {"b", shared}, {"c", shared}, {"dt", s_.mamba_heads}},
        false, name);
    const ValueId heads = InParts(Convolved(in[1], name + "conv_x"), s_.mamba_heads);
    const ValueId b = InParts(Convolved(in[2], name + "conv_b"), s_.groups);
    const ValueId c = InParts(Convolved(in[3], name + "conv_c"), s_.groups);
    const Dims a_head = {s_.mamba_heads};
    ValueId y = layers_.Op(
        OpKind::kSelectiveScan,
        {heads, in[4], b, c, layers_.Parameter(name + "a_log", a_head),
         layers_.Parameter(name + "d", a_head), layers_.Parameter(name + "dt_bias", a_head)},
        name + "scan", {{"chunk", s_.chunk}});
    y = layers_.Op(OpKind::kSwiGlu, {in[0], Joined(y, name + "joined")}, name + "gated");
    const ValueId gamma = layers_.Parameter(name + "norm.weight", {s_.groups, inner / s_.groups});
    y = layers_.Ops(OpKind::kRmsNorm, {InParts(y, s_.groups), gamma}, 1, name + "norm",
                    {{"axis", int64_t{-1}}, {"epsilon", 1e-5}})[0];
    return layers_.Linear(Joined(y, name + "normalized"), s_.hidden, {.bias = false}, name + "out");
  }

  Shape s_;
  Layers layers_;
  ValueId table_, head_;
};

absl::StatusOr<Function> Build(const ModelValues& values) {
  const Shape shape = ShapeOf(values);
  if (absl::Status status = Check(shape, values); !status.ok()) return status;
  return Hybrid(shape, values.dtype()).Build();
}

}  // namespace
}  // namespace hybrid_cc

extern constinit const ModelInfo kHybridModel = {
    .name = "hybrid",
    .summary =
        "a decoder of Mamba-2, attention, feed-forwards and experts in any order: Nemotron-H",
    .keys = hybrid_cc::kKeys,
    .default_batch = 8,
    .build = hybrid_cc::Build,
};

}  // namespace orrery::ir
