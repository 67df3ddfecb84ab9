#include "tools/collective_cases.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cost_models/collectives/choice.h"
#include "lowering/astra/astra_system.h"
#include "simulator/network/astra_networks.h"
#include "simulator/network/fluid_network.h"
#include "support/file.h"
#include "support/json_number.h"
#include "support/status.h"
#include "support/word_list.h"
#include "tools/terminal/interrupt.h"
#include "tools/terminal/progress.h"

namespace orrery::tools {
namespace collective_cases_cc {
namespace {

using cluster::DeviceId;
using cluster::Topology;
using cost_models::CollectiveKind;
using nlohmann::json;

// A kind as ASTRA-sim writes it, and ours.
struct AstraKind {
  absl::string_view collective;  // of a record
  absl::string_view key;         // of its system, for the algorithms
  CollectiveKind kind;
};
constexpr AstraKind kKinds[] = {
    {"all_reduce", "all-reduce-implementation", CollectiveKind::kAllReduce},
    {"reduce_scatter", "reduce-scatter-implementation", CollectiveKind::kReduceScatter},
    {"all_gather", "all-gather-implementation", CollectiveKind::kAllGather},
    {"all_to_all", "all-to-all-implementation", CollectiveKind::kAllToAll}};

// Algorithms and topologies: as they are written there, and ours.
struct AstraName {
  absl::string_view theirs, ours;
};
constexpr AstraName kAlgorithms[] = {{"ring", "ring"},
                                     {"direct", "direct"},
                                     {"halvingDoubling", "halving-doubling"},
                                     {"doubleBinaryTree", "tree"}};
constexpr AstraName kTopologies[] = {
    {"Ring", "ring"}, {"FullyConnected", "fully_connected"}, {"Switch", "switch"}};

absl::StatusOr<absl::string_view> Ours(absl::Span<const AstraName> names, absl::string_view what,
                                       absl::string_view name) {
  std::string known;
  for (const AstraName& row : names) {
    if (row.theirs == name) return row.ours;
    absl::StrAppend(&known, known.empty() ? "" : ", ", row.theirs);
  }
  return absl::InvalidArgumentError(
      absl::StrCat(what, " '", name, "' is unknown; wanted one of ", known));
}

// GB are 2^30 bytes there.
absl::StatusOr<Topology> MakeTopology(const std::string& name, int64_t devices, double rate,
                                      double latency_ns) {
  ORRERY_ASSIGN_OR_RETURN(const absl::string_view ours, Ours(kTopologies, "topology", name));
  const bool sound = devices >= 1 && devices <= 1024 && rate > 0 && rate < 1e9 && latency_ns >= 0 &&
                     latency_ns < 1e12;
  if (!sound) {
    return absl::InvalidArgumentError(
        absl::StrCat("got ", devices, " devices, ", rate, " GB/s, ", latency_ns,
                     " ns; wanted 1 to 1024, a positive rate and no negative latency"));
  }
  const cluster::PathInfo port = {Bandwidth(std::llround(rate * 1073741824.0)),
                                  Duration(std::llround(latency_ns * 1000))};
  for (const cluster::TopologyKind* kind : cluster::AllTopologies()) {
    if (kind->name != ours) continue;
    return Topology::Create(*kind, {.devices = static_cast<int32_t>(devices), .port = port});
  }
  return absl::InvalidArgumentError(absl::StrCat("topology '", ours, "' is unknown"));
}

absl::StatusOr<AstraKind> KindOf(const std::string& collective) {
  for (const AstraKind& kind : kKinds) {
    if (kind.collective == collective) return kind;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("collective '", collective,
                   "' is unknown; wanted all_reduce, reduce_scatter, all_gather or all_to_all"));
}

// A whole number. Throws where the field is no number at all.
absl::StatusOr<int64_t> WholeOf(const json& field, absl::string_view what) {
  if (!field.is_number()) return field.get<int64_t>();
  if (const std::optional<int64_t> number = WholeNumber(field)) return *number;
  return absl::InvalidArgumentError(
      absl::StrCat(what, ": got ", field.dump().substr(0, 40), "; wanted a whole number"));
}

absl::StatusOr<lowering::AstraCollective> ReadRecord(const json& record) {
  const json& system = record.at("system");
  lowering::AstraCollective collective;
  ORRERY_ASSIGN_OR_RETURN(const AstraKind kind, KindOf(record.at("collective").get<std::string>()));
  collective.kind = kind.kind;
  ORRERY_ASSIGN_OR_RETURN(const int64_t size, WholeOf(record.at("size_bytes"), "size_bytes"));
  collective.size = Bytes(size);
  ORRERY_ASSIGN_OR_RETURN(collective.endpoint_delay_ns,
                          WholeOf(system.at("endpoint-delay"), "endpoint-delay"));
  collective.local_memory =
      Bandwidth(std::llround(std::clamp(system.at("local-mem-bw").get<double>(), 0.0, 1e9) * 1e9));
  ORRERY_ASSIGN_OR_RETURN(collective.chunks, WholeOf(system.at("preferred-dataset-splits"),
                                                     "preferred-dataset-splits"));
  ORRERY_ASSIGN_OR_RETURN(
      collective.active_chunks,
      WholeOf(system.at("active-chunks-per-dimension"), "active-chunks-per-dimension"));
  collective.local_bandwidth_aware = system.value("collective-optimization", "") == "localBWAware";
  if (collective.endpoint_delay_ns < 0 || collective.endpoint_delay_ns > 1'000'000'000 ||
      size < 0 || size > (int64_t{1} << 40)) {
    return absl::InvalidArgumentError(absl::StrCat("got an endpoint-delay of ",
                                                   collective.endpoint_delay_ns, " and size_bytes ",
                                                   size, "; wanted 0 to 1e9, and 0 to 2^40"));
  }
  const json& topologies = record.at("topology");
  int64_t ranks = 1;
  for (size_t i = 0; i < topologies.size(); ++i) {
    ORRERY_ASSIGN_OR_RETURN(const int64_t devices, WholeOf(record.at("npus").at(i), "npus"));
    ORRERY_ASSIGN_OR_RETURN(Topology topology,
                            MakeTopology(topologies.at(i).get<std::string>(), devices,
                                         record.at("bandwidth_GBps").at(i).get<double>(),
                                         record.at("latency_ns").at(i).get<double>()));
    std::vector<std::string> algorithms(cost_models::kCollectiveKindCount);
    for (const AstraKind& each : kKinds) {
      const json& names = system.at(std::string(each.key));
      algorithms[static_cast<size_t>(each.kind)] = names.at(i).get<std::string>();
    }
    ranks *= topology.devices();
    if (ranks > cluster::kMaxDevices) {
      return absl::InvalidArgumentError(
          absl::StrCat("npus: got ", ranks, " in all; wanted at most ", cluster::kMaxDevices));
    }
    collective.dimensions.push_back({std::move(topology), std::move(algorithms)});
  }
  return collective;
}

// Our own model of one step: the algorithm that the record names, or where that is not for it, the
// fastest.
absl::StatusOr<Duration> PlayFluidStep(const lowering::AstraDimension& dimension,
                                       const std::string& name, const lowering::AstraStep& step) {
  ORRERY_ASSIGN_OR_RETURN(const absl::string_view algorithm, Ours(kAlgorithms, "algorithm", name));
  std::vector<DeviceId> group;
  for (int32_t i = 0; i < dimension.topology.devices(); ++i) group.push_back(DeviceId(i));
  // Their all-gather counts what a rank brings, ours the whole.
  const bool gathers = step.kind == CollectiveKind::kAllGather;
  const Bytes size = step.size * (gathers ? static_cast<int64_t>(group.size()) : 1);
  ORRERY_ASSIGN_OR_RETURN(const cost_models::CollectiveAlgorithm* const record,
                          cost_models::FindCollectiveAlgorithm(algorithm));
  cost_models::CollectiveChoice choice;
  if (record->kinds.contains(step.kind)) {
    ORRERY_ASSIGN_OR_RETURN(choice, cost_models::CollectiveChoice::Parse(algorithm));
  }
  ORRERY_ASSIGN_OR_RETURN(
      const cost_models::ChosenCollective chosen,
      cost_models::ChooseCollective({.kind = step.kind, .size = size, .group = group},
                                    dimension.topology, choice));
  return chosen.time;
}

// Our own model of a record: one dimension after the other.
absl::StatusOr<Duration> PlayFluid(const lowering::AstraCollective& collective) {
  Duration time;
  for (const lowering::AstraStep& step : lowering::AstraStepsOf(collective, collective.size)) {
    const lowering::AstraDimension& dimension = collective.dimensions[step.dimension];
    const std::string& name = dimension.algorithms[static_cast<size_t>(collective.kind)];
    ORRERY_ASSIGN_OR_RETURN(const Duration step_time, PlayFluidStep(dimension, name, step));
    time = std::min(time + step_time, kLongestDuration);
  }
  return time;
}

// What was found; a note where it is not what was asked for.
struct Found {
  Duration time = {};
  std::string note = {};
};

absl::StatusOr<Found> PlayRecord(const json& record, bool fluid) {
  try {
    ORRERY_ASSIGN_OR_RETURN(const lowering::AstraCollective collective, ReadRecord(record));
    if (fluid) {
      ORRERY_ASSIGN_OR_RETURN(const Duration time, PlayFluid(collective));
      return Found{time};
    }
    const std::string backend = record.at("backend").get<std::string>();
    if (backend != "Aware" && backend != "Unaware") {
      return absl::InvalidArgumentError(
          absl::StrCat("backend '", backend, "' is unknown; wanted Aware or Unaware"));
    }
    const absl::string_view network = backend == "Aware" ? "astra-aware" : "astra-unaware";
    const absl::StatusOr<Duration> time = lowering::PlayAstra(
        collective,
        [&](const simulator::Program& program) { return *MakeNetwork(network, program); });
    if (time.ok()) return Found{*time};
    // Better our own model's figure than none.
    ORRERY_ASSIGN_OR_RETURN(const Duration ours, PlayFluid(collective));
    return Found{ours, absl::StrCat("by --network fluid: ", time.status().message())};
  } catch (const json::exception& error) {
    const std::string what = error.what();  // "[json.exception...] key 'system' not found"
    const size_t end = what.find("] ");
    return absl::InvalidArgumentError(
        absl::StrCat("no record as in tests/data/collectives_astrasim.json: ",
                     end == std::string::npos ? what : what.substr(end + 2)));
  }
}

// One line of CSV.
std::string CaseLine(size_t index, const json& record, bool fluid) {
  const absl::StatusOr<Found> found = PlayRecord(record, fluid);
  const bool measured =
      record.is_object() && record.contains("finish_ns_max") && record["finish_ns_max"].is_number();
  const double expected_ns = measured ? record["finish_ns_max"].get<double>() : 0;
  std::string line = absl::StrCat(index, ",");
  if (measured) {
    const std::optional<int64_t> whole = WholeNumber(record["finish_ns_max"]);
    absl::StrAppend(&line, whole.has_value() ? absl::StrCat(*whole) : absl::StrCat(expected_ns));
  }
  absl::StrAppend(&line, ",");
  if (found.ok()) {
    const int64_t picoseconds = found->time.picoseconds();
    const double nanoseconds = static_cast<double>(picoseconds) / 1000;
    absl::StrAppendFormat(&line, "%.*f", picoseconds % 1000 == 0 ? 0 : 3, nanoseconds);
    absl::StrAppend(&line, ",");
    const double ratio = nanoseconds / expected_ns;
    if (expected_ns > 0 && std::isfinite(ratio)) absl::StrAppendFormat(&line, "%.6f", ratio);
  } else {
    absl::StrAppend(&line, ",");
  }
  std::string note = found.ok() ? found->note : std::string(found.status().message());
  for (char& c : note) c = c == ',' ? ';' : c == '\n' || c == '\r' ? ' ' : c;
  return absl::StrCat(line, ",", note, "\n");
}

}  // namespace
}  // namespace collective_cases_cc

namespace collective_cases_cc {
namespace {

template <typename Model>
std::unique_ptr<simulator::NetworkModel> Make(const simulator::Program& program) {
  return std::make_unique<Model>(program);
}

struct Network {
  absl::string_view name;
  std::unique_ptr<simulator::NetworkModel> (*make)(const simulator::Program& program);
};
constexpr Network kNetworks[] = {{"fluid", Make<simulator::FluidNetwork>},
                                 {"astra-unaware", Make<simulator::AstraUnaware>},
                                 {"astra-aware", Make<simulator::AstraAware>}};

}  // namespace
}  // namespace collective_cases_cc

std::string NetworkNames() {
  std::vector<absl::string_view> names;
  for (const auto& network : collective_cases_cc::kNetworks) names.push_back(network.name);
  return ListWords(names, " or ");
}

absl::StatusOr<std::unique_ptr<simulator::NetworkModel>> MakeNetwork(
    absl::string_view name, const simulator::Program& program) {
  for (const auto& network : collective_cases_cc::kNetworks) {
    if (network.name == name) return network.make(program);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--network '", name, "': wanted ", NetworkNames()));
}

absl::StatusOr<std::string> PlayCollectiveCases(const std::string& path, bool fluid) {
  ORRERY_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  const nlohmann::json whole = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  const bool listed = whole.is_object() && whole.contains("cases") && whole["cases"].is_array();
  if (!whole.is_array() && !listed) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": no JSON list of cases; wanted {\"cases\": [...]}"));
  }
  std::string out = "index,expected_ns,found_ns,ratio,note\n";
  const nlohmann::json& cases = whole.is_array() ? whole : whole["cases"];
  Progress progress("records", cases.size());
  for (size_t i = 0; i < cases.size() && CaughtSignal() == 0; ++i) {
    out += collective_cases_cc::CaseLine(i, cases[i], fluid);
    progress.Done();
  }
  return out;
}

}  // namespace orrery::tools
