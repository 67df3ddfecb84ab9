#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "ir/op_info.h"
#include "tests/ir_text/integer_kernels.h"

// Sharding rules against an oracle that knows none: each op runs on small tensors of integers, rank
// by rank on what that rank holds, under every way to spread its operands that InferTypes lets
// pass; what the ranks have, put together as the inferred sharding says, is what one device
// computes.

namespace orrery::ir {
namespace {

// Spreading and putting together.

const Mesh& TheMesh() {
  static const Mesh mesh({{"dp", 2}, {"hp", 3}});
  return mesh;
}

// The place of `rank` along `axes`, the first one outermost.
int64_t PlaceAlong(const AxisList& axes, int64_t rank) {
  int64_t place = 0;
  for (const AxisIndex axis : axes.axes()) {
    const int64_t size = TheMesh().size(axis);
    place = place * size + rank / TheMesh().stride(axis) % size;
  }
  return place;
}

Dims LocalDims(const TensorType& type) {
  Dims dims = type.dims;
  for (size_t d = 0; d < dims.size(); ++d) dims[d] /= TheMesh().size(type.sharding.at(d));
  return dims;
}

// Where the element at `index` of what `rank` holds stands in the whole.
Index Global(const TensorType& type, int64_t rank, Index index) {
  const Dims local = LocalDims(type);
  for (size_t d = 0; d < index.size(); ++d) {
    index[d] += PlaceAlong(type.sharding.at(d), rank) * local[d];
  }
  return index;
}

// What each rank holds of `whole`. Where it is partial, random summands that add up to it.
Tensors Spread(const Tensor& whole, const TensorType& type, std::mt19937& random) {
  Tensors summands(static_cast<size_t>(TheMesh().size(type.sharding.partial)), whole);
  for (size_t s = 1; s < summands.size(); ++s) {
    for (size_t i = 0; i < whole.elements.size(); ++i) {
      summands[s].elements[i] = static_cast<int64_t>(random() % 19) - 9;
      summands[0].elements[i] -= summands[s].elements[i];
    }
  }
  Tensors held;
  for (int64_t rank = 0; rank < TheMesh().size(); ++rank) {
    const auto s = static_cast<size_t>(PlaceAlong(type.sharding.partial, rank));
    held.push_back(Zeros(LocalDims(type)));
    ForEachIndex(held.back().dims, [&](const Index& index) {
      At(held.back(), index) = At(summands[s], Global(type, rank, index));
    });
  }
  return held;
}

// The whole that the ranks hold, or the trouble: ranks that ought to hold the same must.
std::pair<Tensor, std::string> Gather(const Tensors& held, const TensorType& type) {
  std::map<std::pair<int64_t, Index>, int64_t> elements;  // by summand and place
  for (int64_t rank = 0; rank < TheMesh().size(); ++rank) {
    const Tensor& part = held[static_cast<size_t>(rank)];
    if (part.dims != LocalDims(type)) return {{}, absl::StrCat("dims of rank ", rank)};
    std::string trouble;
    ForEachIndex(part.dims, [&](const Index& index) {
      const auto key =
          std::pair(PlaceAlong(type.sharding.partial, rank), Global(type, rank, index));
      const auto [found, is_new] = elements.emplace(key, At(part, index));
      if (!is_new && found->second != At(part, index)) trouble = "replicas differ";
    });
    if (!trouble.empty()) return {{}, trouble};
  }
  Tensor whole = Zeros(type.dims);
  for (const auto& [key, element] : elements) At(whole, key.second) += element;
  return {whole, ""};
}

// Enumeration.

bool UsesAxesOnce(const Sharding& sharding) {
  for (AxisIndex axis = 0; axis < TheMesh().axes().size(); ++axis) {
    int uses = sharding.partial.contains(axis) ? 1 : 0;
    for (const AxisList& list : sharding.split) uses += list.contains(axis) ? 1 : 0;
    if (uses > 1) return false;
  }
  return true;
}

bool Divides(const TensorType& type) {
  for (size_t d = 0; d < type.dims.size(); ++d) {
    if (type.dims[d] % TheMesh().size(type.sharding.at(d)) != 0) return false;
  }
  return true;
}

AxisList Axes(std::initializer_list<AxisIndex> axes) {
  AxisList list;
  for (const AxisIndex axis : axes) list.push_back(axis);
  return list;
}

// All ways to spread a tensor of `dims`: each axis is idle, splits a dimension, or is partial.
std::vector<TensorType> AllSpreads(const Dims& dims) {
  const std::vector<AxisList> choices = {Axes({}), Axes({0}), Axes({1}), Axes({0, 1}),
                                         Axes({1, 0})};
  std::vector<TensorType> spreads = {{DType::kI64, dims, {}}};
  for (size_t d = 0; d <= dims.size(); ++d) {
    std::vector<TensorType> longer;
    for (const TensorType& type : spreads) {
      for (const AxisList& choice : choices) {
        TensorType next = type;
        if (d < dims.size()) {
          next.sharding.Set(d, dims.size(), choice);
        } else if (choice != Axes({1, 0})) {  // a sum has no order
          next.sharding.partial = choice;
        }
        const bool same = next == type && !choice.empty();
        if (!same && UsesAxesOnce(next.sharding) && Divides(next)) longer.push_back(next);
      }
    }
    spreads = std::move(longer);
  }
  return spreads;
}

struct Case {
  std::string name;
  OpKind kind;
  AttributeSet attributes;
  std::vector<Dims> operands;
  Kernel kernel;
  int spreads;  // how many ways to spread it there are; see below
};

class Oracle {
 public:
  explicit Oracle(const Case& test) : test_(test) {
    for (const Dims& dims : test.operands) {
      wholes_.push_back(Zeros(dims));
      for (int64_t& element : wholes_.back().elements) {
        element = static_cast<int64_t>(random_() % 19) - 9;
      }
    }
    expected_ = test.kernel(wholes_);
  }

