#include "transforms/training/loss_parts.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ir/text/text.h"
#include "support/check.h"

namespace orrery::transforms {
namespace loss_parts_test_cc {
namespace {

// What the loss of two means is made of, after `ops` on %a and %b: f32[].
std::string PartsAfter(const std::string& ops) {
  auto function =
      ir::ParseFunction(absl::StrCat(R"(func @f (
  %x: f32[6,2] data,
  %y: f32[6,2] data,
  %z: f32[6,3] data
) {
  %a: f32[] = ReduceMean(%x) {axes=[0, 1]}
  %b: f32[] = ReduceMean(%y) {axes=[0, 1]}
  %c: f32[] = ReduceMean(%z) {axes=[0, 1]}
  %s: f32[] = ReduceSum(%x) {axes=[0, 1]}
)",
                                     ops,
                                     "  return %loss: result, %a: result, %b: result, %c: result, "
                                     "%s: result\n}\n"));
  ORRERY_CHECK(function.ok()) << function.status();
  const ir::ValueId loss = function->outputs()[0].value;
  ir::Builder b(*std::move(function));
  const LossParts parts = PartsOfLoss(b, loss);
  ORRERY_CHECK(b.status().ok()) << b.status();
  const ir::OpId maker = b.function().producer(parts.value);
  return absl::StrCat(maker.valid() ? b.function().info(maker).name : "input", " / ", parts.count);
}

TEST(LossParts, SeeThroughMeansAndWholeDivisors) {
  EXPECT_EQ(PartsAfter("  %loss: f32[] = Identity(%a)\n"), "input / 12");
  EXPECT_EQ(PartsAfter("  %loss: f32[] = Scale(%a) {factor=0.25}\n"), "input / 48");
  EXPECT_EQ(PartsAfter("  %two: f32[] = Constant() {values=[2.0]}\n"
                       "  %loss: f32[] = Div(%a, %two)\n"),
            "input / 24");
  EXPECT_EQ(PartsAfter("  %loss: f32[] = Scale(%s) {factor=0.2, over_batch=1}\n"), "input / 5");
  EXPECT_EQ(PartsAfter("  %loss: f32[] = Scale(%s) {factor=0.2}\n"), "Scale / 1");
  EXPECT_EQ(PartsAfter("  %loss: f32[] = Identity(%s)\n"), "input / 1");
}

// Images for texts and texts for images.
TEST(LossParts, SeeThroughSumsOfLossesOverAsManyElements) {
  EXPECT_EQ(PartsAfter("  %ab: f32[] = Add(%a, %b)\n"
                       "  %loss: f32[] = Scale(%ab) {factor=0.5}\n"),
            "Add / 24");
  EXPECT_EQ(PartsAfter("  %loss: f32[] = Add(%a, %s)\n"), "Add / 1");
}

// Sums over what is of one sample, which know no more of the batch than their number.
TEST(LossParts, SeeThroughMultiplesAndSumsOfOtherMeans) {
  EXPECT_EQ(PartsAfter("  %loss: f32[] = Add(%a, %c)\n"), "Add / 12");
  EXPECT_EQ(PartsAfter("  %loss: f32[] = Sub(%c, %a)\n"), "Sub / 18");
  EXPECT_EQ(PartsAfter("  %loss: f32[] = Neg(%a)\n"), "Neg / 12");
  EXPECT_EQ(PartsAfter("  %loss: f32[] = Scale(%a) {factor=2.0}\n"), "Scale / 12");
  EXPECT_EQ(PartsAfter("  %ten: f32[] = Constant() {values=[10.0]}\n"
                       "  %much: f32[] = Mul(%ten, %c)\n"
                       "  %loss: f32[] = Sub(%a, %much)\n"),
            "Sub / 12");
}

// Each sum adds up the one before with itself: every value is taken apart once.
TEST(LossParts, TakeSharedSumsApartOnce) {
  std::string ops = "  %l0: f32[] = Add(%a, %a)\n";
  for (int i = 1; i < 40; ++i) {
    absl::StrAppend(&ops, "  %l", i, ": f32[] = Add(%l", i - 1, ", %l", i - 1, ")\n");
  }
  EXPECT_EQ(PartsAfter(absl::StrCat(ops, "  %loss: f32[] = Identity(%l39)\n")), "Add / 12");
}

TEST(LossParts, LeaveVeryDeepSumsAsTheyAre) {
  std::string ops = "  %l0: f32[] = Add(%a, %b)\n";
  for (int i = 1; i < 20000; ++i) {
    absl::StrAppend(&ops, "  %l", i, ": f32[] = Add(%l", i - 1, ", %b)\n");
  }
  EXPECT_EQ(PartsAfter(absl::StrCat(ops, "  %loss: f32[] = Identity(%l19999)\n")), "Add / 1");
}

TEST(LossParts, CountNoMoreThanThereCanBe) {
  EXPECT_EQ(PartsAfter("  %p: f32[] = Scale(%a) {factor=1e-08}\n"
                       "  %q: f32[] = Scale(%p) {factor=1e-08}\n"
                       "  %loss: f32[] = Scale(%q) {factor=1e-08}\n"),
            "Scale / 1");
}

}  // namespace
}  // namespace loss_parts_test_cc
}  // namespace orrery::transforms
