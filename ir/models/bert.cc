#include "absl/strings/str_cat.h"
#include "ir/models/layers.h"
#include "ir/models/model.h"
#include "ir/models/transformer_keys.h"
#include "ir/op_kind.h"

// Encoder-only transformers: BERT (Devlin et al. 2018). Norms after attention and feed-forward, all
// tokens see each other, and a head on top: a class for each sample, or a word for each token.

namespace orrery::ir {
namespace bert_cc {
namespace {

constexpr ModelKey kKeys[] = {
    {.name = "layers", .fallback = "12", .summary = "blocks", .max = 100'000},
    kHiddenKey,
    kHeadsKey,
    {.name = "seq", .fallback = "512", .summary = "tokens a sample", .max = 1 << 24},
    {.name = "vocab", .fallback = "30522", .summary = "words there are", .max = 1 << 24},
    {.name = "ffn",
     .fallback = "",
     .summary = "width of the feed-forward [4 hidden]",
     .max = 1 << 24},
    {.name = "head",
     .fallback = "classify",
     .summary = "pooled and classified, or words for all tokens with the matrix of the embedding",
     .choices = "classify|words"},
    {.name = "classes", .fallback = "2", .summary = "of samples", .max = 1 << 24},
    kFlashKey,
    kDropoutKey,
    kAttentionDropoutKey,
};

struct Shape {
  int64_t batch, seq, layers, hidden, heads, ffn, vocab, classes;
  bool words, flash;
  double dropout, attention_dropout;
};

class Bert {
 public:
  Bert(const Shape& shape, DType dtype) : s_(shape), layers_("bert", dtype) {}

  absl::StatusOr<Function> Build() {
    const ValueId ids = layers_.Ids("input_ids", {s_.batch, s_.seq});
    const ValueId segments = layers_.Ids("token_type_ids", {s_.batch, s_.seq});
    const ValueId labels =
        layers_.Ids("labels", s_.words ? Dims{s_.batch, s_.seq} : Dims{s_.batch});
    table_ = layers_.Parameter("embeddings.word.weight", {s_.vocab, s_.hidden});
    ValueId x =
        layers_.Op(OpKind::kGather, {table_, ids}, "embeddings.word", {{"axis", int64_t{0}}});
    const ValueId segment = layers_.Embedding(segments, 2, s_.hidden, "embeddings.token_type");
    x = layers_.Op(OpKind::kAdd, {x, segment}, "embeddings.both");
    const ValueId positions = layers_.Parameter("embeddings.position.weight", {s_.seq, s_.hidden});
    x = layers_.Op(OpKind::kAdd, {x, positions}, "embeddings.sum");
    x = layers_.Dropout(Norm(x, "embeddings.norm"), s_.dropout, "embeddings.drop");
    for (int64_t i = 0; i < s_.layers; ++i) x = Block(x, absl::StrCat("layer.", i, "."));
    return layers_.FinishWithCrossEntropy(s_.words ? Words(x) : Classes(x), labels);
  }

 private:
  ValueId Norm(ValueId x, const std::string& name) { return layers_.Norm(x, false, true, name); }

  ValueId Block(ValueId x, const std::string& name) {
    ValueId y = layers_.Dropout(Attention(x, name + "attn."), s_.dropout, name + "attn.drop");
    x = layers_.Op(OpKind::kAdd, {x, y}, name + "attn.residual");
    x = Norm(x, name + "attn.norm");
    y = layers_.Linear(x, s_.ffn, {.activation = "gelu"}, name + "mlp.up");
    y = layers_.Linear(y, s_.hidden, {}, name + "mlp.down");
    y = layers_.Dropout(y, s_.dropout, name + "mlp.drop");
    x = layers_.Op(OpKind::kAdd, {x, y}, name + "mlp.residual");
    return Norm(x, name + "mlp.norm");
  }

  ValueId Attention(ValueId x, const std::string& name) {
    const auto qkv =
        layers_.LinearGroup(x, {{"q", s_.hidden}, {"k", s_.hidden}, {"v", s_.hidden}}, true, name);
    return layers_.Attention(qkv,
                             {.heads = s_.heads,
                              .head_dim = s_.hidden / s_.heads,
                              .width = s_.hidden,
                              .flash = s_.flash,
                              .dropout = s_.attention_dropout},
                             name);
  }

  // The first token of each sample speaks for it.
  ValueId Classes(ValueId x) {
    const AttributeSet first = {{"axes", std::vector<int64_t>{1}},
                                {"starts", std::vector<int64_t>{0}},
                                {"ends", std::vector<int64_t>{1}},
                                {"steps", std::vector<int64_t>{1}}};
    x = layers_.Op(OpKind::kSlice, {x}, "pooler.token", first);
    x = layers_.Op(OpKind::kSqueeze, {x}, "pooler.row", {{"axes", std::vector<int64_t>{1}}});
    x = layers_.Linear(x, s_.hidden, {}, "pooler");
    x = layers_.Op(OpKind::kTanh, {x}, "pooler.act");
    return layers_.Linear(x, s_.classes, {}, "classifier");
  }

  ValueId Words(ValueId x) {
    x = layers_.Linear(x, s_.hidden, {.activation = "gelu"}, "words.transform");
    x = Norm(x, "words.norm");
    const ValueId bias = layers_.Parameter("words.bias", {s_.vocab});
    return layers_.Ops(OpKind::kLinear, {x, table_, bias}, 1, "words",
                       {{"transpose_w", int64_t{1}}})[0];
  }

  const Shape s_;
  Layers layers_;
  ValueId table_;
};

absl::StatusOr<Function> Build(const ModelValues& values) {
  const int64_t hidden = values.Int("hidden"), heads = values.Int("heads");
  const double dropout = values.Number("dropout");
  if (hidden % heads != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("hidden is ", hidden, "; wanted a multiple of ", heads, " heads"));
  }
  return Bert({.batch = values.batch(),
               .seq = values.Int("seq"),
               .layers = values.Int("layers"),
               .hidden = hidden,
               .heads = heads,
               .ffn = values.Int("ffn", 4 * hidden),
               .vocab = values.Int("vocab"),
               .classes = values.Int("classes"),
               .words = values.Text("head") == "words",
               .flash = values.Int("flash") != 0,
               .dropout = dropout,
               .attention_dropout =
                   values.Has("attention_dropout") ? values.Number("attention_dropout") : dropout},
              values.dtype())
      .Build();
}

}  // namespace
}  // namespace bert_cc

extern constinit const ModelInfo kBertModel = {
    .name = "bert",
    .summary =
        "an encoder-only transformer with a head that classifies samples, or tokens as words",
    .keys = bert_cc::kKeys,
    .default_batch = 32,
    .build = bert_cc::Build,
};

}  // namespace orrery::ir
