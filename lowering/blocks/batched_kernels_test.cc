#include "lowering/blocks/batched_kernels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/function.h"
#include "ir/text/text.h"
#include "lowering/blocks/kernel_costs.h"
#include "lowering/blocks/kernel_room.h"
#include "lowering/blocks/pointwise_groups.h"

// Which kernels side by side are one, and which share a launch, by hand; kernel_listing_test.cc has
// random functions.

namespace orrery::lowering {
namespace batched_kernels_test_cc {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

ir::Function Parsed(const std::string& text) {
  const auto function = ir::ParseFunction(text);
  EXPECT_TRUE(function.ok()) << function.status() << "\n" << text;
  return function.ok() ? *function : ir::Function("none");
}

std::string Names(const ir::Function& function, const KernelOps& ops) {
  std::vector<std::string> names;
  for (const ir::OpId op : ops) names.emplace_back(function.value_name(function.result(op)));
  return absl::StrJoin(names, " ");
}

PointwiseGroups Joined(const ir::Function& function, const LocalTypes& local) {
  PointwiseGroups groups = FindPointwiseGroups(function, local);
  JoinSiblings(function, local, FusedOps::kAll, KernelRoom{}, groups);
  return groups;
}

// "a b" a kernel of several ops.
std::vector<std::string> Siblings(const std::string& text) {
  const ir::Function function = Parsed(text);
  const LocalTypes local(function);
  std::vector<std::string> lines;
  for (const KernelOps& members : Joined(function, local).members) {
    lines.push_back(Names(function, members));
  }
  return lines;
}

// "a b | c d" a launch of two kernels.
std::vector<std::string> Launches(const std::string& text) {
  const ir::Function function = Parsed(text);
  const LocalTypes local(function);
  std::vector<std::string> lines;
  for (const SharedLaunch& launch :
       FindSharedLaunches(function, local, FusedOps::kAll, Joined(function, local))) {
    std::vector<std::string> kernels;
    for (const KernelOps& members : launch) kernels.push_back(Names(function, members));
    lines.push_back(absl::StrJoin(kernels, " | "));
  }
  return lines;
}

// Relu and Neg of what `views` make of %x.
std::string OfViews(const std::string& views, const std::string& a, const std::string& b) {
  return absl::StrCat("func @f (%x: f32[4,16] data) {\n", views, "  %a: f32[4,8] = Relu(", a,
                      ")\n  %b: f32[4,8] = Neg(", b, ")\n  return %a: result, %b: result\n}");
}

TEST(Siblings, ReadOneValueAndNotTwoPartsOfOne) {
  const std::string split = "  %l: f32[4,8], %r: f32[4,8] = Split(%x) {axis=1, sizes=[8, 8]}\n";
  EXPECT_THAT(Siblings(OfViews(split, "%l", "%l")), ElementsAre("a b"));
  EXPECT_THAT(Siblings(OfViews(split, "%l", "%r")), IsEmpty());
}

// All of a value in other dimensions is the value.
TEST(Siblings, ReadAValueInAnyShape) {
  EXPECT_THAT(Siblings(R"(func @f (%x: f32[4,8] data) {
  %v: f32[32] = Reshape(%x) {shape=[32]}
  %a: f32[4,8] = Relu(%x)
  %b: f32[32] = Neg(%v)
  return %a: result, %b: result
})"),
              ElementsAre("a b"));
}

// What is repeated is not as large as what the kernels go over.
TEST(Siblings, DoNotCountWhatIsRepeated) {
  EXPECT_THAT(Siblings(R"(func @f (%x: f32[1,8] data, %y: f32[4,8] data, %z: f32[4,8] data) {
  %v: f32[4,8] = Expand(%x) {shape=[4, 8]}
  %a: f32[4,8] = Add(%v, %y)
  %b: f32[4,8] = Mul(%v, %z)
  return %a: result, %b: result
})"),
              IsEmpty());
}

// A function of two kernels of nothing in common.
std::string Two(const std::string& inputs, const std::string& a, const std::string& b) {
  return absl::StrCat("func @f (", inputs, ") {\n  %a: ", a, "\n  %b: ", b,
                      "\n  return %a: result, %b: result\n}");
}

TEST(SharedLaunches, AreOfAnySizes) {
  EXPECT_THAT(Launches(Two("%x: f32[4,8] data, %y: f32[3] data", "f32[4,8] = Relu(%x)",
                           "f32[3] = Relu(%y)")),
              ElementsAre("a | b"));
}

TEST(SharedLaunches, AreOfOneTypeThatIsRead) {
  const std::string inputs = "%x: f32[8] data, %y: bf16[8] data, %z: f32[8] data";
  const std::string of_x = "f16[8] = Cast(%x) {to=\"f16\"}";
  EXPECT_THAT(Launches(Two(inputs, of_x, "f16[8] = Cast(%z) {to=\"f16\"}")), ElementsAre("a | b"));
  EXPECT_THAT(Launches(Two(inputs, of_x, "f16[8] = Cast(%y) {to=\"f16\"}")), IsEmpty());
}

TEST(SharedLaunches, AreOfOneSetOfAttributes) {
  const std::string inputs =
      "%p: f32[8] parameter, %g: f32[8] saved, %q: f32[4] parameter, %h: f32[4] saved";
  const std::string of_p = "f32[8] = Sgd(%p, %g) {lr=0.1, parameters=1}";
  EXPECT_THAT(Launches(Two(inputs, of_p, "f32[4] = Sgd(%q, %h) {lr=0.1, parameters=1}")),
              ElementsAre("a | b"));
  EXPECT_THAT(Launches(Two(inputs, of_p, "f32[4] = Sgd(%q, %h) {lr=0.2, parameters=1}")),
              IsEmpty());
}

// x * x reads one tensor, x * y two; x + y goes over both, and with a row of y over that again.
TEST(SharedLaunches, ReadTheirOperandsAlike) {
  const std::string inputs =
      "%x: f32[4,8] data, %y: f32[4,8] data, %z: f32[1,8] data, %w: f32[4,8] data";
  EXPECT_THAT(Launches(Two(inputs, "f32[4,8] = Mul(%x, %x)", "f32[4,8] = Mul(%y, %y)")),
              ElementsAre("a | b"));
  EXPECT_THAT(Launches(Two(inputs, "f32[4,8] = Mul(%x, %x)", "f32[4,8] = Mul(%y, %w)")), IsEmpty());
  EXPECT_THAT(Launches(Two(inputs, "f32[4,8] = Add(%x, %y)", "f32[4,8] = Add(%w, %z)")), IsEmpty());
}

// (x + y) x and (z + w) w: the same ops, of other operands.
TEST(SharedLaunches, AreWiredAlike) {
  const auto text = [](const std::string& last) {
    return absl::StrCat(R"(func @f (
  %x: f32[8] data, %y: f32[8] data, %z: f32[8] data, %w: f32[8] data
) {
  %s: f32[8] = Add(%x, %y)
  %a: f32[8] = Mul(%s, %x)
  %t: f32[8] = Add(%z, %w)
  %b: f32[8] = Mul(%t, )",
                        last, ")\n  return %a: result, %b: result\n}");
  };
  EXPECT_THAT(Launches(text("%z")), ElementsAre("s a | t b"));
  EXPECT_THAT(Launches(text("%w")), IsEmpty());
}

}  // namespace
}  // namespace batched_kernels_test_cc
}  // namespace orrery::lowering
