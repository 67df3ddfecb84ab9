#include "tests/semantics/random_step.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/builder.h"
#include "ir/op_kind.h"
#include "support/check.h"
#include "transforms/training/training_step.h"

namespace orrery::semantics {
namespace random_step_cc {
namespace {

using ir::DType;
using ir::OpKind;
using ir::TensorType;
using ir::ValueId;

class Generator {
 public:
  explicit Generator(const RandomShape& shape)
      : shape_(shape), random_(shape.seed), builder_("random") {}

  ir::Function Make() {
    x_ = Start();
    for (int layer = 0; layer < shape_.layers; ++layer) Layer();
    builder_.Return(x_);
    absl::StatusOr<ir::Function> function = std::move(builder_).Finalize();
    ORRERY_CHECK(function.ok()) << function.status().ToString();
    return *std::move(function);
  }

 private:
  bool OneIn(uint32_t n) { return random_() % n == 0; }
  int64_t Width() { return shape_.width_unit * (1 + static_cast<int64_t>(random_() % 3)); }
  std::string Name(const char* prefix) { return absl::StrCat(prefix, "_", names_++); }
  TensorType Type(ir::Dims dims) { return {DType::kF32, std::move(dims), {}}; }
  int64_t WidthOf(ValueId value) { return builder_.type(value).dims.back(); }
  ValueId Op(OpKind kind, std::initializer_list<ValueId> operands, const char* name,
             const ir::AttributeSet& attributes = {}) {
    return builder_.Op(kind, operands, Name(name), attributes);
  }

  // A batch of vectors, or of sequences of vectors with a position added: the gradient of a weight
  // alone cannot be asked for where a batch has more than two dimensions.
  ValueId Start() {
    const int64_t width = Width();
    if (!OneIn(3)) return builder_.Data("x", Type({shape_.batch, width}));
    const ValueId x = builder_.Data("x", Type({shape_.batch, 3, width}));
    const ValueId position = builder_.Parameter(Name("position"), Type({3, width}));
    return Op(OpKind::kAdd, {x, position}, "placed");
  }

  // x times a weight that is stored in one of four ways.
  ValueId Product(int64_t in, int64_t out) {
    ValueId& tied = tied_[{in, out}];
    if (shape_.tied && tied.valid() && OneIn(2)) return Op(OpKind::kMatMul, {x_, tied}, "y");
    const uint32_t way = random_() % 4;
    const bool transposed = way == 1 || way == 2;
    const ValueId w =
        builder_.Parameter(Name("w"), Type(transposed ? ir::Dims{out, in} : ir::Dims{in, out}));
    if (way == 1) return Op(OpKind::kMatMul, {x_, Op(OpKind::kTranspose, {w}, "wt")}, "y");
    if (way == 2) return Op(OpKind::kMatMul, {x_, w}, "y", {{"transpose_w", int64_t{1}}});
    tied = way == 3 ? Op(OpKind::kScale, {w}, "ws", {{"factor", 1.5}}) : w;
    return Op(OpKind::kMatMul, {x_, tied}, "y");
  }

  ValueId Vector(const char* name) { return builder_.Parameter(Name(name), Type({WidthOf(x_)})); }

  void Layer() {
    earlier_.push_back(x_);
    x_ = Product(WidthOf(x_), OneIn(2) ? WidthOf(x_) : Width());
    if (OneIn(2)) {
      const ValueId bias = Vector("bias");
      x_ = OneIn(2) ? Op(OpKind::kAdd, {x_, bias}, "sum") : Op(OpKind::kAdd, {bias, x_}, "sum");
    }
    if (OneIn(4)) x_ = Op(OpKind::kMul, {x_, Vector("gain")}, "scaled");
    // Data that is the same for all samples; its width must not be taken for the batch.
    if (OneIn(8) && WidthOf(x_) != shape_.batch) {
      const ValueId mask = builder_.Data(Name("mask"), Type({WidthOf(x_)}));
      x_ = Op(OpKind::kMul, {x_, mask}, "masked");
    }
    if (OneIn(4)) x_ = Op(OpKind::kScale, {x_}, "half", {{"factor", 0.5}});
    if (!OneIn(3)) x_ = Op(OpKind::kRelu, {x_}, "a");
    if (OneIn(4)) x_ = Op(OpKind::kIdentity, {x_}, "same");
    for (const ValueId other : earlier_) {
      const bool fits = builder_.type(other).dims == builder_.type(x_).dims;
      if (fits && OneIn(3)) x_ = Op(OpKind::kAdd, {other, x_}, "residual");
    }
  }

  const RandomShape& shape_;
  std::mt19937 random_;
  ir::Builder builder_;
  int names_ = 0;
  ValueId x_;
  std::vector<ValueId> earlier_;
  std::map<std::pair<int64_t, int64_t>, ValueId> tied_;
};

// Below which whole numbers are positions in any dimension of the tensors that they index.
int64_t IndexLimit(const ir::Function& function, ValueId value) {
  int64_t limit = 8;
  for (const ir::OpId op : function.order()) {
    const auto operands = function.operands(op);
    if (std::find(operands.begin(), operands.end(), value) == operands.end()) continue;
    for (const int64_t dim : function.type(operands[0]).dims) {
      if (operands[0] != value && dim > 1) limit = std::min(limit, dim);
    }
  }
  return limit;
}

}  // namespace
}  // namespace random_step_cc

ir::Function RandomForward(const RandomShape& shape) {
  return random_step_cc::Generator(shape).Make();
}

ir::Function RandomStep(const RandomShape& shape, const std::string& optimizer) {
  ir::Function function = RandomForward(shape);
  const absl::Status status = transforms::MakeTrainingStep(
      function, {.optimizer = optimizer, .loss = {.kind = "mse"}, .simplify = false});
  ORRERY_CHECK(status.ok()) << status.ToString();
  for (const ir::Output& output : function.outputs()) {
    if (!function.value_name(output.value).empty()) continue;
    function.SetName(output.value, absl::StrCat("out_", output.value.index()));
  }
  return function;
}

Named RandomInputs(const ir::Function& function, uint32_t seed) {
  std::mt19937 random(seed);
  Named inputs;
  for (const ir::Input& input : function.inputs()) {
    const ir::TensorType& type = function.type(input.value);
    Tensor tensor(type.dtype, type.dims);
    for (double& value : tensor.floats()) {
      value = static_cast<double>(random() % 2001) / 1000 - 1;
      if (input.role == ir::InputRole::kState) value = std::abs(value) + 0.1;
    }
    const int64_t limit = random_step_cc::IndexLimit(function, input.value);
    for (int64_t& value : tensor.ints()) value = static_cast<int64_t>(random()) % limit;
    inputs[std::string(function.value_name(input.value))] = std::move(tensor);
  }
  return inputs;
}

}  // namespace orrery::semantics
