#include "absl/strings/str_cat.h"
#include "ir/models/layers.h"
#include "ir/models/model.h"
#include "ir/op_kind.h"

// Language models of stacked LSTM layers (Zaremba et al. 2014): embedding, layers, a word for each
// token. Samples come first, as in all models; the recurrence runs over time first.

namespace orrery::ir {
namespace lstm_model_cc {
namespace {

constexpr ModelKey kKeys[] = {
    {.name = "layers", .fallback = "2", .summary = "LSTM layers", .max = 10'000},
    {.name = "hidden", .fallback = "1500", .summary = "width of their state", .max = 1 << 20},
    {.name = "input", .fallback = "", .summary = "width of the embedding [hidden]", .max = 1 << 20},
    {.name = "seq", .fallback = "35", .summary = "tokens a sample", .max = 1 << 24},
    {.name = "vocab", .fallback = "10000", .summary = "tokens there are", .max = 1 << 24},
    {.name = "dropout",
     .fallback = "0",
     .summary = "ratio before each layer and before the head",
     .min = 0,
     .max = 0.99,
     .real = true},
};

absl::StatusOr<Function> Build(const ModelValues& values) {
  const int64_t batch = values.batch(), seq = values.Int("seq"), hidden = values.Int("hidden");
  const double dropout = values.Number("dropout");
  const AttributeSet swap = {{"perm", std::vector<int64_t>{1, 0, 2}}};
  Layers layers("lstm", values.dtype());
  const ValueId ids = layers.Ids("input_ids", {batch, seq});
  const ValueId labels = layers.Ids("labels", {batch, seq});
  ValueId x = layers.Embedding(ids, values.Int("vocab"), values.Int("input", hidden), "embedding");
  x = layers.Op(OpKind::kTranspose, {x}, "by_time", swap);
  for (int64_t i = 0; i < values.Int("layers"); ++i) {
    const std::string name = absl::StrCat("lstm.", i);
    x = layers.Dropout(x, dropout, name + ".drop");
    const ValueId w = layers.Parameter(name + ".weight_ih", {1, 4 * hidden, layers.Dim(x, -1)});
    const ValueId r = layers.Parameter(name + ".weight_hh", {1, 4 * hidden, hidden});
    const ValueId bias = layers.Parameter(name + ".bias", {1, 8 * hidden});
    x = layers.Ops(OpKind::kLstm, {x, w, r, bias}, 1, name, {{"given", std::string("bias")}})[0];
    x = layers.Op(OpKind::kSqueeze, {x}, name + ".y", {{"axes", std::vector<int64_t>{1}}});
  }
  x = layers.Dropout(x, dropout, "drop");
  x = layers.Op(OpKind::kTranspose, {x}, "by_sample", swap);
  const ValueId logits = layers.Linear(x, values.Int("vocab"), {}, "head");
  return layers.FinishWithCrossEntropy(logits, labels);
}

}  // namespace
}  // namespace lstm_model_cc

extern constinit const ModelInfo kLstmModel = {
    .name = "lstm",
    .summary = "a language model of stacked LSTM layers",
    .keys = lstm_model_cc::kKeys,
    .default_batch = 32,
    .build = lstm_model_cc::Build,
};

}  // namespace orrery::ir
