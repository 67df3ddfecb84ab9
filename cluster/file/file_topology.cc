#include "cluster/file/file_topology.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "cluster/level.h"
#include "cluster/quantity.h"
#include "support/status.h"

namespace orrery::cluster {
namespace file_topology_cc {
namespace {

absl::StatusOr<const TopologyKind*> FindKind(const file::Topology& topology,
                                             const FilePosition& position) {
  for (const TopologyKind* kind : AllTopologies()) {
    if (kind->name == topology.kind()) return kind;
  }
  const auto append_name = [](std::string* out, const TopologyKind* kind) {
    absl::StrAppend(out, kind->name);
  };
  return position.At("kind").Error(absl::StrCat("got '", Quotable(topology.kind()),
                                                "'; wanted one of ",
                                                absl::StrJoin(AllTopologies(), ", ", append_name)));
}

// A number that a kind does not read is more likely a mistake than a wish.
absl::Status CheckParameters(const file::Topology& topology, const TopologyKind& kind,
                             const FilePosition& position) {
  const std::vector<std::string> read = absl::StrSplit(kind.parameters, ' ', absl::SkipEmpty());
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  topology.GetReflection()->ListFields(topology, &fields);
  for (const auto* field : fields) {
    const bool is_read = std::find(read.begin(), read.end(), field->name()) != read.end();
    if (is_read || field->name() == "kind") continue;
    return position.At(field->name())
        .Error(absl::StrCat("is nothing that a ", kind.name, " topology reads; wanted only ",
                            absl::StrJoin(read, ", ")));
  }
  return absl::OkStatus();
}

absl::StatusOr<Level> ReadLevel(const file::Level& level, const FilePosition& position,
                                LevelKind usual) {
  Level read = {.kind = usual, .reduces = level.reduces()};
  if (level.has_size()) read.size = level.size();
  if (level.has_parents()) read.parents = level.parents();
  if (read.size < 1 || read.size > kMaxDevices || read.parents < 1 || read.parents > kMaxDevices) {
    return position.At(read.size < 1 || read.size > kMaxDevices ? "size" : "parents")
        .Error(absl::StrCat("got a size of ", read.size, " and ", read.parents,
                            " parents; wanted 1 to ", kMaxDevices));
  }
  ORRERY_ASSIGN_OR_RETURN(read.speed, ReadSpeed(level.speed(), position.At("speed")));
  if (!level.has_kind()) return read;
  std::vector<absl::string_view> names;
  for (size_t i = 0; i < AllLevelRules().size(); ++i) {
    names.push_back(AllLevelRules()[i].name);
    if (level.kind() != names.back()) continue;
    read.kind = static_cast<LevelKind>(i);
    return read;
  }
  return position.At("kind").Error(absl::StrCat("got '", Quotable(level.kind()),
                                                "'; wanted one of ", absl::StrJoin(names, ", ")));
}

struct NamedSpeed {
  absl::string_view name;
  bool present;
  const file::Speed& speed;
  PathInfo& read;
};

absl::Status ReadNumbers(const file::Topology& topology, const FilePosition& position,
                         TopologyShape& shape) {
  if (topology.has_devices_per_node()) shape.devices_per_node = topology.devices_per_node();
  if (shape.devices_per_node < 1 || shape.devices_per_node > kMaxDevices) {
    return position.At("devices_per_node")
        .Error(absl::StrCat("got ", shape.devices_per_node, "; wanted 1 to ", kMaxDevices));
  }
  for (const NamedSpeed& entry :
       {NamedSpeed{"port", topology.has_port(), topology.port(), shape.port},
        NamedSpeed{"nic", topology.has_nic(), topology.nic(), shape.nic},
        NamedSpeed{"host", topology.has_host(), topology.host(), shape.host},
        NamedSpeed{"spine", topology.has_spine(), topology.spine(), shape.spine},
        NamedSpeed{"bridge", topology.has_bridge(), topology.bridge(), shape.bridge}}) {
    if (!entry.present) continue;
    ORRERY_ASSIGN_OR_RETURN(entry.read, ReadSpeed(entry.speed, position.At(entry.name)));
  }
  shape.nics_per_node = topology.nics_per_node();
  if (topology.has_nics_per_node() && shape.nics_per_node < 1) {
    return position.At("nics_per_node")
        .Error(absl::StrCat("got ", shape.nics_per_node,
                            "; wanted 1 or more, or nothing where each device has its own"));
  }
  if (topology.has_boards_per_node()) shape.boards_per_node = topology.boards_per_node();
  shape.one_way = topology.one_way();
  shape.port_switch_reduces = topology.port_switch_reduces();
  shape.nic_switch_reduces = topology.nic_switch_reduces();
  return absl::OkStatus();
}

// The levels and what they multiply to; more than there may be devices when it would not fit.
absl::StatusOr<int32_t> ReadLevels(const file::Topology& topology, const TopologyKind& kind,
                                   const FilePosition& position, TopologyShape& shape) {
  int64_t product = 1;
  for (int i = 0; i < topology.levels_size(); ++i) {
    ORRERY_ASSIGN_OR_RETURN(
        const Level level,
        ReadLevel(topology.levels(i), position.At("levels", i), kind.usual_level));
    shape.levels.push_back(level);
    product = std::min<int64_t>(product * level.size, int64_t{kMaxDevices} + 1);
  }
  return static_cast<int32_t>(product);
}

}  // namespace
}  // namespace file_topology_cc

absl::StatusOr<PathInfo> ReadSpeed(const file::Speed& speed, const FilePosition& position) {
  if (!speed.has_rate()) return position.Error("got no rate; wanted one such as \"450GB/s\"");
  PathInfo read;
  const auto rate = ParseBandwidth(speed.rate());
  if (!rate.ok()) return position.At("rate").Error(Quotable(rate.status().message()));
  read.rate = *rate;
  if (!speed.has_latency()) return read;
  const auto latency = ParseDuration(speed.latency());
  if (!latency.ok()) return position.At("latency").Error(Quotable(latency.status().message()));
  read.latency = *latency;
  return read;
}

absl::StatusOr<Topology> ReadTopology(const file::Topology& topology, int32_t devices,
                                      const FilePosition& position) {
  ORRERY_ASSIGN_OR_RETURN(const TopologyKind* kind, file_topology_cc::FindKind(topology, position));
  ORRERY_RETURN_IF_ERROR(file_topology_cc::CheckParameters(topology, *kind, position));
  TopologyShape shape;
  ORRERY_RETURN_IF_ERROR(file_topology_cc::ReadNumbers(topology, position, shape));
  ORRERY_ASSIGN_OR_RETURN(shape.devices,
                          file_topology_cc::ReadLevels(topology, *kind, position, shape));
  if (devices > 0) shape.devices = devices;
  if (topology.has_graph()) {
    ORRERY_ASSIGN_OR_RETURN(LinkGraph graph,
                            ReadGraph(topology.graph(), devices, position.At("graph")));
    shape.devices = graph.devices();
    shape.graph = std::make_shared<const LinkGraph>(std::move(graph));
  } else if (devices == 0 && topology.levels_size() == 0) {
    return position.Error("does not say how many devices there are; wanted their count in devices");
  }
  auto read = Topology::Create(*kind, shape);
  if (!read.ok()) return position.Error(read.status());
  return read;
}

}  // namespace orrery::cluster
