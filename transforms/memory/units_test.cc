#include "transforms/memory/units.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/builder.h"
#include "ir/op_kind.h"
#include "ir/verifier.h"

namespace orrery::transforms {
namespace units_test_cc {
namespace {

using ir::OpKind;
using ir::ValueId;

// Units of parameters, each a letter, of the sizes that `bytes` tells: the letters, cut.
std::string Units(absl::string_view letters, const std::function<int64_t(char)>& bytes) {
  std::vector<UnitMember> members;
  for (const char letter : letters) {
    members.push_back({.kind = letter, .size = Bytes(bytes(letter))});
  }
  const std::vector<int32_t> units = FindUnits(members);
  std::string cut;
  for (size_t i = 0; i < letters.size(); ++i) {
    if (i > 0 && units[i] != units[i - 1]) cut += ' ';
    cut += letters[i];
  }
  return cut;
}

std::string Units(absl::string_view letters) {
  return Units(letters, [](char) { return 100; });
}

TEST(FindUnits, LayersAreUnits) {
  EXPECT_EQ(Units("aaaa"), "a a a a");
  EXPECT_EQ(Units("abcabcabc"), "abc abc abc");
  // Embeddings, layers of norm, attention, norm, MLP, and a head with a norm.
  EXPECT_EQ(Units("ewnqkvonudnqkvonudnqkvonudnh"), "ew nqkvonud nqkvonud nqkvonud nh");
  EXPECT_EQ(Units(""), "");
  EXPECT_EQ(Units("x"), "x");
}

// Small parameters do not count as much as large ones, and are no units by themselves.
TEST(FindUnits, BytesDecideWhatRepeats) {
  const auto bytes = [](char letter) -> int64_t { return letter == 'b' ? 1 : 1000; };
  EXPECT_EQ(Units("bbbbwbvbwbvb", bytes), "bbb bwbv bwbv b");
  EXPECT_EQ(Units("bbbbbbbbbbwv", bytes), "bbbbbbbbbbw v");
}

TEST(FindUnits, StagesOfDifferentBlocksHaveUnitsEach) {
  EXPECT_EQ(Units("sababcdcdcdefeff"), "s ab ab cd cd cd ef ef f");
}

// What repeats nowhere is cut into sixteenths.
TEST(FindUnits, WithoutLayersBytesCount) {
  std::string letters;
  for (int i = 0; i < 64; ++i) letters += static_cast<char>('!' + i);
  const std::string cut = Units(letters);
  EXPECT_EQ(std::count(cut.begin(), cut.end(), ' '), 15);
  EXPECT_EQ(cut.substr(0, 9), "!\"#$ %&'(");
}

TEST(FindUnits, AreRunsThatCoverAll) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    std::vector<UnitMember> members(random() % 40);
    for (UnitMember& member : members) {
      member = {.kind = static_cast<int64_t>(random() % 4),
                .size = Bytes(static_cast<int64_t>(random() % 1000))};
    }
    const std::vector<int32_t> units = FindUnits(members);
    ASSERT_EQ(units.size(), members.size());
    for (size_t i = 0; i < units.size(); ++i) {
      const int32_t before = i == 0 ? -1 : units[i - 1];
      EXPECT_TRUE(units[i] == before || units[i] == before + 1);
      EXPECT_TRUE(i > 0 || units[i] == 0);
    }
  }
}

// A function of four layers x w, of unit 0 to 3, with gathers where they are used, and scatters of
// what they make; in which order it does what.
class Layers {
 public:
  explicit Layers(int layers) : builder_("layers", ir::Mesh({{"dp", 2}})) {
    ir::TensorType shard{ir::DType::kF32, {4, 4}, {}};
    shard.sharding.Set(0, 2, ir::AxisList(0));
    for (int i = 0; i < layers; ++i) {
      parameters_.push_back(builder_.Parameter(absl::StrCat("w", i), shard));
    }
    value_ = builder_.Data("x", {ir::DType::kF32, {4, 4}, {}});
  }

  ValueId Use(int layer) {
    const ValueId whole =
        builder_.Op(OpKind::kAllGather, {parameters_[static_cast<size_t>(layer)]},
                    absl::StrCat("gather", layer),
                    {{"axes", "dp"}, {"dim", int64_t{0}}, {"unit", int64_t{layer}}});
    value_ = builder_.MatMul(value_, whole, absl::StrCat("layer", layer));
    return value_;
  }

  ir::Builder& builder() { return builder_; }
  ValueId parameter(int layer) const { return parameters_[static_cast<size_t>(layer)]; }

