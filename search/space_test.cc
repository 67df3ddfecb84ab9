#include "search/space.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace orrery::search {
namespace {

using ::testing::ElementsAre;

// "dp.hp.pp.K schedule", one a candidate.
std::vector<std::string> List(const Space& space, int64_t devices, int64_t batch_size) {
  std::vector<std::string> list;
  const std::vector<Candidate> candidates = Enumerate(space, devices, batch_size).value();
  for (const Candidate& c : candidates) {
    list.push_back(absl::StrCat(c.dp, ".", c.hp, ".", c.pp, ".", c.microbatches,
                                c.schedule == "1f1b" ? "" : " ",
                                c.schedule == "1f1b" ? "" : c.schedule));
  }
  return list;
}

TEST(Divisors, AreAllOfThemAscending) {
  EXPECT_THAT(Divisors(1), ElementsAre(1));
  EXPECT_THAT(Divisors(12), ElementsAre(1, 2, 3, 4, 6, 12));
  EXPECT_THAT(Divisors(36), ElementsAre(1, 2, 3, 4, 6, 9, 12, 18, 36));
  EXPECT_THAT(Divisors(1'000'000'007), ElementsAre(1, 1'000'000'007));
  for (int64_t n = 1; n <= 200; ++n) {
    std::vector<int64_t> expected;
    for (int64_t d = 1; d <= n; ++d) {
      if (n % d == 0) expected.push_back(d);
    }
    EXPECT_EQ(Divisors(n), expected);
  }
}

TEST(Enumerate, LeftOpenItFillsTheCluster) {
  EXPECT_THAT(List({.microbatches = {1}}, 4, 8),
              ElementsAre("1.1.4.1", "1.2.2.1", "1.4.1.1", "2.1.2.1", "2.2.1.1", "4.1.1.1"));
  EXPECT_THAT(List({.dp = {2}, .microbatches = {1}}, 4, 8), ElementsAre("2.1.2.1", "2.2.1.1"));
}

TEST(Enumerate, AllGivenItTakesWhatFits) {
  EXPECT_THAT(List({.dp = {1, 2}, .hp = {1, 3}, .pp = {1, 2}, .microbatches = {1}}, 4, 8),
              ElementsAre("1.1.1.1", "1.1.2.1", "1.3.1.1", "2.1.1.1", "2.1.2.1"));
}

TEST(Enumerate, FurtherAxesTakeTheirShareOfTheCluster) {
  std::vector<std::string> list;
  const Space space{.hp = {1}, .pp = {1}, .microbatches = {1}, .cp = {1, 2}, .ep = {1, 3}};
  const std::vector<Candidate> candidates = Enumerate(space, 12, 24).value();
  for (const Candidate& c : candidates) list.push_back(ToString(c));
  const std::string rest = " --micro-batches 1 --schedule 1f1b";
  EXPECT_THAT(
      list,
      ElementsAre("--dp 2 --hp 1 --pp 1 --cp 2 --ep 3" + rest, "--dp 4 --hp 1 --pp 1 --ep 3" + rest,
                  "--dp 6 --hp 1 --pp 1 --cp 2" + rest, "--dp 12 --hp 1 --pp 1" + rest));
}

TEST(Enumerate, MicrobatchesDivideTheShareOfAReplica) {
  EXPECT_THAT(List({.dp = {2}, .hp = {1}, .pp = {2}}, 4, 12),
              ElementsAre("2.1.2.1", "2.1.2.2", "2.1.2.3", "2.1.2.6"));
}

// Up to 8 a stage, after all others; a list is for all schedules.
TEST(Enumerate, SlicesDivideTheSequence) {
  Space space{.dp = {2}, .hp = {1}, .pp = {2}, .schedules = {"terapipe", "gpipe"}, .sequence = 48};
  EXPECT_THAT(List(space, 4, 4),
              ElementsAre("2.1.2.1 gpipe", "2.1.2.2 gpipe", "2.1.2.1 terapipe", "2.1.2.2 terapipe",
                          "2.1.2.3 terapipe", "2.1.2.4 terapipe", "2.1.2.6 terapipe",
                          "2.1.2.8 terapipe", "2.1.2.12 terapipe", "2.1.2.16 terapipe"));
  space.slices = 5;  // a list of so many
  EXPECT_THAT(List(space, 4, 4), ElementsAre("2.1.2.1 gpipe", "2.1.2.2 gpipe", "2.1.2.5 terapipe"));
  space.microbatches = {4};
  EXPECT_THAT(List(space, 4, 4), ElementsAre("2.1.2.4 terapipe", "2.1.2.4 gpipe"));
}

TEST(Enumerate, MicrobatchesDivideTheShareOfAnEpRank) {
  EXPECT_THAT(List({.dp = {1}, .hp = {1}, .pp = {1}, .ep = {4}}, 4, 8),
              ElementsAre("1.1.1.1", "1.1.1.2"));
}

TEST(Enumerate, SchedulesAreInnermost) {
  EXPECT_THAT(
      List(
          {.dp = {1}, .hp = {1}, .pp = {1}, .microbatches = {1, 2}, .schedules = {"gpipe", "1f1b"}},
          1, 8),
      ElementsAre("1.1.1.1 gpipe", "1.1.1.1", "1.1.1.2 gpipe", "1.1.1.2"));
}

// 2^1 to 2^(floor(log2(batch/dp)/2) - 1) with a pipeline, 1 without.
TEST(Enumerate, MicrobatchesOfDistir) {
  const auto counts = [](int64_t batch, int64_t dp) {
    Space space{.dp = {dp}, .hp = {1}, .pp = {2}};
    space.distir_microbatches = true;
    const auto candidates = Enumerate(space, 2 * dp, batch);
    if (!candidates.ok()) return std::string();
    return absl::StrJoin(*candidates, " ", [](std::string* out, const Candidate& c) {
      absl::StrAppend(out, c.microbatches);
    });
  };
  EXPECT_EQ(counts(8192, 1), "2 4 8 16 32");
  EXPECT_EQ(counts(8192, 4), "2 4 8 16");
  EXPECT_EQ(counts(16384, 1), "2 4 8 16 32 64");
  EXPECT_EQ(counts(64, 1), "2 4");
  EXPECT_EQ(counts(15, 1), "");
  Space flat{.dp = {16}, .hp = {1}, .pp = {1}};
  flat.distir_microbatches = true;
  EXPECT_THAT(List(flat, 16, 8192), ElementsAre("16.1.1.1"));
}

TEST(Enumerate, SaysWhenNothingIsLeft) {
  EXPECT_EQ(
      Enumerate({.dp = {3}}, 4, 8).status().message(),
      "no degrees dp, hp, pp, cp, ep in the lists make 4 devices; try leaving one of --dp, --hp, "
      "--pp out, or smaller --cp and --ep");
  EXPECT_EQ(Enumerate({.dp = {8}, .hp = {1}, .pp = {1}}, 4, 8).status().message(),
            "no degrees dp, hp, pp, cp, ep in the lists make at most 4 devices; try leaving one of "
            "--dp, --hp, --pp out, or smaller --cp and --ep");
}

// Large degrees in lists must not wrap around into ones that fit.
TEST(Enumerate, DoesNotOverflow) {
  constexpr int64_t kHuge = int64_t{1} << 31;
  EXPECT_FALSE(Enumerate({.dp = {kHuge}, .hp = {kHuge}, .pp = {kHuge}}, 16, 64).ok());
  EXPECT_THAT(
      List({.dp = {1, kHuge}, .hp = {1, kHuge}, .pp = {1, kHuge}, .microbatches = {1}}, 16, 64),
      ElementsAre("1.1.1.1"));
}

TEST(Enumerate, NamesNoCandidateTwice) {
  for (const int64_t devices : {1, 6, 16, 60}) {
    const auto candidates = Enumerate({.schedules = {"1f1b", "gpipe"}}, devices, 96).value();
    const std::set<Candidate> distinct(candidates.begin(), candidates.end());
    EXPECT_EQ(distinct.size(), candidates.size());
    for (const Candidate& c : candidates) EXPECT_EQ(c.dp * c.hp * c.pp, devices) << ToString(c);
  }
}

// Where nothing is data parallel, all stages of ZeRO are one candidate.
TEST(Enumerate, VariesZeroWhereDataAreShared) {
  std::vector<std::string> flags;
  const Space space = {.dp = {1, 2}, .hp = {1}, .pp = {1}, .microbatches = {1}, .zero = {0, 1, 3}};
  const std::vector<Candidate> candidates = Enumerate(space, 2, 8).value();
  for (const Candidate& c : candidates) flags.push_back(ToString(c));
  EXPECT_THAT(flags, testing::ElementsAre(
                         "--dp 1 --hp 1 --pp 1 --micro-batches 1 --schedule 1f1b",
                         "--dp 2 --hp 1 --pp 1 --micro-batches 1 --schedule 1f1b",
                         "--dp 2 --hp 1 --pp 1 --micro-batches 1 --schedule 1f1b --zero 1",
                         "--dp 2 --hp 1 --pp 1 --micro-batches 1 --schedule 1f1b --zero 3"));
}

TEST(Candidate, PrintsAsFlags) {
  EXPECT_EQ(ToString(Candidate{.dp = 4, .hp = 2, .pp = 2, .microbatches = 8, .schedule = "gpipe"}),
            "--dp 4 --hp 2 --pp 2 --micro-batches 8 --schedule gpipe");
  const std::string rest = "--dp 1 --hp 1 --pp 1 --micro-batches 1 --schedule 1f1b --recompute ";
  EXPECT_EQ(ToString(Candidate{.recompute = "every:2"}), rest + "every:2");
  EXPECT_EQ(ToString(Candidate{.recompute = "match:it's|b"}), rest + "'match:it'\\''s|b'");
}

TEST(Enumerate, WhatIsComputedAgainVariesFastest) {
  const Space space{.dp = {1},
                    .hp = {1},
                    .pp = {1, 2},
                    .microbatches = {2},
                    .schedules = {"1f1b", "gpipe"},
                    .recompute = {"none", "full"}};
  std::vector<std::string> list;
  const std::vector<Candidate> candidates = Enumerate(space, 2, 4).value();
  for (const Candidate& c : candidates) list.push_back(c.schedule + " " + c.recompute);
  ASSERT_EQ(list.size(), 8u);
  list.resize(4);
  EXPECT_THAT(list, ElementsAre("1f1b none", "1f1b full", "gpipe none", "gpipe full"));
  EXPECT_EQ(std::set<Candidate>(candidates.begin(), candidates.end()).size(), 8u);
}

}  // namespace
}  // namespace orrery::search
