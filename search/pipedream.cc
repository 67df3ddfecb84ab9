#include "search/pipedream.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "lowering/network/sharding_prices.h"
#include "search/bounds/least_memory.h"
#include "support/number_text.h"
#include "support/status.h"
#include "support/units.h"
#include "transforms/parallel.h"
#include "transforms/stages/layer_prices.h"
#include "transforms/training/microbatch.h"

namespace orrery::search {
namespace pipedream_cc {
namespace {

using cluster::DeviceId;
using transforms::strategies::PipeDreamLevel;

std::vector<PipeDreamLevel> LevelsOf(const cluster::Topology& topology) {
  const cluster::TopologyShape& shape = topology.shape();
  const int32_t devices = topology.devices(), in_node = shape.devices_per_node;
  const auto rate = [&](int32_t to) {
    return static_cast<double>(topology.Path(DeviceId(0), DeviceId(to)).rate.bytes_per_second());
  };
  // In a node of several boards the way from the first device to the last.
  const int32_t far = shape.boards_per_node > 1 ? in_node - 1 : 1;
  if (in_node <= 1 || in_node >= devices || devices % in_node != 0) {
    return {{.members = devices, .bytes_per_second = rate(far)}};
  }
  const int32_t nics = shape.nics_per_node == 0 ? in_node : shape.nics_per_node;
  return {{.members = in_node, .bytes_per_second = rate(far)},
          {.members = devices / in_node, .bytes_per_second = rate(in_node) * nics}};
}

}  // namespace
}  // namespace pipedream_cc

absl::StatusOr<PipeDreamStages> PlanPipeDream(const Setting& setting, int64_t microbatches) {
  if (setting.cluster.size() < 2) {
    return absl::InvalidArgumentError(absl::StrCat("`plan` pipedream: ", setting.cluster.name,
                                                   " has 1 device; wanted at least 2 to plan for"));
  }
  if (microbatches < 1 || setting.batch_size % microbatches != 0) {
    return absl::InvalidArgumentError(absl::StrCat("`plan` pipedream: ", microbatches,
                                                   " microbatches; wanted a divisor of the ",
                                                   setting.batch_size, " samples of a batch"));
  }
  ORRERY_ASSIGN_OR_RETURN(const ir::Mesh mesh, transforms::MakeMesh({}));
  const lowering::ClusterShardingPrices prices(mesh, setting.cluster, *setting.cost_model);
  ORRERY_ASSIGN_OR_RETURN(const ir::Function step,
                          transforms::Microbatch(setting.step, microbatches));
  ORRERY_ASSIGN_OR_RETURN(const transforms::LayerPrices units,
                          transforms::PriceLayers(step, prices));
  transforms::LayerPrices layers = transforms::JoinedToLayers(units);
  PipeDreamStages stages{.plan = {},
                         .names = std::move(layers.names),
                         .levels = pipedream_cc::LevelsOf(setting.cluster.topology),
                         .samples = setting.batch_size / microbatches};
  ORRERY_ASSIGN_OR_RETURN(
      stages.plan, transforms::strategies::PlanPipeDream(
                       {.seconds = std::move(layers.seconds),
                        .weight_bytes = std::move(layers.weight_bytes),
                        .output_bytes = std::move(layers.output_bytes),
                        .held_bytes = std::move(layers.held_bytes),
                        .memory_limit = static_cast<double>(MemoryLimit(setting, {}).count()),
                        .levels = stages.levels}));
  return stages;
}

std::string PipeDreamText(const PipeDreamStages& stages) {
  std::vector<std::string> members;
  for (auto level = stages.levels.rbegin(); level != stages.levels.rend(); ++level) {
    members.push_back(absl::StrCat(level->members));
  }
  std::string text = absl::StrCat("PipeDream's plan: ", stages.names.size(), " layers on ",
                                  absl::StrJoin(members, " x "), " devices, minibatches of ",
                                  stages.samples, " samples\n\n");
  for (size_t i = 0; i < stages.plan.stages.size(); ++i) {
    const transforms::strategies::PipeDreamStage& stage = stages.plan.stages[i];
    absl::StrAppendFormat(&text, "  stage %-3d layers %3d to %-3d %4d %s   from %s\n",
                          static_cast<int>(i), stage.begin, stage.end - 1, stage.replicas,
                          stage.replicas == 1 ? "replica " : "replicas",
                          stages.names[static_cast<size_t>(stage.begin)]);
  }
  absl::StrAppendFormat(&text, "\n  slowest stage  %.6g s a minibatch, %s samples/s\n",
                        stages.plan.seconds,
                        ShortNumber(static_cast<double>(stages.samples) / stages.plan.seconds));
  return text;
}

}  // namespace orrery::search
