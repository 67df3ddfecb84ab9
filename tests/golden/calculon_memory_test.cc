#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "support/sanitized_test_util.h"
#include "tests/golden/calculon.h"
#include "tests/golden/calculon_differences.h"
#include "tests/golden/calculon_played.h"

// Memory of a rank against Calculon's, on all its cases (tests/data/calculon_memory.json, of the
// visible part of golden/calculon.json by calculon_memory.py beside it; each distinct memory once).
// What is counted differently is a formula in calculon_differences.cc, and the figures are the same
// once it is added. docs/memory.md has the table.

namespace orrery::golden {
namespace calculon_memory_test_cc {
namespace {

constexpr double kWithin = 0.02;  // 5 % is what issue 6 asks for

std::string Show(const CalculonCase& c) {
  return absl::StrCat(
      c.model, " hp ", c.hp, " pp ", c.pp, " chunks ", c.chunks, " x", c.microbatch_size, " ",
      c.recompute, c.sequence_parallel ? (c.gather_again ? " gather again" : " sequence") : "",
      c.fused_activation ? " fused" : "", c.optimizer_sharding ? " shards" : "",
      c.weight_offload ? " weights" : "", c.activation_offload ? " activations" : "",
      c.optimizer_offload ? " optimizer" : "", c.training ? "" : " inference");
}

// Mean and worst of what is left of a comparison.
struct Errors {
  int compared = 0, within_before = 0;  // the latter as they are, within 5 %
  double sum = 0, worst = 0, sum_before = 0, worst_before = 0;

  void Print(const std::string& name) const {
    std::cout << absl::StrFormat(
        "%-10s %2d rows: mean %.2f %%, worst %.2f %%; before, mean %.1f %%, worst %.1f %%, %d "
        "within 5 %%\n",
        name, compared, 100 * sum / compared, 100 * worst, 100 * sum_before / compared,
        100 * worst_before, within_before);
  }
};

// A figure in bytes, here and there, and what is known of the difference.
struct Pair {
  double ours, theirs, difference = 0;
};

// A part of the memory that is compared in the cases that have it.
struct Comparison {
  const char* name;
  int cases;  // that have it
  bool (*has)(const CalculonCase&);
  Pair (*pair)(const CalculonCase&);
  double most_before = kAny;  // the error before the difference is added

  static constexpr double kAny = 1e9;
};

// Calculon's closed forms, which the differences are about, give its figures of every case: those
// of 45 rows to the byte, and the need of 17 more that do not fit, as far as it is printed.
TEST(CalculonMemory, FormulasGiveCalculonsFigures) {
  int64_t cases = 0, whole = 0, needs = 0;
  for (const CalculonCase& c : CalculonCases()) {
    const CalculonMemory memory = CalculonMemoryOf(c);
    const auto expect = [&](const char* key, double value) {
      EXPECT_NEAR(value, c.row[key].get<double>(), 1) << key << " " << Show(c);
    };
    cases += c.cases;
    if (c.row.contains("required_gib")) {
      EXPECT_NEAR(memory.device / (1 << 30), c.row["required_gib"].get<double>(), 0.00051);
      ++needs;
    }
    if (!c.row.contains("required_bytes")) continue;
    ++whole;
    expect("weight_bytes", memory.weights);
    expect("gradient_bytes", memory.gradients);
    expect("optimizer_bytes", memory.optimizer);
    expect("activation_bytes", memory.activations);
    expect("checkpoint_bytes", memory.checkpoints);
    expect("activation_gradient_bytes", memory.output_gradients);
    expect("required_bytes", memory.device);
    expect("host_bytes", memory.host);
  }
  EXPECT_EQ(cases, 121);
  EXPECT_EQ(whole, 45);
  EXPECT_EQ(needs, 19);
}

bool HasAll(const CalculonCase&) { return true; }
bool HasGradients(const CalculonCase& c) { return c.training; }
bool HasOptimizer(const CalculonCase& c) { return c.training && !c.optimizer_offload; }
bool HasKept(const CalculonCase& c) { return c.training && !c.activation_offload; }
bool HasAtWork(const CalculonCase& c) { return !c.activation_offload; }
bool HasHost(const CalculonCase& c) { return c.optimizer_offload; }

Pair WeightsOf(const CalculonCase& c) { return {Played(c).weights, CalculonMemoryOf(c).weights}; }

// Two moments and master weights of four bytes, of shards where they are sharded.
Pair OptimizerOf(const CalculonCase& c) {
  return {Played(c).optimizer, CalculonMemoryOf(c).optimizer};
}

// An offloaded optimizer takes gradients to the host: then the device has those of a layer.
Pair GradientsOf(const CalculonCase& c) {
  const CalculonUnits u = UnitsOf(c);
  const double theirs =
      c.optimizer_offload ? (2 + 1 / u.shards) * u.layer : CalculonMemoryOf(c).gradients;
  return {Played(c).gradients, theirs, Sum(DifferencesOf(c).gradients)};
}

// What forward leaves of all microbatches in flight: act_checkpoint_size with full recomputation,
// else act_space less the working set of one layer.
Pair KeptActivationsOf(const CalculonCase& c) {
  return {Played(c).saved, KeptOf(c), Sum(DifferencesOf(c).kept)};
}

// What the first backward has beside these: act_grad_space and the working set. The formula of what
// is here is one itself, not only beside Calculon's larger figure.
Pair ActivationsAtWorkOf(const CalculonCase& c) {
  const Differences differences = DifferencesOf(c);
  const double ours = Played(c).at_work - KeptOf(c) - Sum(differences.kept);
  EXPECT_NEAR(ours / (AtWorkOf(c) + Sum(differences.at_work)), 1, kWithin) << Show(c);
  return {ours, AtWorkOf(c), Sum(differences.at_work)};
}

// All of it: proc_mem_tier1_cap_req.
Pair DeviceOf(const CalculonCase& c) {
  return {Played(c).device, CalculonMemoryOf(c).device, DifferencesOf(c).device()};
}

Pair HostOf(const CalculonCase& c) {
  return {Played(c).host, CalculonMemoryOf(c).host, Sum(DifferencesOf(c).host)};
}

constexpr Comparison kComparisons[] = {
    {"weights", 62, HasAll, WeightsOf, 0.001},
    {"optimizer", 58, HasOptimizer, OptimizerOf, 0.0011},
    {"gradients", 61, HasGradients, GradientsOf},
    {"kept", 60, HasKept, KeptActivationsOf},
    {"at work", 61, HasAtWork, ActivationsAtWorkOf},
    {"device", 62, HasAll, DeviceOf},
    {"host", 3, HasHost, HostOf},
};

TEST(CalculonMemory, OfAllCasesIsCompared) {
  for (const Comparison& comparison : kComparisons) {
    EXPECT_EQ(std::ranges::count_if(CalculonCases(), comparison.has), comparison.cases)
        << comparison.name;
  }
}

constexpr size_t kParts = 6;

// Every so many cases, since what is played is remembered in a process only, and takes its time.
class CalculonPart : public testing::TestWithParam<size_t> {
 protected:
  static std::vector<CalculonCase> Cases() {
    std::vector<CalculonCase> cases;
    for (size_t i = GetParam(); i < CalculonCases().size(); i += kParts) {
      cases.push_back(CalculonCases()[i]);
    }
    return CasesToWalk(cases);
  }
  // Of all parts in this process.
  static void TearDownTestSuite() {
    for (const auto& [name, errors] : all_) errors.Print(name);
  }
  static void Add(const Comparison& comparison, const CalculonCase& c) {
    const auto [ours, theirs, difference] = comparison.pair(c);
    const double error = std::abs((ours - difference) / theirs - 1);
    const double before = std::abs(ours / theirs - 1);
    EXPECT_LE(error, kWithin) << comparison.name << ", " << Show(c) << ": here " << ours
                              << ", Calculon " << theirs << ", explained " << difference;
    EXPECT_LE(before, comparison.most_before) << comparison.name << ", " << Show(c);
    Errors& errors = all_[comparison.name];
    ++errors.compared;
    errors.sum += error;
    errors.worst = std::max(errors.worst, error);
    errors.sum_before += before;
    errors.worst_before = std::max(errors.worst_before, before);
    if (before <= 0.05) ++errors.within_before;
  }

