#ifndef ORRERY_IR_MODELS_LAYERS_H_
#define ORRERY_IR_MODELS_LAYERS_H_

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ir/builder.h"

// What the models of the library are made of: layers with their parameters, on top of the builder.
// A layer `name` has parameters "name.weight" and "name.bias", and its result is called "name".

namespace orrery::ir {

/// Low-rank adaptation (Hu et al. 2021): all weights are frozen, and products of linear layers get
/// two trained matrices beside them, of so narrow a width between them.
struct Adapters {
  int64_t rank = 0;       // 0: none, and all weights are trained
  bool qkv_only = false;  // beside queries, keys and values alone

  /// Whether the product of that name has one: not the head's, which is no part of a block, nor a
  /// router's.
  bool Adapt(absl::string_view name) const;
};

/// Builds a model layer by layer, all of one element type. Errors stick, as the builder's do.
class Layers {
 public:
  Layers(absl::string_view model, DType dtype, const Adapters& adapters = {})
      : builder_(model), dtype_(dtype), adapters_(adapters) {}

  Builder& builder() { return builder_; }
  /// Dimension `d` of a value, counted from the end when negative; 1 after an error.
  int64_t Dim(ValueId value, int d) const;

  /// Whole numbers below the size of some table: tokens, classes.
  ValueId Ids(absl::string_view name, const Dims& dims) {
    return builder_.Data(name, {DType::kI64, dims, {}});
  }
  ValueId Data(absl::string_view name, const Dims& dims) {
    return builder_.Data(name, {dtype_, dims, {}});
  }
  /// With adapters it is frozen.
  ValueId Parameter(absl::string_view name, const Dims& dims) {
    if (adapters_.rank > 0) return Buffer(name, dims);
    return builder_.Parameter(name, {dtype_, dims, {}});
  }
  ValueId Buffer(absl::string_view name, const Dims& dims) {
    return builder_.AddInput(name, {dtype_, dims, {}}, InputRole::kBuffer);
  }

  /// Result 0 of an op of any kind.
  ValueId Op(OpKind kind, std::initializer_list<ValueId> operands, absl::string_view name,
             const AttributeSet& attributes = {}) {
    return builder_.Op(kind, operands, name, attributes);
  }
  /// The first `count` results of an op; only the first has a name.
  std::vector<ValueId> Ops(OpKind kind, std::initializer_list<ValueId> operands, int32_t count,
                           absl::string_view name, const AttributeSet& attributes = {});

  /// Names a further result.
  void SetName(ValueId value, absl::string_view name) {
    if (value.valid()) builder_.function().SetName(value, name);
  }

  /// Rows of a table [rows,width]; and x [batch,seq,width] by each of its rows.
  ValueId Rows(ValueId table, ValueId ids, const std::string& name);
  ValueId ByRows(ValueId x, ValueId table, const std::string& name);
  /// Rows of "name.weight" [rows,width].
  ValueId Embedding(ValueId ids, int64_t rows, int64_t width, const std::string& name);
  /// What a linear layer does besides the product.
  struct Linearity {
    bool bias = true;
    absl::string_view activation = "";
  };
  /// activation(x times "name.weight" [k,width] plus "name.bias"); a plain MatMul without both.
  ValueId Linear(ValueId x, int64_t width, const Linearity& with, const std::string& name);
  /// The same x times several weights side by side, called "prefix" + name + ".weight".
  struct Branch {
    absl::string_view name;
    int64_t width;
  };
  std::vector<ValueId> LinearGroup(ValueId x, std::initializer_list<Branch> branches, bool bias,
                                   const std::string& prefix);
  /// x [n,rows,k] times n matrices "name.weight" [n,k,width]: experts, each with an adapter of its
  /// own.
  ValueId Products(ValueId x, int64_t width, const std::string& name);
  /// How rows attend to each other, and how wide and with what bias their result leaves.
  struct Heads {
    int64_t heads;
    int64_t kv_heads = 0;  // 0: as many as `heads`, and no attribute says it
    int64_t head_dim;
    int64_t width;
    bool bias = true, causal = false, flash = false;
    double dropout = 0;  // of the probabilities
  };
  /// "prefix" + "core" of q, k and v, each [batch,seq,heads width]; then the layer "prefix" +
  /// "proj".
  ValueId Attention(const std::vector<ValueId>& qkv, const Heads& heads, const std::string& prefix);
  /// LayerNorm, or RmsNorm, over the last dimension.
  ValueId Norm(ValueId x, bool root_mean_square, bool bias, const std::string& name);
  /// x itself at ratio 0.
  ValueId Dropout(ValueId x, double ratio, const std::string& name);

  /// Returns the mean of the cross-entropies of all rows.
  void ReturnCrossEntropy(ValueId logits, ValueId labels, absl::string_view name);
  /// The same, called "loss"; the function is then complete.
  absl::StatusOr<Function> FinishWithCrossEntropy(ValueId logits, ValueId labels);

 private:
  /// y of weights of those dimensions, and x times both matrices of an adapter where there is one;
  /// then that is called `name`.
  ValueId Adapted(ValueId y, ValueId x, const Dims& weights, const std::string& name);

  Builder builder_;
  DType dtype_;
  Adapters adapters_;
};

}  // namespace orrery::ir

#endif  // ORRERY_IR_MODELS_LAYERS_H_
