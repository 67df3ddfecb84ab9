#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/op_kind_fwd.h"

namespace orrery::ir {
namespace op_list_test_cc {
namespace {

struct Line {
  absl::string_view name;
  absl::string_view family;
  OpKind kind;
};

// ops.def, line by line.
const std::vector<Line>& Lines() {
  static const auto& kLines = *new std::vector<Line>{
#define ORRERY_OP(name, family) {#name, #family, OpKind::k##name},
#include "ir/ops.def"
#undef ORRERY_OP
  };
  return kLines;
}

TEST(Ops, AreNumberedLineByLine) {
  EXPECT_EQ(static_cast<int>(Lines().size()), OpKindCount());
  for (size_t i = 0; i < Lines().size(); ++i) {
    EXPECT_EQ(static_cast<size_t>(Lines()[i].kind), i) << Lines()[i].name;
  }
}

// The record that a family defines under one name does not say another.
TEST(Ops, AreCalledAsTheirLinesSay) {
  std::set<absl::string_view> names;
  for (const Line& line : Lines()) {
    EXPECT_EQ(GetOpInfo(line.kind).name, line.name);
    EXPECT_EQ(FindOp(line.name), line.kind);
    EXPECT_TRUE(names.insert(line.name).second) << line.name;
    EXPECT_FALSE(line.family.empty());
  }
}

// A gradient stands with what it is the gradient of: in one family, behind it.
TEST(Ops, GradientsStandBehindTheirOps) {
  const auto position_of = [](absl::string_view name) {
    size_t i = 0;
    while (i < Lines().size() && Lines()[i].name != name) ++i;
    return i;
  };
  int gradients = 0;
  for (size_t i = 0; i < Lines().size(); ++i) {
    const absl::string_view name = Lines()[i].name;
    constexpr absl::string_view kGrad = "Grad";
    if (name.size() <= kGrad.size() || name.substr(name.size() - kGrad.size()) != kGrad) continue;
    const size_t of = position_of(name.substr(0, name.size() - kGrad.size()));
    if (of == Lines().size()) continue;  // "ConvDataGrad": of a part
    EXPECT_LT(of, i) << name;
    ++gradients;
  }
  EXPECT_GT(gradients, 20);
}

}  // namespace
}  // namespace op_list_test_cc
}  // namespace orrery::ir
