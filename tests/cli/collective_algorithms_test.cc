#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/cli/run.h"

// Each kind by each algorithm, as a user asks the program `collective` for them: which pairs there
// are, closed forms on a uniform cluster, and what must hold of every answer on two nodes.

namespace orrery::cli {
namespace collective_algorithms_test_cc {
namespace {

using Names = std::vector<std::string>;

const std::string kSize = "--bytes 64MB ";
const double kBytes = 64e6;

const Names kAlgorithms = {"ring",
                           "bidirectional-ring",
                           "multidimensional-ring",
                           "tree",
                           "minimum-spanning-tree",
                           "halving-doubling",
                           "direct",
                           "hierarchical",
                           "in-network",
                           "shortest-path-tree",
                           "packed-trees"};

// What is for each kind on two nodes, in-network aside: no switch of a dgx-a100 reduces; and it
// is no grid.
const std::map<std::string, std::set<std::string>> kServed = {
    {"all-reduce",
     {"ring", "bidirectional-ring", "tree", "minimum-spanning-tree", "halving-doubling", "direct",
      "hierarchical"}},
    {"all-gather", {"ring", "bidirectional-ring", "halving-doubling", "direct", "hierarchical"}},
    {"reduce-scatter",
     {"ring", "bidirectional-ring", "halving-doubling", "direct", "hierarchical"}},
    {"all-to-all", {"ring", "direct"}},
    {"broadcast", {"ring", "minimum-spanning-tree", "direct"}},
    {"reduce", {"ring", "minimum-spanning-tree", "direct"}},
    {"scatter", {"minimum-spanning-tree", "direct"}},
    {"gather", {"minimum-spanning-tree", "direct"}},
    {"send-receive", {"direct"}},
    {"barrier", {"tree", "minimum-spanning-tree", "halving-doubling", "direct"}}};

Finished Ask(const std::string& kind, const std::string& algorithm, const std::string& rest) {
  return Execute(absl::StrCat("collective --kind ", kind, " --algorithm ", kind, "=", algorithm,
                              " ", kSize, rest));
}

// The seconds in brackets on the line that begins with `label`; -1 without such a line.
double Seconds(const std::string& out, const std::string& label) {
  for (const absl::string_view line : absl::StrSplit(out, '\n')) {
    if (!absl::StartsWith(line, label)) continue;
    return std::strtod(std::string(line.substr(line.find('(') + 1)).c_str(), nullptr);
  }
  return -1;
}

// nccl-tests' factor from size over time to bus bandwidth.
double BusFactor(const std::string& kind, double ranks) {
  if (kind == "barrier") return 0;
  if (kind == "all-reduce") return 2 * (ranks - 1) / ranks;
  if (kind == "broadcast" || kind == "reduce" || kind == "send-receive") return 1;
  return (ranks - 1) / ranks;
}

double BusBandwidth(const std::string& out) {
  const std::string label = "bus bandwidth";
  return std::strtod(out.c_str() + out.find(label) + label.size(), nullptr);
}

void ExpectSound(const std::string& kind, const std::string& algorithm, const std::string& out) {
  const std::string head = absl::StrCat(
      kind, " of 61.0 MiB over 16 devices of dgx-a100:2,ideal-collectives by ", algorithm, "\n");
  EXPECT_THAT(out, testing::StartsWith(head));
  const double time = Seconds(out, "time"), bound = Seconds(out, "bandwidth bound");
  EXPECT_GT(time, 0) << out;
  EXPECT_GE(bound, 0) << out;
  EXPECT_GE(time, bound) << out;
  EXPECT_NEAR(BusBandwidth(out), kBytes * BusFactor(kind, 16) / time * 1e-9, 0.002) << out;
  const std::string link =
      "\nbusiest link     (device|switch)[0-9]+ -> (device|switch)[0-9]+ \\((nic|port)\\), busy "
      "for ";
  // A barrier moves nothing, so no link is busy.
  if (kind == "barrier") {
    EXPECT_THAT(out, testing::Not(testing::HasSubstr("busiest link")));
  } else {
    EXPECT_THAT(out, testing::ContainsRegex(link));
  }
}

class Kinds : public testing::TestWithParam<std::string> {};

TEST_P(Kinds, AreServedByTheirAlgorithmsAndNoOther) {
  const std::string kind = GetParam();
  for (const std::string& algorithm : kAlgorithms) {
    SCOPED_TRACE(algorithm);
    const Finished finished = Ask(kind, algorithm, "--cluster dgx-a100:2,ideal-collectives");
    if (kServed.at(kind).contains(algorithm)) {
      EXPECT_EQ(finished.code, 0) << finished.err;
      ExpectSound(kind, algorithm, finished.out);
      continue;
    }
    EXPECT_EQ(finished.code, 1);
    EXPECT_EQ(finished.out, "");
    EXPECT_THAT(finished.err,
                testing::MatchesRegex(absl::StrCat("collective: (--algorithm: )?algorithm '",
                                                   algorithm, "' (is not for ", kind,
                                                   "; try|cannot serve this group of 16,) .*\n")));
  }
}

// What is chosen without a name is one of those served, and answers as it does by name.
TEST_P(Kinds, AnswerAlikeChosenAndByName) {
  const std::string kind = GetParam();
  for (const std::string cluster :
       {"dgx-a100:2,ideal-collectives", "dgx-a100:2,ideal-collectives --group 0-3"}) {
    const std::string rest = absl::StrCat(kSize, "--cluster ", cluster);
    const Finished chosen = Execute(absl::StrCat("collective --kind ", kind, " ", rest));
    int matches = 0;
    for (const std::string& algorithm : kServed.at(kind)) {
      if (!absl::StrContains(chosen.out, absl::StrCat(" by ", algorithm, "\n"))) continue;
      ++matches;
      EXPECT_EQ(Ask(kind, algorithm, "--cluster " + cluster).out, chosen.out);
    }
    EXPECT_EQ(matches, 1) << chosen.out << chosen.err;
  }
}

INSTANTIATE_TEST_SUITE_P(Collective, Kinds,
                         testing::Values("all-reduce", "all-gather", "reduce-scatter", "all-to-all",
                                         "broadcast", "reduce", "scatter", "gather", "send-receive",
                                         "barrier"));

struct Form {
  std::string kind, algorithm;
  double sizes;  // the time, in how long the whole size takes on one link
};

void PrintTo(const Form& form, std::ostream* out) { *out << form.kind << " " << form.algorithm; }

class ClosedForms : public testing::TestWithParam<Form> {};

// 64 MB take 2.56 ms on a link of 25 GB/s, and there is no latency.
TEST_P(ClosedForms, HoldOnEightUniformDevices) {
  const auto& [kind, algorithm, sizes] = GetParam();
  const Finished finished = Ask(kind, algorithm, "--cluster uniform:8@200Gbps");
  EXPECT_EQ(finished.code, 0) << finished.err;
  const double time = Seconds(finished.out, "time");
  EXPECT_NEAR(time, sizes * 2.56e-3, 1e-9);
  EXPECT_GE(time, Seconds(finished.out, "bandwidth bound"));
  EXPECT_NEAR(BusBandwidth(finished.out), kBytes * BusFactor(kind, 8) / time * 1e-9, 0.002);
  EXPECT_THAT(finished.out,
              testing::ContainsRegex(
                  "\nbusiest link     device[0-7] -> device[0-7] \\(pair\\), busy for "));
}

// Each pair has a link, so messages of one round share nothing.
TEST_P(ClosedForms, AreMetByPlayingEveryTransfer) {
  const auto& [kind, algorithm, sizes] = GetParam();
  const std::string rest = "--network fluid --cluster uniform:8@200Gbps";
  const Finished priced = Ask(kind, algorithm, rest);
  EXPECT_EQ(priced.code, 0) << priced.err;
  EXPECT_EQ(Ask(kind, algorithm, rest + " --every-transfer").out, priced.out);
}

// With n = 8: 2(n-1)/n, (n-1)/n and so on; a pipeline of 1024 chunks adds its depth.
INSTANTIATE_TEST_SUITE_P(
    Collective, ClosedForms,
    testing::Values(
        Form{"all-reduce", "ring", 14.0 / 8}, Form{"all-reduce", "direct", 2.0 / 8},
        Form{"all-reduce", "bidirectional-ring", 7.0 / 8},
        Form{"all-reduce", "halving-doubling", 14.0 / 8},
        Form{"all-reduce", "minimum-spanning-tree", 6}, Form{"all-gather", "ring", 7.0 / 8},
        Form{"all-gather", "direct", 1.0 / 8}, Form{"all-gather", "bidirectional-ring", 3.5 / 8},
        Form{"all-gather", "halving-doubling", 7.0 / 8}, Form{"reduce-scatter", "ring", 7.0 / 8},
        Form{"reduce-scatter", "bidirectional-ring", 3.5 / 8},
        Form{"reduce-scatter", "halving-doubling", 7.0 / 8},
        Form{"reduce-scatter", "direct", 1.0 / 8}, Form{"all-to-all", "ring", 28.0 / 8},
        Form{"all-to-all", "direct", 1.0 / 8}, Form{"broadcast", "ring", 1030.0 / 1024},
        Form{"broadcast", "direct", 1}, Form{"broadcast", "minimum-spanning-tree", 3},
        Form{"reduce", "ring", 1030.0 / 1024}, Form{"reduce", "direct", 1},
        Form{"reduce", "minimum-spanning-tree", 3}, Form{"scatter", "direct", 1.0 / 8},
        Form{"scatter", "minimum-spanning-tree", 7.0 / 8}, Form{"gather", "direct", 1.0 / 8},
        Form{"gather", "minimum-spanning-tree", 7.0 / 8}, Form{"send-receive", "direct", 1}));

}  // namespace
}  // namespace collective_algorithms_test_cc
}  // namespace orrery::cli