  int CheckAll() {
    Choose({});
    return accepted_;
  }

 private:
  void Choose(const std::vector<TensorType>& types) {
    if (types.size() == test_.operands.size()) return Check(types);
    for (const TensorType& type : AllSpreads(test_.operands[types.size()])) {
      std::vector<TensorType> longer = types;
      longer.push_back(type);
      Choose(longer);
    }
  }

  void Check(const std::vector<TensorType>& types) {
    std::vector<const TensorType*> pointers;
    for (const TensorType& type : types) pointers.push_back(&type);
    TypeList results;
    const OpTypes op{.attributes = test_.attributes, .operands = pointers, .mesh = TheMesh()};
    if (!InferTypes(test_.kind, op, results).ok()) return;
    for (const TensorType& result : results) {
      if (!UsesAxesOnce(result.sharding) || !Divides(result)) return;  // the verifier's to refuse
    }
    ++accepted_;
    Execute(types, results);
  }

  void Execute(const std::vector<TensorType>& types, const TypeList& results) {
    std::vector<Tensors> held;
    for (size_t i = 0; i < types.size(); ++i) held.push_back(Spread(wholes_[i], types[i], random_));
    std::vector<Tensors> made(results.size());
    for (size_t rank = 0; rank < static_cast<size_t>(TheMesh().size()); ++rank) {
      Tensors in;
      for (const Tensors& operand : held) in.push_back(operand[rank]);
      const Tensors out = test_.kernel(in);
      for (size_t j = 0; j < out.size(); ++j) made[j].push_back(out[j]);
    }
    for (size_t j = 0; j < results.size(); ++j) {
      const auto [whole, trouble] = Gather(made[j], results[j]);
      EXPECT_EQ(trouble, "") << Describe(types, results);
      EXPECT_EQ(whole.elements, expected_[j].elements) << Describe(types, results);
    }
  }

  std::string Describe(const std::vector<TensorType>& types, const TypeList& results) const {
    const auto show = [](std::string* out, const TensorType& type) {
      absl::StrAppend(out, ToString(type, TheMesh()));
    };
    return absl::StrCat(test_.name, "(", absl::StrJoin(types, ", ", show),
                        ") = ", absl::StrJoin(results, ", ", show));
  }

