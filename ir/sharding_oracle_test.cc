#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/sharding_oracle_test_util.h"
#include "ir/tensor_parts.h"
#include "tests/ir_text/examples.h"

// Sharding rules against an oracle that knows none: each op is evaluated rank by rank on what that
// rank holds, under every way to shard its operands that InferTypes lets pass; what the ranks
// have, put together as the inferred sharding says, is what one device computes.

namespace orrery::ir {
namespace sharding_oracle_test_cc {
namespace {

using examples::Example;
using oracle::Divides;
using oracle::Near;
using oracle::ShardsOf;
using oracle::Tensors;
using oracle::Types;
using oracle::UsesAxesOnce;

// Op kinds whose result depends on where an element stands in the whole, which a rank does not see.
const std::set<std::string>& KindsThatSeePositions() {
  static const auto& kinds = *new std::set<std::string>{
      "Dropout",  // the mask is made from the number of the element
  };
  return kinds;
}

// One op on some operands.
class Oracle {
 public:
  Oracle(const Example& example, Tensors operands, const Mesh& mesh)
      : example_(example), mesh_(mesh), wholes_(std::move(operands)) {
    const auto expected = examples::EvaluateExactly(example, wholes_);
    EXPECT_TRUE(expected.ok()) << example.name << ": " << expected.status();
    if (expected.ok()) expected_ = *expected;
    if (example.info().sharding == nullptr) return;
    const std::vector<const TensorType*> types = examples::Pointers(example.operands);
    rule_ = example.info().sharding(
        {.attributes = example.attributes, .operands = types, .mesh = Mesh()},
        *examples::ResultTypes(example, example.operands));
  }
  const ShardingRule& rule() const { return rule_; }

  /// Whether InferTypes accepts that sharding, and `split` as the axes of what is made; if so,
  /// evaluates it and compares.
  bool Check(const Types& types, const std::string& split = "") {
    if (rule_.made != kNoFactor) example_.attributes.Set("split", split);
    const auto results = examples::ResultTypes(example_, types, mesh_);
    if (!results.has_value()) return false;
    for (const TensorType& result : *results) {  // the verifier's to refuse
      if (!UsesAxesOnce(result.sharding, mesh_) || !Divides(result, mesh_)) return false;
    }
    Execute(types, *results);
    return true;
  }

 private:
  void Execute(const Types& types, const TypeList& results) {
    std::vector<Tensors> held, made(results.size());
    for (size_t i = 0; i < types.size(); ++i) {
      held.push_back(ShardsOf(wholes_[i], types[i], mesh_, random_));
    }
    const int64_t partial_over = oracle::PartialOver(types, results, mesh_);
    for (const int64_t rank : AllRanks(mesh_)) {
      std::vector<const Tensor*> in;
      for (const Tensors& operand : held) in.push_back(&operand[static_cast<size_t>(rank)]);
      Tensors out;
      std::vector<Share> shares;
      for (const TensorType& type : types) shares.push_back(ShareOf(type, mesh_, rank));
      for (const TensorType& result : results) {
        out.emplace_back(result.dtype, LocalType(result, mesh_).dims);
        shares.push_back(ShareOf(result, mesh_, rank));
      }
      Evaluation evaluation{.attributes = example_.attributes,
                            .operands = in,
                            .results = out,
                            .partial_over = partial_over,
                            .shares = shares};
      const absl::Status status = example_.info().evaluate(evaluation);
      if (oracle::LacksMatrices(example_.info(), types)) return oracle::ExpectRefused(status);
      ASSERT_TRUE(status.ok()) << Describe(types, results) << ": " << status;
      for (size_t j = 0; j < out.size(); ++j) made[j].push_back(std::move(out[j]));
    }
    for (size_t j = 0; j < results.size(); ++j) {
      if (!rule_.exact || (rule_.own_results >> j & 1) != 0) {
        ExpectLocalTypes(made[j], results[j]);
        continue;
      }
      double disagreement = 0;
      const Tensor whole = Gather(made[j], results[j], mesh_, AllRanks(mesh_), disagreement);
      EXPECT_LE(disagreement, oracle::kTolerance)
          << Describe(types, results) << ": replicas differ";
      EXPECT_TRUE(Near(whole, expected_[j])) << Describe(types, results) << ": result " << j
                                             << " is off by " << Distance(whole, expected_[j]);
    }
  }

  void ExpectLocalTypes(const Tensors& made, const TensorType& type) const {
    for (const Tensor& part : made) EXPECT_EQ(part.dims(), LocalType(type, mesh_).dims);
  }

