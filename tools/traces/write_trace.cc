#include "tools/traces/write_trace.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "cost_models/collectives/steps.h"
#include "simulator/report/memory.h"
#include "simulator/traces/chrome_trace.h"
#include "simulator/traces/memory_snapshot.h"
#include "support/status.h"
#include "tools/traces/packed_stream.h"

namespace orrery::tools {
namespace write_trace_cc {
namespace {

using simulator::Program;
using simulator::RankClassId;

constexpr char kRank[] = "{rank}";

int64_t Coordinate(const ir::Mesh& mesh, int32_t rank, ir::AxisIndex axis) {
  return rank / mesh.stride(axis) % mesh.size(axis);
}

// "dp0 hp1 pp1": as plans are written, whichever axis is the outermost.
std::string CoordinatesText(const ir::Mesh& mesh, int32_t rank) {
  std::vector<std::string> names = {"dp", "hp", "pp"};
  for (const ir::Axis& axis : mesh.axes()) {
    if (std::ranges::find(names, axis.name) == names.end()) names.push_back(axis.name);
  }
  std::string text;
  for (const std::string& name : names) {
    const auto axis = mesh.Find(name);
    if (!axis.has_value()) continue;
    absl::StrAppend(&text, text.empty() ? "" : " ", name, Coordinate(mesh, rank, *axis));
  }
  return text;
}

// A rank by its number on the mesh that it is of: that of its stage, where stages have their own.
struct RankOnMesh {
  const ir::Mesh& mesh;
  int32_t rank = 0;
  int32_t first = 0;  // rank of the mesh
  int32_t stage = -1;
};

RankOnMesh OnMesh(const transforms::PipelinedStep& step, int32_t rank) {
  int32_t first = 0, stage = 0;
  for (const transforms::StagePlace& place : step.unequal.places) {
    const auto size = static_cast<int32_t>(place.mesh.size());
    if (rank < first + size) return {place.mesh, rank - first, first, stage};
    first += size;
    ++stage;
  }
  return {.mesh = step.mesh, .rank = rank};
}

int32_t DeviceOf(const transforms::PipelinedStep& step, int32_t rank) {
  const RankOnMesh on = OnMesh(step, rank);
  if (on.stage >= 0) {
    return step.unequal.places[static_cast<size_t>(on.stage)].devices[static_cast<size_t>(on.rank)];
  }
  return step.devices.empty() ? rank : step.devices[static_cast<size_t>(rank)];
}

std::string NameOf(const transforms::PipelinedStep& step, int32_t rank) {
  const RankOnMesh on = OnMesh(step, rank);
  if (on.stage < 0) return CoordinatesText(on.mesh, rank);
  std::vector<ir::Axis> axes = on.mesh.axes();
  std::erase_if(axes, [](const ir::Axis& axis) { return axis.name == "pp"; });
  return absl::StrCat(CoordinatesText(ir::Mesh(std::move(axes)), on.rank), " pp", on.stage);
}

simulator::TraceRank Describe(const search::Setting& setting, const search::Run& run,
                              int32_t rank) {
  const int32_t device = DeviceOf(run.pipelined, rank);
  const int32_t a_node = cost_models::DevicesANode(setting.cluster.topology);
  const cluster::Device& kind =
      setting.cluster.kind(setting.cluster.kind_of(cluster::DeviceId(device)));
  return {.name = NameOf(run.pipelined, rank),
          .place = a_node > 1 ? absl::StrCat("node", device / a_node, "/gpu", device % a_node)
                              : absl::StrCat("device", device),
          .device = a_node > 1 ? device % a_node : device,
          .device_name = kind.name,
          .memory = kind.memory};
}

// The ranks that differ from `rank` only along the axes that `name` names, "hp.cp".
std::vector<int32_t> GroupOf(const ir::Mesh& mesh, int32_t rank, absl::string_view name) {
  std::vector<int32_t> group = {rank};
  for (const absl::string_view part : absl::StrSplit(name, '.')) {
    const auto axis = mesh.Find(part);
    if (!axis.has_value()) return {};
    std::vector<int32_t> wider;
    const auto own = static_cast<int32_t>(Coordinate(mesh, rank, *axis));
    const auto stride = static_cast<int32_t>(mesh.stride(*axis));
    for (const int32_t member : group) {
      for (int32_t i = 0; i < mesh.size(*axis); ++i) wider.push_back(member + (i - own) * stride);
    }
    group = std::move(wider);
  }
  std::ranges::sort(group);
  return group;
}

std::vector<int32_t> AllRanks(const Program& program) {
  std::vector<int32_t> ranks;
  for (int32_t i = 0; i < program.rank_count(); ++i) {
    const std::vector<int32_t>& members = program.rank(RankClassId(i)).members;
    ranks.insert(ranks.end(), members.begin(), members.end());
  }
  std::ranges::sort(ranks);
  return ranks;
}

std::vector<int32_t> FirstRanks(const Program& program) {
  std::vector<int32_t> ranks;
  for (int32_t i = 0; i < program.rank_count(); ++i) {
    ranks.push_back(program.rank(RankClassId(i)).members.front());
  }
  std::ranges::sort(ranks);
  return ranks;
}

absl::Status WriteOne(const std::string& path, const Program& program,
                      const simulator::Trace& trace, const simulator::TraceOptions& options) {
  ORRERY_ASSIGN_OR_RETURN(const std::unique_ptr<PackedStream> out, PackedStream::Open(path));
  WriteChromeTrace(program, trace, *out, options);
  return out->Finish();
}

absl::Status WriteTraces(const TraceRequest& request, const Program& program,
                         const simulator::Trace& trace, simulator::TraceOptions options) {
  options.level = request.level;
  options.microbatches = request.microbatches;
  options.ranks = request.all_ranks ? AllRanks(program) : request.ranks;
  if (request.path.find(kRank) == std::string::npos) {
    return WriteOne(request.path, program, trace, options);
  }
  for (const int32_t rank : options.ranks.empty() ? FirstRanks(program) : options.ranks) {
    options.ranks = {rank};
    const std::string path = absl::StrReplaceAll(request.path, {{kRank, absl::StrCat(rank)}});
    ORRERY_RETURN_IF_ERROR(WriteOne(path, program, trace, options));
  }
  return absl::OkStatus();
}

// The class that a rank is in; nothing where the program has no such rank.
std::optional<RankClassId> ClassOf(const Program& program, int32_t rank) {
  for (int32_t i = 0; i < program.rank_count(); ++i) {
    if (std::ranges::binary_search(program.rank(RankClassId(i)).members, rank)) {
      return RankClassId(i);
    }
  }
  return std::nullopt;
}

// A program that a person wrote may number its ranks with gaps.
absl::Status CheckShown(const TraceRequest& request, const Program& program) {
  for (const int32_t rank : request.ranks) {
    if (ClassOf(program, rank).has_value()) continue;
    return absl::InvalidArgumentError(absl::StrCat("--trace-ranks: the program has no rank ", rank,
                                                   "; wanted those that it has, "
                                                   "or all"));
  }
  int32_t last = -1;
  for (int32_t i = 0; i < program.task_count(); ++i) {
    last = std::max(last, program.microbatch_of(simulator::TaskId(i)));
  }
  for (const int32_t microbatch : request.microbatches) {
    if (microbatch <= last) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("--trace-microbatches: got ", microbatch, "; the run has ",
                     last < 0 ? "none" : absl::StrCat("0 to ", last)));
  }
  return absl::OkStatus();
}

// The class of the rank whose memory is asked for. Requires ranks.
RankClassId SnapshotOf(const TraceRequest& request, const Program& program,
                       const simulator::Trace& trace) {
  if (!request.ranks.empty()) return *ClassOf(program, request.ranks.front());
  RankClassId chosen(0);
  const auto peaks = simulator::PeakMemory(program, trace);
  for (int32_t i = 0; i < program.rank_count(); ++i) {
    if (peaks[RankClassId(i)].total > peaks[chosen].total) chosen = RankClassId(i);
  }
  return chosen;
}

absl::Status WriteAll(const TraceRequest& request, const Program& program,
                      const simulator::Trace& trace, const simulator::TraceOptions& options) {
  ORRERY_RETURN_IF_ERROR(CheckShown(request, program));
  if (!request.path.empty()) {
    ORRERY_RETURN_IF_ERROR(WriteTraces(request, program, trace, options));
  }
  if (request.snapshot.empty() || program.rank_count() == 0) return absl::OkStatus();
  ORRERY_ASSIGN_OR_RETURN(const std::unique_ptr<PackedStream> out,
                          PackedStream::Open(request.snapshot));
  simulator::WriteMemorySnapshot(program, trace, SnapshotOf(request, program, trace), *out);
  return out->Finish();
}

}  // namespace
}  // namespace write_trace_cc

absl::Status WriteTrace(const TraceRequest& request, const search::Setting& setting,
                        const search::Run& run) {
  simulator::TraceOptions options = {.use = run.link_use.has_value() ? &*run.link_use : nullptr,
                                     .batches = run.rounds};
  options.describe = [&](int32_t rank) { return write_trace_cc::Describe(setting, run, rank); };
  options.group = [&](int32_t rank, absl::string_view name) {
    const write_trace_cc::RankOnMesh on = write_trace_cc::OnMesh(run.pipelined, rank);
    std::vector<int32_t> group = write_trace_cc::GroupOf(on.mesh, on.rank, name);
    for (int32_t& member : group) member += on.first;
    return group;
  };
  return write_trace_cc::WriteAll(request, run.program, run.trace, options);
}

absl::Status WriteTrace(const TraceRequest& request, const simulator::Program& program,
                        const simulator::Trace& trace, const simulator::LinkUse* use) {
  return write_trace_cc::WriteAll(request, program, trace, {.use = use});
}

}  // namespace orrery::tools