  const Case& test_;
  std::mt19937 random_{5};
  Tensors wholes_, expected_;
  int accepted_ = 0;
};

// How many ways there are, by hand. Over F factors each of two axes is idle or splits one of them,
// (F+1)^2 ways, and where both split one they have two orders: F more. A linear op may be partial
// as well, which is one more place for an axis, without an order.
constexpr int Ways(int factors) { return (factors + 1) * (factors + 1) + factors; }
constexpr int LinearWays(int factors) { return (factors + 2) * (factors + 2) + factors; }

const Dims kSquare = {6, 6}, kCube = {6, 6, 6}, kRow = {6};

TEST(ShardingOracle, OfProducts) {
  const auto transposed_x = [](const Tensors& in) { return Multiply({Swapped(in[0]), in[1]}); };
  const auto transposed_w = [](const Tensors& in) { return Multiply({in[0], Swapped(in[1])}); };
  const auto gradients_of_transposed_w = [](const Tensors& in) -> Tensors {
    const Tensors out = MultiplyGradients({in[0], Swapped(in[1]), in[2]});
    return {out[0], Swapped(out[1])};
  };
  const AttributeSet tx = {{"transpose_x", int64_t{1}}}, tw = {{"transpose_w", int64_t{1}}};
  const Case cases[] = {
      {"MatMul", OpKind::kMatMul, {}, {kSquare, kSquare}, Multiply, Ways(3)},
      {"MatMul x^T", OpKind::kMatMul, tx, {kSquare, kSquare}, transposed_x, Ways(3)},
      {"MatMul w^T", OpKind::kMatMul, tw, {kSquare, kSquare}, transposed_w, Ways(3)},
      {"MatMul batched", OpKind::kMatMul, {}, {kCube, kSquare}, Multiply, Ways(4)},
      {"MatMul batched x^T", OpKind::kMatMul, tx, {kCube, kSquare}, transposed_x, Ways(4)},
      {"MatMulGrad",
       OpKind::kMatMulGrad,
       {},
       {kSquare, kSquare, kSquare},
       MultiplyGradients,
       Ways(3)},
      {"MatMulGrad w^T",
       OpKind::kMatMulGrad,
       tw,
       {kSquare, kSquare, kSquare},
       gradients_of_transposed_w,
       Ways(3)},
      {"MatMulGrad batched",
       OpKind::kMatMulGrad,
       {},
       {kCube, kSquare, kCube},
       MultiplyGradients,
       Ways(4)},
  };
  for (const Case& test : cases) EXPECT_EQ(Oracle(test).CheckAll(), test.spreads) << test.name;
}

TEST(ShardingOracle, OfElementwiseOps) {
  const Kernel add = Elementwise([](int64_t x, int64_t y) { return x + y; });
  const Kernel multiply = Elementwise([](int64_t x, int64_t y) { return x * y; });
  const Kernel relu = Elementwise([](int64_t x, int64_t) { return std::max<int64_t>(x, 0); });
  const Kernel relu_grad = Elementwise([](int64_t x, int64_t dy) { return x > 0 ? dy : 0; });
  const Kernel twice = Elementwise([](int64_t x, int64_t) { return 2 * x; });
  const Kernel same = Elementwise([](int64_t x, int64_t) { return x; });
  const Kernel square = Elementwise([](int64_t x, int64_t z) { return (x - z) * (x - z); });
  const Kernel slope = Elementwise([](int64_t x, int64_t z) { return 2 * (x - z); });
  const AttributeSet batch = {{"batch", int64_t{1}}};
  const Case cases[] = {
      {"Add", OpKind::kAdd, {}, {kSquare, kSquare}, add, LinearWays(2)},
      {"Add bias", OpKind::kAdd, {}, {kSquare, kRow}, add, LinearWays(2)},
      {"Add to bias", OpKind::kAdd, {}, {kRow, kSquare}, add, LinearWays(2)},
      {"Add outer", OpKind::kAdd, {}, {{6, 1}, {1, 6}}, add, LinearWays(2)},
      {"Mul", OpKind::kMul, {}, {kSquare, kSquare}, multiply, Ways(2)},
      {"Mul outer", OpKind::kMul, {}, {{6, 1}, {6}}, multiply, Ways(2)},
      {"Scale", OpKind::kScale, {{"factor", 2.0}}, {kSquare}, twice, LinearWays(2)},
      {"Relu", OpKind::kRelu, {}, {kSquare}, relu, Ways(2)},
      {"ReluGrad", OpKind::kReluGrad, {}, {kSquare, kSquare}, relu_grad, Ways(2)},
      {"Identity", OpKind::kIdentity, {}, {kCube}, same, LinearWays(3)},
      {"Accumulate", OpKind::kAccumulate, {}, {kSquare, kSquare}, add, LinearWays(2)},
      {"Loss", OpKind::kLoss, batch, {kSquare, kSquare}, square, Ways(2)},
      {"LossGrad", OpKind::kLossGrad, batch, {kSquare, kSquare}, slope, Ways(2)},
  };
  for (const Case& test : cases) EXPECT_EQ(Oracle(test).CheckAll(), test.spreads) << test.name;
}

TEST(ShardingOracle, OfShapes) {
  const auto ints = [](std::vector<int64_t> list) { return Attribute(std::move(list)); };
  const Case cases[] = {
      {"Transpose", OpKind::kTranspose, {}, {kSquare}, Permute({1, 0}), LinearWays(2)},
      {"Transpose 201",
       OpKind::kTranspose,
       {{"perm", ints({2, 0, 1})}},
       {kCube},
       Permute({2, 0, 1}),
       LinearWays(3)},
      {"ReduceSum 0",
       OpKind::kReduceSum,
       {{"axes", ints({0})}},
       {kSquare},
       SumOver({0}),
       LinearWays(2)},
      {"ReduceSum 1",
       OpKind::kReduceSum,
       {{"axes", ints({1})}},
       {kCube},
       SumOver({1}),
       LinearWays(3)},
      {"ReduceSum all",
       OpKind::kReduceSum,
       {{"axes", ints({0, 1})}},
       {kSquare},
       SumOver({0, 1}),
       LinearWays(2)},
  };
  for (const Case& test : cases) EXPECT_EQ(Oracle(test).CheckAll(), test.spreads) << test.name;
}

}  // namespace
}  // namespace orrery::ir
