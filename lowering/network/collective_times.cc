#include "lowering/network/collective_times.h"

#include <algorithm>
#include <utility>

#include "lowering/network/exchange_store.h"
#include "lowering/network/geometry.h"
#include "lowering/network/pricing.h"
#include "simulator/program/time_alone.h"
#include "support/check.h"

namespace orrery::lowering {

std::optional<cost_models::CollectiveKind> CollectiveOf(redistribution::MoveKind kind) {
  using cost_models::CollectiveKind;
  using redistribution::MoveKind;
  switch (kind) {
    case MoveKind::kAllGather:
      return CollectiveKind::kAllGather;
    case MoveKind::kReduceScatter:
      return CollectiveKind::kReduceScatter;
    case MoveKind::kAllReduce:
      return CollectiveKind::kAllReduce;
    case MoveKind::kAllToAll:
    case MoveKind::kReblock:
      return CollectiveKind::kAllToAll;
    case MoveKind::kPermute:
      return CollectiveKind::kSendReceive;
    case MoveKind::kSlice:
    case MoveKind::kLocalCopy:
    case MoveKind::kMakePartial:
      return std::nullopt;
  }
  return std::nullopt;
}

namespace collective_times_cc {
namespace {

// A step of no ops, whose ranks are where lowering would have them.
transforms::PipelinedStep StepOn(const ir::Mesh& mesh, std::vector<int32_t> devices) {
  transforms::PipelinedStep step;
  step.mesh = mesh;
  step.devices = std::move(devices);
  const auto pp = mesh.Find("pp");
  step.stages.resize(static_cast<size_t>(pp.has_value() ? mesh.size(*pp) : 1));
  return step;
}

// Of the parts that ranks receive to add them to their own, those of the rank with most.
double MostAdded(const cost_models::Rounds& rounds) {
  std::vector<double> added(static_cast<size_t>(rounds.ranks));
  for (const cost_models::Round& round : rounds.rounds) {
    cost_models::ForEachTransfer(round, rounds.ranks, [&](const cost_models::Transfer& transfer) {
      if (!transfer.reduce || cost_models::IsHub(transfer.to)) return;
      added[static_cast<size_t>(transfer.to)] += static_cast<double>(
          transfer.parts * cost_models::ActiveRepetitions(transfer, round, rounds.parts));
    });
  }
  return *std::ranges::max_element(added) / static_cast<double>(rounds.parts_a_size);
}

}  // namespace
}  // namespace collective_times_cc

CollectiveTimes::CollectiveTimes(const ir::Mesh& mesh, std::vector<int32_t> devices,
                                 const cluster::Cluster& cluster,
                                 const cost_models::CostModel& cost_model,
                                 const cost_models::CollectiveChoice& algorithms)
    : cluster_(cluster),
      cost_model_(cost_model),
      algorithms_(algorithms),
      step_(collective_times_cc::StepOn(mesh, std::move(devices))),
      geometry_(step_),
      exchanges_(std::make_shared<ExchangeStore>(cluster.topology)) {}

Duration CollectiveTimes::Of(cost_models::CollectiveKind kind, const ir::AxisList& axes,
                             Bytes size) const {
  const auto [found, is_new] = times_.try_emplace({kind, axes, size.count()});
  if (!is_new) return found->second;
  Pricing pricing(geometry_, cost_model_, cluster_.topology,
                  {.algorithms = algorithms_, .exchanges = exchanges_.get()});
  CollectiveRequest task;
  task.collective = kind;
  task.group = axes;
  task.bytes = size;
  task.stream = simulator::StreamKind::kHorizontal;
  simulator::Program program;
  pricing.Expect(0, task);
  pricing.Prepare(/*fold=*/true, program);
  const TaskTime time = pricing.Collective(0, task, 0);
  return found->second = time.flow.valid() ? simulator::TimeAlone(program.flow(time.flow), program)
                                           : time.duration;
}

Bytes CollectiveTimes::Added(cost_models::CollectiveKind kind, const ir::AxisList& axes,
                             Bytes size) const {
  const bool reduces = kind == cost_models::CollectiveKind::kAllReduce ||
                       kind == cost_models::CollectiveKind::kReduceScatter;
  if (!reduces) return Bytes(0);
  const auto [found, is_new] = added_.try_emplace({kind, axes, size.count()}, Bytes(0));
  if (!is_new) return found->second;
  const std::vector<cluster::DeviceId> group =
      geometry_.Devices(0, geometry_.Groups(0, axes).front());
  if (group.size() < 2) return Bytes(0);
  const auto chosen = cost_models::ChooseCollective({.kind = kind, .size = size, .group = group},
                                                    cluster_.topology, algorithms_);
  ORRERY_CHECK(chosen.ok()) << chosen.status().ToString();
  return found->second = Bytes(static_cast<int64_t>(
             static_cast<double>(size.count()) * collective_times_cc::MostAdded(chosen->rounds)));
}

}  // namespace orrery::lowering
