#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
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

using Figure = double (*)(const PlayedMemory&);

constexpr double kWithin = 0.02;  // 5 % is what issue 6 asks for

std::string Show(const CalculonCase& c) {
  return absl::StrCat(
      c.model, " hp ", c.hp, " pp ", c.pp, " chunks ", c.chunks, " x", c.microbatch_size, " ",
      c.recompute, c.sequence_parallel ? (c.gather_again ? " gather again" : " sequence") : "",
      c.fused_activation ? " fused" : "", c.optimizer_sharding ? " shards" : "",
      c.weight_offload ? " weights" : "", c.activation_offload ? " activations" : "",
      c.optimizer_offload ? " optimizer" : "", c.training ? "" : " inference");
}

/// Mean and worst of what is left of a comparison.
struct Errors {
  std::string name;
  int compared = 0, within_before = 0;  // the latter as they are, within 5 %
  double sum = 0, worst = 0, sum_before = 0, worst_before = 0;

  // `ours` and Calculon's, `difference` as in Difference.
  void Add(const CalculonCase& c, double ours, double theirs, double difference) {
    const double error = std::abs((ours - difference) / theirs - 1);
    EXPECT_LE(error, kWithin) << name << ", " << Show(c) << ": here " << ours << ", Calculon "
                              << theirs << ", explained " << difference;
    ++compared;
    sum += error;
    worst = std::max(worst, error);
    const double before = std::abs(ours / theirs - 1);
    sum_before += before;
    worst_before = std::max(worst_before, before);
    if (before <= 0.05) ++within_before;
  }
  void Print() const {
    std::cout << absl::StrFormat(
        "%-10s %2d rows: mean %.2f %%, worst %.2f %%; before, mean %.1f %%, worst %.1f %%, %d "
        "within 5 %%\n",
        name, compared, 100 * sum / compared, 100 * worst, 100 * sum_before / compared,
        100 * worst_before, within_before);
  }
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

void CompareWeights() {
  Errors errors{.name = "weights"};
  for (const CalculonCase& c : CalculonCases()) {
    errors.Add(c, Played(c).weights, CalculonMemoryOf(c).weights, 0);
  }
  errors.Print();
  EXPECT_EQ(errors.compared, 62);
  EXPECT_LE(errors.worst_before, 0.001);
}

// Two moments and master weights of four bytes, of shards where they are sharded.
void CompareOptimizer() {
  Errors errors{.name = "optimizer"};
  for (const CalculonCase& c : CalculonCases()) {
    if (!c.training || c.optimizer_offload) continue;
    errors.Add(c, Played(c).optimizer, CalculonMemoryOf(c).optimizer, 0);
  }
  errors.Print();
  EXPECT_EQ(errors.compared, 58);
  EXPECT_LE(errors.worst_before, 0.0011);
}

void CompareGradients() {
  Errors errors{.name = "gradients"};
  for (const CalculonCase& c : CalculonCases()) {
    if (!c.training) continue;
    const CalculonUnits u = UnitsOf(c);
    // An offloaded optimizer takes gradients to the host: then the device has those of a layer.
    const double theirs =
        c.optimizer_offload ? (2 + 1 / u.shards) * u.layer : CalculonMemoryOf(c).gradients;
    errors.Add(c, Played(c).gradients, theirs, Sum(DifferencesOf(c).gradients));
  }
  errors.Print();
  EXPECT_EQ(errors.compared, 61);
}

// What forward leaves of all microbatches in flight: act_checkpoint_size with full recomputation,
// else act_space less the working set of one layer.
void CompareKeptActivations() {
  Errors errors{.name = "kept"};
  for (const CalculonCase& c : CalculonCases()) {
    if (!c.training || c.activation_offload) continue;
    errors.Add(c, Played(c).saved, KeptOf(c), Sum(DifferencesOf(c).kept));
  }
  errors.Print();
  EXPECT_EQ(errors.compared, 60);
}

// What the first backward has beside these: act_grad_space and the working set.
void CompareActivationsAtWork() {
  Errors errors{.name = "at work"};
  for (const CalculonCase& c : CalculonCases()) {
    if (c.activation_offload) continue;
    const Differences differences = DifferencesOf(c);
    const double kept = KeptOf(c) + Sum(differences.kept);
    const double ours = Played(c).at_work - kept;
    errors.Add(c, ours, AtWorkOf(c), Sum(differences.at_work));
    // The formula of what is here is one itself, not only beside Calculon's larger figure.
    EXPECT_NEAR(ours / (AtWorkOf(c) + Sum(differences.at_work)), 1, kWithin) << Show(c);
  }
  errors.Print();
  EXPECT_EQ(errors.compared, 61);
}

// All of it: proc_mem_tier1_cap_req.
void CompareDevice() {
  Errors errors{.name = "device"};
  for (const CalculonCase& c : CalculonCases()) {
    errors.Add(c, Played(c).device, CalculonMemoryOf(c).device, DifferencesOf(c).device());
  }
  errors.Print();
  EXPECT_EQ(errors.compared, 62);
}

void CompareHost() {
  Errors errors{.name = "host"};
  for (const CalculonCase& c : CalculonCases()) {
    if (!c.optimizer_offload) {
      EXPECT_EQ(Played(c).host, 0);
      continue;
    }
    errors.Add(c, Played(c).host, CalculonMemoryOf(c).host, Sum(DifferencesOf(c).host));
  }
  errors.Print();
  EXPECT_EQ(errors.compared, 3);
}

// One test, as what is played is remembered in a process only.
TEST(CalculonMemory, IsTheSameOnceDifferencesAreAdded) {
  CompareWeights();
  CompareOptimizer();
  CompareGradients();
  CompareKeptActivations();
  CompareActivationsAtWork();
  CompareDevice();
  CompareHost();
}

// The formulas are not of the rows alone: other shardings of a model, which no row has.
TEST(CalculonMemory, IsTheSameForOtherShardings) {
  CalculonCase c = CalculonCases().at(1);
  c.gather_again = false;
  c.fused_activation = true;
  c.pp = 6;
  for (const int64_t hp : {2, 4}) {
    for (const int64_t chunks : {1, 4}) {
      for (const char* recompute : {"none", "attn_only", "full"}) {
        for (const bool sequence_parallel : {false, true}) {
          c.hp = hp;
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
}

// Calculon shards gradients with the optimizer, but for a layer in four bytes: as much as two
// in two bytes. That is stage 2, where as many whole layers wait at most, with a shard of one that
// is being made; its traffic, once a step, is that of stage 1.
TEST(CalculonMemory, ShardedGradientsAreThoseOfStage2) {
  int compared = 0;
  for (const CalculonCase& c : CalculonCases()) {
    if (!c.optimizer_sharding || c.optimizer_offload) continue;
    const CalculonUnits u = UnitsOf(c);
    const double waiting = Played(c, 2).gradients - u.layers * u.layer / u.shards;
    EXPECT_LE(waiting / u.layer, (2 + 1 / u.shards) * 1.01) << Show(c);
    EXPECT_GE(waiting / u.layer, 1) << Show(c);
    ++compared;
  }
  EXPECT_EQ(compared, 23);
}

}  // namespace
}  // namespace calculon_memory_test_cc
}  // namespace orrery::golden
