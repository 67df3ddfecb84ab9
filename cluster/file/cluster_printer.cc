#include <google/protobuf/text_format.h>
#include <google/protobuf/util/json_util.h>

#include "absl/strings/str_split.h"
#include "cluster/cluster.pb.h"
#include "cluster/cluster_file.h"
#include "cluster/file/file_rates.h"
#include "cluster/level.h"
#include "cluster/link_graph.h"
#include "cluster/quantity.h"
#include "support/check.h"

namespace orrery::cluster {
namespace cluster_printer_cc {
namespace {

void Fill(const PathInfo& speed, file::Speed& message) {
  message.set_rate(Print(speed.rate));
  if (speed.latency > Duration(0)) message.set_latency(Print(speed.latency));
}

// In full, so that a file stays true when the built-in list changes its mind.
void Fill(const Device& device, file::DeviceKind& message) {
  message.set_name(device.name);
  if (device.fp64 > FlopRate(0)) message.set_fp64(Print(device.fp64));
  message.set_fp32(Print(device.fp32));
  message.set_tf32(Print(device.tf32));
  message.set_fp16(Print(device.fp16));
  message.set_fp8(Print(device.fp8));
  if (device.fp4 != device.fp8) message.set_fp4(Print(device.fp4));
  message.set_memory(Print(device.memory));
  message.set_memory_bandwidth(Print(device.memory_bandwidth));
  message.set_launch_overhead(Print(device.launch_overhead));
  if (device.host.rate > Bandwidth(0)) Fill(device.host, *message.mutable_host());
  if (device.host_memory_bandwidth > Bandwidth(0)) {
    message.set_host_memory_bandwidth(Print(device.host_memory_bandwidth));
  }
  if (device.communication_slowdown != 0) {
    message.set_communication_slowdown(device.communication_slowdown);
  }
  if (!device.cores.like.empty()) {
    message.mutable_cores()->set_like(device.cores.like);
    if (device.cores.count > 0) message.mutable_cores()->set_count(device.cores.count);
  }
  if (device.rates.measured) FillRates(device.rates, *message.mutable_rates());
}

void FillDevices(const Cluster& cluster, file::Cluster& message) {
  for (int32_t kind = 0; kind < cluster.kind_count(); ++kind) {
    Fill(cluster.kind(kind), *message.add_device_kinds());
  }
  int32_t before = -1;
  for (int32_t i = 0; i < cluster.size(); ++i) {
    const int32_t kind = cluster.kind_of(DeviceId(i));
    if (kind != before) message.add_devices()->set_kind(cluster.kind(kind).name);
    file::DeviceGroup& group = *message.mutable_devices(message.devices_size() - 1);
    group.set_count(group.count() + 1);
    before = kind;
  }
}

void Fill(const LinkGraph& graph, file::Graph& message) {
  for (int32_t i = 0; i < graph.vertex_count(); ++i) {
    const VertexId vertex(i);
    if (i < graph.devices()) {
      message.add_devices(graph.VertexName(vertex));
      continue;
    }
    file::Switch& hub = *message.add_switches();
    hub.set_name(graph.VertexName(vertex));
    if (graph.reduces(vertex)) hub.set_reduces(true);
  }
  for (const Link& link : graph.links().rows()) {
    file::Link& row = *message.add_links();
    row.add_between(graph.VertexName(link.from));
    row.add_between(graph.VertexName(link.to));
    row.set_rate(Print(link.speed.rate));
    if (link.speed.latency > Duration(0)) row.set_latency(Print(link.speed.latency));
    row.set_one_way(true);
    row.set_kind(std::string(link.kind));
  }
}

void Fill(const Level& level, file::Level& message) {
  message.set_size(level.size);
  message.set_kind(std::string(RuleOf(level.kind).name));
  // A level of one member may have no speed; the reader wants one all the same.
  Fill(level.speed.rate > Bandwidth(0) ? level.speed : PathInfo{.rate = Bandwidth(1)},
       *message.mutable_speed());
  if (level.parents != 1) message.set_parents(level.parents);
  if (level.reduces) message.set_reduces(true);
}

// Only what the kind reads: the reader refuses the rest.
void Fill(const Topology& topology, file::Topology& message) {
  const TopologyShape& shape = topology.shape();
  message.set_kind(std::string(topology.kind().name));
  for (const absl::string_view name :
       absl::StrSplit(topology.kind().parameters, ' ', absl::SkipEmpty())) {
    if (name == "devices_per_node") message.set_devices_per_node(shape.devices_per_node);
    if (name == "port" && shape.port.rate > Bandwidth(0)) Fill(shape.port, *message.mutable_port());
    if (name == "nic" && shape.nic.rate > Bandwidth(0)) Fill(shape.nic, *message.mutable_nic());
    if (name == "host" && shape.host.rate > Bandwidth(0)) Fill(shape.host, *message.mutable_host());
    if (name == "spine" && shape.spine.rate > Bandwidth(0)) {
      Fill(shape.spine, *message.mutable_spine());
    }
    if (name == "nics_per_node" && shape.nics_per_node > 0) {
      message.set_nics_per_node(shape.nics_per_node);
    }
    if (name == "boards_per_node" && shape.boards_per_node > 1) {
      message.set_boards_per_node(shape.boards_per_node);
    }
    if (name == "bridge" && shape.bridge.rate > Bandwidth(0)) {
      Fill(shape.bridge, *message.mutable_bridge());
    }
    if (name == "one_way" && shape.one_way) message.set_one_way(true);
    if (name == "port_switch_reduces" && shape.port_switch_reduces) {
      message.set_port_switch_reduces(true);
    }
    if (name == "nic_switch_reduces" && shape.nic_switch_reduces) {
      message.set_nic_switch_reduces(true);
    }
    if (name == "graph") Fill(*shape.graph, *message.mutable_graph());
    if (name != "levels") continue;
    for (const Level& level : shape.levels) Fill(level, *message.add_levels());
  }
}

// In full, as devices are.
void Fill(const CollectiveProfile& profile, file::CollectiveProfile& message) {
  message.set_name(profile.name);
  for (const CollectiveProtocol& protocol : profile.protocols) {
    file::CollectiveProtocol& row = *message.add_protocols();
    row.set_name(protocol.name);
    if (protocol.rate != 1) row.set_rate(protocol.rate);
    if (protocol.rate_between_nodes != 1) {
      row.set_rate_between_nodes(protocol.rate_between_nodes);
    }
    if (protocol.start_up > Duration(0)) row.set_start_up(Print(protocol.start_up));
    if (protocol.step_in_node > Duration(0)) row.set_step_in_node(Print(protocol.step_in_node));
    if (protocol.step_between_nodes > Duration(0)) {
      row.set_step_between_nodes(Print(protocol.step_between_nodes));
    }
    if (protocol.part_rate > Bandwidth(0)) row.set_part_rate(Print(protocol.part_rate));
    if (protocol.in_network) row.set_in_network(true);
    if (protocol.sends) row.set_sends(true);
  }
}

}  // namespace
}  // namespace cluster_printer_cc

std::string PrintCluster(const Cluster& cluster, ClusterFormat format) {
  file::Cluster message;
  message.set_name(cluster.name);
  cluster_printer_cc::FillDevices(cluster, message);
  cluster_printer_cc::Fill(cluster.topology, *message.mutable_topology());
  const CollectiveProfile& profile = cluster.topology.collective_profile();
  if (!profile.ideal()) cluster_printer_cc::Fill(profile, *message.mutable_collectives());
  std::string text;
  if (format == ClusterFormat::kText) {
    ORRERY_CHECK(google::protobuf::TextFormat::PrintToString(message, &text)) << cluster.name;
    return text;
  }
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.preserve_proto_field_names = true;
  ORRERY_CHECK(google::protobuf::util::MessageToJsonString(message, &text, options).ok())
      << cluster.name;
  return text;
}

}  // namespace orrery::cluster