  std::string Order(int64_t prefetch) && {
    builder_.Return(value_);
    ir::Function function = std::move(builder_).Finalize().value();
    OrderUnits(prefetch, function);
    EXPECT_TRUE(ir::Verify(function).ok()) << ir::Verify(function);
    std::vector<std::string> names;
    for (const ir::OpId op : function.order()) {
      names.emplace_back(function.value_name(function.result(op)));
    }
    return absl::StrJoin(names, " ");
  }

 private:
  ir::Builder builder_;
  std::vector<ValueId> parameters_;
  ValueId value_;
};

std::string OrderOfGathers(int64_t prefetch) {
  Layers layers(4);
  for (int layer = 0; layer < 4; ++layer) layers.Use(layer);
  return std::move(layers).Order(prefetch);
}

TEST(OrderUnits, GathersAsFarAheadAsItIsTold) {
  EXPECT_EQ(OrderOfGathers(0), "gather0 layer0 gather1 layer1 gather2 layer2 gather3 layer3");
  EXPECT_EQ(OrderOfGathers(1), "gather0 gather1 layer0 gather2 layer1 gather3 layer2 layer3");
  EXPECT_EQ(OrderOfGathers(2), "gather0 gather1 gather2 layer0 gather3 layer1 layer2 layer3");
  EXPECT_EQ(OrderOfGathers(9), "gather0 gather1 gather2 gather3 layer0 layer1 layer2 layer3");
}

// Backward: gradients of layers 2, 1, 0, and the sums that they are added to.
TEST(OrderUnits, ScattersAfterAUnitAndAddsUpAfterTheNext) {
  Layers layers(3);
  ir::Builder& b = layers.builder();
  for (int layer = 2; layer >= 0; --layer) {
    const ValueId y = layers.Use(layer);
    ir::TensorType partial{ir::DType::kF32, {4, 4}, {}};
    partial.sharding.partial = ir::AxisList(0);
    const ir::OpId gradient =
        b.TypedOp(OpKind::kReceive, {}, partial, absl::StrCat("gradient", layer), {});
    const ValueId scattered = b.Op(OpKind::kReduceScatter, {b.function().result(gradient)},
                                   absl::StrCat("scatter", layer),
                                   {{"axes", "dp"}, {"dim", int64_t{0}}, {"unit", int64_t{layer}}});
    const ValueId so_far =
        b.AddInput(absl::StrCat("sum", layer), b.type(scattered), ir::InputRole::kAccumulator);
    b.Return(b.Op(OpKind::kAccumulate, {so_far, scattered}, absl::StrCat("add", layer)),
             ir::OutputRole::kAccumulator, so_far);
    b.Return(b.Relu(y, absl::StrCat("after", layer)));
  }
  EXPECT_EQ(std::move(layers).Order(1),
            "gather2 gather1 layer2 gradient2 scatter2 after2 gather0 layer1 gradient1 scatter1 "
            "add2 after1 layer0 gradient0 scatter0 add1 after0 add0");
}

// Those that one collective can carry out stand together.
TEST(OrderUnits, JoinsGathersOfOneKind) {
  ir::Builder b("mixed", ir::Mesh({{"dp", 2}, {"cp", 2}}));
  std::vector<std::string> names;
  ValueId sum = b.Data("x", {ir::DType::kF32, {4, 4}, {}});
  for (const char* axes : {"dp.cp", "dp", "dp.cp"}) {
    ir::TensorType shard{ir::DType::kF32, {4, 4}, {}};
    ir::AxisList split(0);
    if (std::string(axes) == "dp.cp") split.push_back(1);
    shard.sharding.Set(0, 2, split);
    const std::string name = absl::StrCat("w", names.size());
    names.push_back(name);
    const ValueId whole =
        b.Op(OpKind::kAllGather, {b.Parameter(name, shard)}, absl::StrCat(name, ".", axes),
             {{"axes", axes}, {"dim", int64_t{0}}, {"unit", int64_t{0}}});
    sum = b.MatMul(sum, whole);
  }
  b.Return(sum);
  ir::Function function = std::move(b).Finalize().value();
  OrderUnits(1, function);
  std::vector<std::string> gathers;
  for (const ir::OpId op : function.order()) {
    if (function.kind(op) != OpKind::kAllGather) continue;
    gathers.emplace_back(function.value_name(function.result(op)));
  }
  EXPECT_THAT(gathers, testing::ElementsAre("w1.dp", "w0.dp.cp", "w2.dp.cp"));
}

}  // namespace
}  // namespace units_test_cc
}  // namespace orrery::transforms
