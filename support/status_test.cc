#include "support/status.h"

#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace orrery {
namespace status_test_cc {
namespace {

TEST(Infeasible, TravelsInAStatus) {
  for (const auto& [reason, name] : {std::pair{InfeasibleReason::kDivisibility, "divisibility"},
                                     {InfeasibleReason::kMemory, "memory"},
                                     {InfeasibleReason::kSchedule, "schedule"},
                                     {InfeasibleReason::kUnsupported, "unsupported"}}) {
    EXPECT_EQ(ToString(reason), name);
    const absl::Status status = InfeasibleStatus({.reason = reason, .detail = "64 by 3"});
    EXPECT_FALSE(status.ok());
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    const auto infeasible = AsInfeasible(status);
    ASSERT_TRUE(infeasible.has_value());
    EXPECT_EQ(infeasible->reason, reason);
    EXPECT_EQ(infeasible->detail, "64 by 3");
  }
}

TEST(Infeasible, IsNoErrorAndAnErrorIsNone) {
  EXPECT_FALSE(AsInfeasible(absl::OkStatus()).has_value());
  EXPECT_FALSE(AsInfeasible(absl::FailedPreconditionError("64 by 3")).has_value());
  absl::Status unknown = absl::FailedPreconditionError("x");
  unknown.SetPayload("orrery/infeasible", absl::Cord("weather"));
  EXPECT_FALSE(AsInfeasible(unknown).has_value());
}

TEST(Infeasible, HasAReasonEvenWithoutADetail) {
  const auto infeasible = AsInfeasible(InfeasibleStatus({InfeasibleReason::kMemory, ""}));
  ASSERT_TRUE(infeasible.has_value());
  EXPECT_EQ(infeasible->detail, "");
}

TEST(Annotate, SaysWhereAndKeepsTheRest) {
  EXPECT_TRUE(Annotate(absl::OkStatus(), "a.onnx").ok());
  const absl::Status error = Annotate(absl::NotFoundError("no such file"), "a.onnx");
  EXPECT_EQ(error, absl::NotFoundError("a.onnx: no such file"));
  const absl::Status twice = Annotate(error, "import");
  EXPECT_EQ(twice.message(), "import: a.onnx: no such file");
}

TEST(Annotate, KeepsTheInfeasibility) {
  const absl::Status status =
      InfeasibleStatus({.reason = InfeasibleReason::kMemory, .detail = "needs 90 GB"});
  const auto infeasible = AsInfeasible(Annotate(status, "stage 3"));
  ASSERT_TRUE(infeasible.has_value());
  EXPECT_EQ(infeasible->reason, InfeasibleReason::kMemory);
  EXPECT_EQ(infeasible->detail, "stage 3: needs 90 GB");
}

absl::StatusOr<std::string> Half(int number) {
  if (number % 2 != 0) return absl::InvalidArgumentError(absl::StrCat(number, " is odd"));
  return absl::StrCat(number / 2);
}

absl::StatusOr<std::string> Halves(int a, int b) {
  ORRERY_ASSIGN_OR_RETURN(const std::string first, Half(a));
  ORRERY_ASSIGN_OR_RETURN(const std::string second, Half(b));
  ORRERY_RETURN_IF_ERROR(Half(a + b).status());
  return first + second;
}

TEST(Macros, ReturnTheFirstError) {
  EXPECT_EQ(*Halves(2, 4), "12");
  EXPECT_EQ(Halves(3, 5).status().message(), "3 is odd");
  EXPECT_EQ(Halves(2, 5).status().message(), "5 is odd");
}

}  // namespace
}  // namespace status_test_cc
}  // namespace orrery