  std::string Describe(const Types& types, const TypeList& results) const {
    const auto show = [this](std::string* out, const TensorType& type) {
      absl::StrAppend(out, ToString(type, mesh_));
    };
    return absl::StrCat(example_.name, "(", absl::StrJoin(types, ", ", show),
                        ") = ", absl::StrJoin(results, ", ", show), " ",
                        ToString(example_.attributes));
  }

  Example example_;
  const Mesh& mesh_;
  std::mt19937 random_{5};
  Tensors wholes_, expected_;
  ShardingRule rule_;  // of an op that has one
};

// Every sharding that there is, accepted or not, for a few ops on shapes that allow all of them.

AxisList Axes(std::initializer_list<AxisIndex> axes) {
  AxisList list;
  for (const AxisIndex axis : axes) list.push_back(axis);
  return list;
}

// All ways to shard a tensor of `dims` over two axes: each is idle, splits a dimension, or is
// partial.
Types AllShardings(const TensorType& whole, const Mesh& mesh) {
  const std::vector<AxisList> choices = {Axes({}), Axes({0}), Axes({1}), Axes({0, 1}),
                                         Axes({1, 0})};
  Types shardings = {whole};
  for (size_t d = 0; d <= whole.dims.size(); ++d) {
    Types longer;
    for (const TensorType& type : shardings) {
      for (const AxisList& choice : choices) {
        TensorType next = type;
        if (d < whole.dims.size()) {
          next.sharding.Set(d, whole.dims.size(), choice);
        } else if (choice != Axes({1, 0})) {  // a sum has no order
          next.sharding.partial = choice;
        }
        const bool same = next == type && !choice.empty();
        if (!same && UsesAxesOnce(next.sharding, mesh) && Divides(next, mesh)) {
          longer.push_back(next);
        }
      }
    }
    shardings = std::move(longer);
  }
  return shardings;
}

int CheckAllShardings(const Example& example, const Types& types, const Mesh& mesh,
                      Oracle& oracle) {
  if (types.size() == example.operands.size()) return oracle.Check(types) ? 1 : 0;
  int accepted = 0;
  for (const TensorType& type : AllShardings(example.operands[types.size()], mesh)) {
    Types longer = types;
    longer.push_back(type);
    accepted += CheckAllShardings(example, longer, mesh, oracle);
  }
  return accepted;
}

// How many ways there are, by hand. Over F factors each of two axes is idle or splits one of them,
// (F+1)^2 ways, and where both split one they have two orders: F more. A linear op may be partial
// as well, which is one more position for an axis, without an order.
constexpr int Ways(int factors) { return (factors + 1) * (factors + 1) + factors; }
constexpr int LinearWays(int factors) { return (factors + 2) * (factors + 2) + factors; }

struct Case {
  std::string name;
  OpKind kind;
  AttributeSet attributes;
  std::vector<Dims> operands;
  int shardings;
};

const Dims kSquare = {6, 6}, kCube = {6, 6, 6}, kRow = {6};

TEST(ShardingOracle, OfEverySharding) {
  const auto ints = [](std::vector<int64_t> list) { return Attribute(std::move(list)); };
  const AttributeSet tx = {{"transpose_x", int64_t{1}}}, tw = {{"transpose_w", int64_t{1}}};
  const AttributeSet batch = {{"batch", int64_t{1}}};
  const Case cases[] = {
      {"MatMul", OpKind::kMatMul, {}, {kSquare, kSquare}, Ways(3)},
      {"MatMul x^T", OpKind::kMatMul, tx, {kSquare, kSquare}, Ways(3)},
      {"MatMul w^T", OpKind::kMatMul, tw, {kSquare, kSquare}, Ways(3)},
      {"MatMul batched", OpKind::kMatMul, {}, {kCube, kSquare}, Ways(4)},
      {"MatMul batched x^T", OpKind::kMatMul, tx, {kCube, kSquare}, Ways(4)},
      {"MatMulGrad", OpKind::kMatMulGrad, {}, {kSquare, kSquare, kSquare}, Ways(3)},
      {"MatMulGrad w^T", OpKind::kMatMulGrad, tw, {kSquare, kSquare, kSquare}, Ways(3)},
      {"MatMulGrad batched", OpKind::kMatMulGrad, {}, {kCube, kSquare, kCube}, Ways(4)},
      {"Add", OpKind::kAdd, {}, {kSquare, kSquare}, LinearWays(2)},
      {"Add bias", OpKind::kAdd, {}, {kSquare, kRow}, LinearWays(2)},
      {"Add to bias", OpKind::kAdd, {}, {kRow, kSquare}, LinearWays(2)},
      {"Add outer", OpKind::kAdd, {}, {{6, 1}, {1, 6}}, LinearWays(2)},
      {"Mul", OpKind::kMul, {}, {kSquare, kSquare}, Ways(2)},
      {"Mul outer", OpKind::kMul, {}, {{6, 1}, {6}}, Ways(2)},
      {"Scale", OpKind::kScale, {{"factor", 2.0}}, {kSquare}, LinearWays(2)},
      {"Relu", OpKind::kRelu, {}, {kSquare}, Ways(2)},
      {"ReluGrad", OpKind::kReluGrad, {}, {kSquare, kSquare}, Ways(2)},
      {"Identity", OpKind::kIdentity, {}, {kCube}, LinearWays(3)},
      {"Accumulate", OpKind::kAccumulate, {}, {kSquare, kSquare}, LinearWays(2)},
      {"Loss", OpKind::kLoss, batch, {kSquare, kSquare}, Ways(2)},
      {"LossGrad", OpKind::kLossGrad, batch, {kSquare, kSquare}, Ways(2)},
      {"Transpose", OpKind::kTranspose, {}, {kSquare}, LinearWays(2)},
      {"Transpose 201", OpKind::kTranspose, {{"perm", ints({2, 0, 1})}}, {kCube}, LinearWays(3)},
      {"ReduceSum 0", OpKind::kReduceSum, {{"axes", ints({0})}}, {kSquare}, LinearWays(2)},
      {"ReduceSum 1", OpKind::kReduceSum, {{"axes", ints({1})}}, {kCube}, LinearWays(3)},
      {"ReduceSum all", OpKind::kReduceSum, {{"axes", ints({0, 1})}}, {kSquare}, LinearWays(2)},
  };
  const Mesh mesh({{"dp", 2}, {"hp", 3}});
  for (const Case& test : cases) {
    Example example{.name = test.name,
                    .kind = test.kind,
                    .attributes = test.attributes,
                    .operands = {},
                    .known = std::vector<std::optional<Tensor>>(test.operands.size())};
    for (const Dims& dims : test.operands) example.operands.push_back({DType::kF32, dims, {}});
    std::mt19937 random(7);
    Oracle oracle(example, examples::Operands(example, random), mesh);
    EXPECT_EQ(CheckAllShardings(example, {}, mesh, oracle), test.shardings) << test.name;
  }
}

// Every op kind, on its examples: the shardings that its rule describes.

constexpr int kIdle = -1, kPartial = -2;

// The factors of the operands' dimensions.
std::set<int> FactorsOf(const ShardingRule& rule) {
  std::set<int> factors;
  for (const ShardingRule::Factors& operand : rule.operands) {
    for (const int8_t factor : operand) {
      if (factor != kNoFactor) factors.insert(factor);
    }
  }
  return factors;
}

// The operands where axis 0 of the mesh goes to factor `first` and axis 1 to `second`.
Types Assigned(const Example& example, const ShardingRule& rule, int first, int second,
               bool swapped) {
  Types types = example.operands;
  for (size_t i = 0; i < types.size(); ++i) {
    for (size_t d = 0; d < types[i].dims.size(); ++d) {
      AxisList axes;
      const int factor = rule.operands[i][d] == kNoFactor ? -3 : rule.operands[i][d];
      if (swapped && factor == second) axes.push_back(1);
      if (factor == first) axes.push_back(0);
      if (!swapped && factor == second) axes.push_back(1);
      types[i].sharding.Set(d, types[i].dims.size(), axes);
    }
    if (first == kPartial) types[i].sharding.partial.push_back(0);
    if (second == kPartial) types[i].sharding.partial.push_back(1);
  }
  return types;
}

// The same where those operands of `operands`, a set of bits, that may be whole are, along a
// factor.
Types WithWhole(Types types, const ShardingRule& rule, uint32_t operands, int factor) {
  for (size_t i = 0; i < types.size() && i < 32; ++i) {
    if ((operands & rule.whole_too & uint32_t{1} << i) == 0) continue;
    for (size_t d = 0; d < types[i].dims.size(); ++d) {
      if (rule.operands[i][d] == factor) types[i].sharding.Set(d, types[i].dims.size(), {});
    }
  }
  return types;
}

// The same where one operand alone is partial, of those that the op is linear in.
int CheckPartialAlone(const Example& example, const Mesh& mesh, Oracle& oracle) {
  int accepted = 0;
  const auto divides = [&](const TensorType& type) { return Divides(type, mesh); };
  for (size_t i = 0; i < example.operands.size(); ++i) {
    if ((example.info().linear_in >> i & 1) == 0) continue;
    for (const int position : FactorsOf(oracle.rule())) {
      Types types = Assigned(example, oracle.rule(), kIdle, position, false);
      types[i].sharding.partial.push_back(0);
      if (!std::ranges::all_of(types, divides)) continue;
      EXPECT_TRUE(oracle.Check(types)) << example.name << ": operand " << i;
      ++accepted;
    }
  }
  return accepted;
}

// How many shardings beyond the whole one there are; each is checked.
int CheckRule(const Example& example, const Mesh& mesh, Oracle& oracle) {
  const auto results = examples::ResultTypes(example, example.operands);
  if (!results.has_value()) return 0;
  const std::vector<const TensorType*> pointers = examples::Pointers(example.operands);
  const Mesh none;
  const ShardingRule rule = example.info().sharding(
      {.attributes = example.attributes, .operands = pointers, .mesh = none}, *results);
  std::set<int> positions = FactorsOf(rule);
  positions.insert(kIdle);
  const bool has_bool = std::any_of(example.operands.begin(), example.operands.end(),
                                    [](const TensorType& t) { return t.dtype == DType::kBool; });
  if (example.info().linear && !has_bool) positions.insert(kPartial);
  const auto divides = [&](const TensorType& type) { return Divides(type, mesh); };
  const auto passes = [&](const Types& types) {
    const bool all = std::ranges::all_of(types, divides);
    return all && types != example.operands && oracle.Check(types) ? 1 : 0;
  };
  int accepted = 0;
  for (const int first : positions) {
    for (const int second : positions) {
      for (const bool swapped : {false, true}) {
        if (swapped && (first != second || first < 0)) continue;
        const Types types = Assigned(example, rule, first, second, swapped);
        accepted += passes(types);
        for (uint32_t set = 1; set <= rule.whole_too; ++set) {
          const Types other = WithWhole(types, rule, set, first);
          if ((set & ~rule.whole_too) == 0 && other != types) accepted += passes(other);
        }
      }
    }
  }
  return accepted;
}

// The same for ops that shard their results by themselves: operands sharded alike.
int CheckAlike(const Example& example, const Mesh& mesh, Oracle& oracle) {
  int accepted = 0;
  for (const TensorType& sharded : AllShardings(example.operands[0], mesh)) {
    const Types types = oracle::ShardedAlike(example.info(), example.operands, sharded);
    if (types != example.operands && oracle.Check(types)) ++accepted;
  }
  return accepted;
}

// The same where each rank makes its part of the results, alone and beside a split of operands.
int CheckMade(const Example& example, const Mesh& mesh, Oracle& oracle) {
  int accepted = 0;
  const auto check = [&](const Types& types, const std::string& split) {
    const bool divides = std::all_of(types.begin(), types.end(),
                                     [&](const TensorType& type) { return Divides(type, mesh); });
    if (divides && oracle.Check(types, split)) ++accepted;
  };
  std::set<int> positions = FactorsOf(oracle.rule());
  positions.insert(kIdle);
  for (const int position : positions) {
    check(Assigned(example, oracle.rule(), kIdle, position, false), "dp");
    check(Assigned(example, oracle.rule(), position, kIdle, false), "hp");
  }
  for (const char* split : {"dp.hp", "hp.dp"}) check(example.operands, split);
  return accepted;
}

TEST(ShardingOracle, OfEveryExample) {
  std::map<std::string, int> accepted;  // shardings by op kind
  for (const Example& example : examples::All()) {
    const OpInfo& info = example.info();
    if (info.sharding == nullptr && info.infer_sharding == nullptr) continue;
    if (KindsThatSeePositions().contains(std::string(info.name)) || example.operands.empty())
      continue;
    std::mt19937 random(11);
    const Tensors operands = examples::Operands(example, random);
    for (const Mesh& mesh : {Mesh({{"dp", 2}, {"hp", 2}}), Mesh({{"dp", 3}, {"hp", 2}})}) {
      Oracle oracle(example, operands, mesh);
      if (testing::Test::HasFatalFailure()) return;
      accepted[std::string(info.name)] += info.sharding != nullptr
                                              ? CheckRule(example, mesh, oracle)
                                              : CheckAlike(example, mesh, oracle);
      if (info.linear_in != 0) {
        accepted[absl::StrCat(info.name, ".alone")] += CheckPartialAlone(example, mesh, oracle);
      }
      if (oracle.rule().made == kNoFactor) continue;
      accepted[absl::StrCat(info.name, ".split")] += CheckMade(example, mesh, oracle);
    }
  }
  for (const auto& [name, shardings] : accepted) {
    EXPECT_GT(shardings, 0) << name << ": no dimension of its examples can be split over 2 or 3";
  }
  EXPECT_GE(accepted.size(), 15U);
}

}  // namespace
}  // namespace sharding_oracle_test_cc
}  // namespace orrery::ir
