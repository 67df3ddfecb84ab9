#include "tests/distir/play.h"

#include <fstream>

#include "absl/strings/str_cat.h"
#include "support/check.h"
#include "support/paths_test_util.h"
#include "tools/flags.h"
#include "tools/presets.h"

namespace orrery::distir {

search::Setting MakeSetting(const Case& c, bool fold) {
  tools::ModelFlags flags = tools::PresetFlags("distir").value();
  flags.model = absl::StrCat("mlp:layers=", c.layers, ",dim=", c.dim);
  flags.batch_size = c.batch;
  flags.cluster = absl::StrCat("uniform:", c.ranks(), "@", c.gigabits_per_second, "Gbps");
  flags.optimizer = c.optimizer ? "sgd" : "none";
  flags.no_fold = !fold;
  absl::StatusOr<search::Setting> setting = tools::MakeSetting(flags);
  ORRERY_CHECK(setting.ok()) << setting.status().ToString();
  return *std::move(setting);
}

transforms::ParallelPlan PlanOf(const Case& c) {
  absl::StatusOr<transforms::ParallelPlan> plan = tools::PresetPlan("distir");
  ORRERY_CHECK(plan.ok()) << plan.status().ToString();
  plan->dp = c.dp;
  plan->hp = c.hp;
  plan->pp = c.pp;
  plan->microbatches = c.microbatches;
  return *std::move(plan);
}

absl::StatusOr<search::Run> Play(const Case& c) { return search::Play(MakeSetting(c), PlanOf(c)); }

RankFigures ByRank(const search::Run& run) {
  const auto ranks = static_cast<size_t>(run.report.rank_count);
  RankFigures figures{std::vector<double>(ranks), std::vector<int64_t>(ranks)};
  for (int32_t r = 0; r < run.program.rank_count(); ++r) {
    const simulator::RankClassId id(r);
    for (const int32_t member : run.program.rank(id).members) {
      const auto rank = static_cast<size_t>(member);
      figures.finish_s[rank] = run.report.ranks[id].finish.seconds();
      figures.peak_memory_bytes[rank] = run.report.ranks[id].memory.total.count();
    }
  }
  return figures;
}

std::vector<Golden> ReadGolden(const std::string& name) {
  std::ifstream file(absl::StrCat(SourceDir(), "/tests/data/distir/", name));
  ORRERY_CHECK(file.good()) << name;
  std::vector<Golden> rows;
  for (const nlohmann::json& row : nlohmann::json::parse(file)) {
    Golden golden{.config = {.layers = row["layers"],
                             .dim = row["dim"],
                             .batch = row["batch"],
                             .dp = row["dp"],
                             .hp = row["hp"],
                             .pp = row["pp"],
                             .microbatches = row["microbatches"],
                             .optimizer = row["optimizer"] == "sgd"},
                  .skipped = row.contains("skipped"),
                  .figures = {},
                  .peak_memory_bytes = {}};
    if (!golden.skipped) {
      golden.figures = {.makespan_s = row["makespan_s"],
                        .finish_s = row["device_finish_s"],
                        .communication_overhead = row["communication_overhead"],
                        .send_bytes = row["send_bytes"],
                        .allreduce_tensor_bytes = row["allreduce_tensor_bytes"],
                        .ops = {}};
      golden.peak_memory_bytes = row["peak_memory_bytes"].get<std::vector<int64_t>>();
    }
    rows.push_back(std::move(golden));
  }
  return rows;
}

}  // namespace orrery::distir
