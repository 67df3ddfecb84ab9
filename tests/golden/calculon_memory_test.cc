#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <iostream>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "nlohmann/json.hpp"
#include "search/evaluate.h"
#include "support/file.h"
#include "tools/flags.h"

// Memory of a rank against Calculon's, on its cases (tests/data/calculon_memory.json, of the
// visible part of golden/calculon.json, each distinct memory once). docs/memory.md has the table of
// what differs and why.

namespace orrery {
namespace {

using nlohmann::json;
using simulator::MemoryKind;

constexpr double kWithin = 0.05;

json Cases() {
  return json::parse(ReadFile(ORRERY_SOURCE_DIR "/tests/data/calculon_memory.json").value());
}

int64_t Int(const json& row, const char* key) { return row[key].get<int64_t>(); }

// What a case asks for that cannot be played yet.
std::string WaitingFor(const json& row) {
  std::vector<std::string> features;
  if (row["optimizer_sharding"].get<bool>()) features.emplace_back("optimizer sharding");
  if (row["recompute"] != "none")
    features.push_back("recompute " + row["recompute"].get<std::string>());
  if (row["offload"].get<bool>()) features.emplace_back("offload");
  return absl::StrJoin(features, ", ");
}

// Calculon has blocks and nothing else: a small vocabulary, and a rank that has neither end.
simulator::MemoryUse MemoryOf(const json& row) {
  tools::ModelFlags flags;
  flags.model = absl::StrCat("gpt:layers=", Int(row, "layers"), ",hidden=", Int(row, "hidden"),
                             ",heads=", Int(row, "heads"), ",seq=", Int(row, "seq"), ",vocab=1024");
  const int64_t hp = Int(row, "hp"), pp = Int(row, "pp"), chunks = Int(row, "chunks");
  const int64_t microbatches = 2 * pp;  // memory of a pipeline that is full
  flags.batch_size = Int(row, "microbatch_size") * microbatches;
  flags.dtype = "fp16";
  flags.cluster = absl::StrCat("dgx-a100:", (hp * pp + 7) / 8);
  flags.memory_limit = "none";
  flags.sharding = "megatron";
  auto setting = tools::MakeSetting(flags);
  EXPECT_TRUE(setting.ok()) << setting.status();
  setting->stages.by = transforms::StagesBy::kLayers;  // Calculon has no others
  const auto run = search::Play(*setting, {.hp = hp,
                                           .pp = pp,
                                           .microbatches = microbatches,
                                           .schedule = chunks > 1 ? "interleaved" : "1f1b",
                                           .chunks = chunks > 1 ? chunks : 0});
  EXPECT_TRUE(run.ok()) << run.status();
  if (!run.ok()) return {};
  return run->report.ranks[simulator::RankClassId(1)].memory;
}

// By what a case is made from, as several cases share it.
const simulator::MemoryUse& Cached(const json& row) {
  static auto& known = *new std::map<std::string, simulator::MemoryUse>;
  const std::string key = absl::StrCat(row["model"].dump(), " ", Int(row, "hp"), " ",
                                       Int(row, "pp"), " ", Int(row, "chunks"));
  const auto found = known.find(key);
  return found != known.end() ? found->second : known.emplace(key, MemoryOf(row)).first->second;
}

double Error(Bytes ours, const json& theirs) {
  return static_cast<double>(ours.count()) / theirs.get<double>() - 1;
}

// Two bytes a parameter, those of whole layers.
TEST(CalculonMemory, ParametersAreTheSame) {
  int compared = 0;
  for (const json& row : Cases()) {
    SCOPED_TRACE(row.dump());
    EXPECT_LE(std::abs(Error(Cached(row).of(MemoryKind::kParameters), row["weight_bytes"])), 0.001);
    ++compared;
  }
  EXPECT_EQ(compared, 42);
}

// Twelve bytes a parameter: master weights and two moments.
TEST(CalculonMemory, OptimizerIsTheSame) {
  int compared = 0;
  for (const json& row : Cases()) {
    if (row["optimizer_sharding"].get<bool>() || !row["training"].get<bool>()) continue;
    SCOPED_TRACE(row.dump());
    EXPECT_LE(std::abs(Error(Cached(row).of(MemoryKind::kOptimizer), row["optimizer_bytes"])),
              0.001);
    ++compared;
  }
  EXPECT_EQ(compared, 19);
}

// Sums of two bytes a parameter, and beside them what backward is making: Calculon takes all of a
// layer's for that, here it is what the op at the peak makes. Less that layer they are the same.
TEST(CalculonMemory, GradientsAreThoseOfItsLayers) {
  int compared = 0;
  for (const json& row : Cases()) {
    if (row["optimizer_sharding"].get<bool>() || !row["training"].get<bool>()) continue;
    SCOPED_TRACE(row.dump());
    const double layer = row["block_weight_bytes"].is_null()
                             ? row["weight_bytes"].get<double>() *
                                   static_cast<double>(Int(row, "pp")) /
                                   static_cast<double>(Int(row, "layers"))
                             : row["block_weight_bytes"].get<double>();
    const double sums = row["gradient_bytes"].get<double>() - layer;
    const double ours = static_cast<double>(Cached(row).of(MemoryKind::kGradients).count());
    EXPECT_GE(ours, sums * 0.999);
    EXPECT_LE(ours, row["gradient_bytes"].get<double>() * (1 + kWithin));
    ++compared;
  }
  EXPECT_EQ(compared, 19);
}

// Which rows wait, by feature: when one lands, its rows are to be compared like the others.
TEST(CalculonMemory, RowsThatWait) {
  std::map<std::string, int> waiting;
  for (const json& row : Cases()) ++waiting[WaitingFor(row)];
  EXPECT_THAT(waiting,
              testing::ElementsAre(
                  testing::Pair("", 2), testing::Pair("optimizer sharding", 5),
                  testing::Pair("optimizer sharding, recompute attn_only", 8),
                  testing::Pair("optimizer sharding, recompute attn_only, offload", 1),
                  testing::Pair("optimizer sharding, recompute full", 8),
                  testing::Pair("recompute attn_only", 7), testing::Pair("recompute full", 11)));
}

// The rows of docs/memory.md, with --gtest_filter='*Table*'.
TEST(CalculonMemory, Table) {
  for (const json& row : Cases()) {
    if (row["optimizer_sharding"].get<bool>() || !row["training"].get<bool>()) continue;
    const simulator::MemoryUse& use = Cached(row);
    std::cout << absl::StrFormat(
        "%-12s hp %d pp %2d chunks %d %-9s parameters %+.2f %%, optimizer %+.2f %%, gradients "
        "%+.1f %%, activations %.2f GiB, Calculon's %.2f GiB\n",
        row["model"].get<std::string>(), Int(row, "hp"), Int(row, "pp"), Int(row, "chunks"),
        row["recompute"].get<std::string>(),
        100 * Error(use.of(MemoryKind::kParameters), row["weight_bytes"]),
        100 * Error(use.of(MemoryKind::kOptimizer), row["optimizer_bytes"]),
        100 * Error(use.of(MemoryKind::kGradients), row["gradient_bytes"]),
        static_cast<double>(use.of(MemoryKind::kActivations).count()) / (1 << 30),
        (row["activation_bytes"].get<double>() + row["checkpoint_bytes"].get<double>() +
         row["activation_gradient_bytes"].get<double>()) /
            (1 << 30));
  }
}

}  // namespace
}  // namespace orrery
