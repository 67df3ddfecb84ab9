#include "transforms/sharding/facts/gathered.h"

#include <gtest/gtest.h>

#include <string>

#include "ir/text/text.h"
#include "support/check.h"

namespace orrery::transforms {
namespace gathered_test_cc {
namespace {

std::string Gathered(const std::string& text, absl::string_view axis = "dp") {
  const auto function = ir::ParseFunction(text);
  ORRERY_CHECK(function.ok()) << function.status();
  return ToString(ActivationsGathered(*function, axis));
}

// Each sample against each: one of both sides is wanted whole.
constexpr char kMeeting[] = R"(func @f mesh(dp=2) (
  %x: f32[4@dp,3] data,
  %w: f32[3@dp,3] parameter
) {
  %all: f32[4,3] = AllGather(%x) {axes="dp", dim=0}
  %y: f32[4@dp,4] = MatMul(%x, %all) {transpose_w=1}
  %whole: f32[3,3] = AllGather(%w) {axes="dp", dim=0}
  %z: f32[4@dp,3] = MatMul(%x, %whole)
  return %y: result, %z: result
}
)";

// Parameters that are gathered are none of its business.
TEST(Gathered, NamesActivationsAndWhoWantsThem) {
  EXPECT_EQ(Gathered(kMeeting),
            "%x, 48 B for MatMul %y, where samples of a rank meet those of all ranks");
  EXPECT_EQ(Gathered(kMeeting, "hp"), "");
}

TEST(Gathered, CountsTheRest) {
  EXPECT_EQ(Gathered(R"(func @f mesh(dp=2) (
  %x: f32[4@dp,3] data
) {
  %all: f32[4,3] = AllGather(%x) {axes="dp", dim=0}
  %y: f32[4,3] = CumSum(%all) {axis=0}
  %h: f32[4@dp,3] = Relu(%x)
  %z: f32[4,3] = AllGather(%h) {axes="dp", dim=0}
  return %y: result, %z: result
}
)"),
            "%x, 48 B for CumSum %y, which each rank computes of the samples of all ranks; with 1 "
            "more, 96 B in all");
}

TEST(Gathered, SaysNothingWhereSamplesStayApart) {
  EXPECT_EQ(Gathered(R"(func @f mesh(dp=2) (
  %x: f32[4@dp,3] data,
  %w: f32[3,3] parameter
) {
  %y: f32[4@dp,3] = MatMul(%x, %w)
  return %y: result
}
)"),
            "");
}

}  // namespace
}  // namespace gathered_test_cc
}  // namespace orrery::transforms
