#include "tools/traces/trace_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace orrery::tools {
namespace trace_flags_test_cc {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string ErrorOf(const TraceFlags& flags) {
  const auto request = ReadTraceFlags(flags, 16);
  return request.ok() ? "" : std::string(request.status().message());
}

TEST(ReadTraceFlags, ReadsWhatIsAskedFor) {
  const TraceRequest request =
      ReadTraceFlags({.path = "t.json", .level = "flow", .ranks = "0,8-9", .microbatches = "2"}, 16)
          .value();
  EXPECT_EQ(request.level, simulator::TraceLevel::kFlow);
  EXPECT_THAT(request.ranks, ElementsAre(0, 8, 9));
  EXPECT_THAT(request.microbatches, ElementsAre(2));
  EXPECT_FALSE(request.all_ranks);
  EXPECT_TRUE(ReadTraceFlags({.path = "t.json", .ranks = "all"}, 16)->all_ranks);
  EXPECT_FALSE(ReadTraceFlags({}, 16)->any());
}

TEST(ReadTraceFlags, SaysWhatItWants) {
  EXPECT_THAT(ErrorOf({.path = "t", .level = "deep"}), HasSubstr("wanted stage, op or flow"));
  EXPECT_THAT(ErrorOf({.path = "t", .ranks = "16"}),
              HasSubstr("--trace-ranks: got rank 16; wanted ranks from 0 to 15"));
  EXPECT_THAT(ErrorOf({.path = "t", .microbatches = "x"}), HasSubstr("--trace-microbatches: 'x'"));
  EXPECT_THAT(ErrorOf({.ranks = "1"}), HasSubstr("--trace-ranks: there is nothing to show it in"));
  EXPECT_THAT(ErrorOf({.level = "stage"}), HasSubstr("--trace-level: there is nothing"));
  EXPECT_THAT(ErrorOf({.microbatches = "1", .snapshot = "m"}),
              HasSubstr("--trace-microbatches: there is nothing"));
  EXPECT_EQ(ErrorOf({.ranks = "1", .snapshot = "m"}), "");
}

}  // namespace
}  // namespace trace_flags_test_cc
}  // namespace orrery::tools