 private:
  static inline std::map<std::string, Errors> all_;
};

TEST_P(CalculonPart, IsTheSameOnceDifferencesAreAdded) {
  for (const CalculonCase& c : Cases()) {
    for (const Comparison& comparison : kComparisons) {
      if (comparison.has(c)) Add(comparison, c);
    }
    EXPECT_EQ(Played(c).host > 0, HasHost(c)) << Show(c);
  }
}

// Calculon shards gradients with the optimizer, but for a layer in four bytes: as much as two
// in two bytes. That is stage 2, where as many whole layers wait at most, with a shard of one that
// is being made; its traffic, once a step, is that of stage 1.
TEST_P(CalculonPart, ShardedGradientsAreThoseOfStage2) {
  for (const CalculonCase& c : Cases()) {
    if (!c.optimizer_sharding || c.optimizer_offload) continue;
    const CalculonUnits u = UnitsOf(c);
    const double waiting = Played(c, 2).gradients - u.layers * u.layer / u.shards;
    EXPECT_LE(waiting / u.layer, (2 + 1 / u.shards) * 1.01) << Show(c);
    EXPECT_GE(waiting / u.layer, 1) << Show(c);
  }
}

INSTANTIATE_TEST_SUITE_P(Sixth, CalculonPart, testing::Range(size_t{0}, CasesToWalk(kParts)));

TEST(CalculonMemory, OfShardedGradientsIsCompared) {
  EXPECT_EQ(std::ranges::count_if(
                CalculonCases(),
                [](const CalculonCase& c) { return c.optimizer_sharding && !c.optimizer_offload; }),
            23);
}

// The formulas are not of the rows alone: other shardings of a model, which no row has.
class OtherShardings : public testing::TestWithParam<int64_t> {};

INSTANTIATE_TEST_SUITE_P(Hp, OtherShardings, testing::ValuesIn(CasesToWalk<int64_t>({2, 4})));

TEST_P(OtherShardings, HaveTheSameMemory) {
  CalculonCase c = CalculonCases().at(1);
  c.gather_again = false;
  c.fused_activation = true;
  c.pp = 6;
  c.hp = GetParam();
  for (const int64_t chunks : {1, 4}) {
    for (const char* recompute : {"none", "attn_only", "full"}) {
      for (const bool sequence_parallel : {false, true}) {
        c.chunks = chunks;
        c.recompute = recompute;
        c.sequence_parallel = sequence_parallel;
        const CalculonMemory theirs = CalculonMemoryOf(c);
        const double explained = theirs.device + DifferencesOf(c).device();
        EXPECT_NEAR(Played(c).device / explained, 1, kWithin) << Show(c);
        const double kept = KeptOf(c) + Sum(DifferencesOf(c).kept);
        EXPECT_NEAR(Played(c).saved / kept, 1, kWithin) << Show(c);
        const double at_work = AtWorkOf(c) + Sum(DifferencesOf(c).at_work);
        EXPECT_NEAR((Played(c).at_work - kept) / at_work, 1, kWithin) << Show(c);
      }
    }
  }
}

}  // namespace
}  // namespace calculon_memory_test_cc
}  // namespace orrery::golden
