#include "cluster/part_file.h"

#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "cluster/cluster_file.h"
#include "cluster/quantity.h"
#include "cluster/rate_figures.h"
#include "support/number_text.h"
#include "support/status.h"

namespace orrery::cluster {
namespace part_file_cc {
namespace {

constexpr size_t kComments = 32;  // the column that they begin in

// In a text of Protobuf, where a single quote needs no escape.
std::string Quoted(absl::string_view text) {
  return absl::StrCat("\"", absl::StrReplaceAll(absl::CEscape(text), {{"\\'", "'"}}), "\"");
}

std::string ValueOf(const RateFigure& figure) {
  if (const auto* const time = std::get_if<Duration*>(&figure.value)) return Quoted(Print(**time));
  if (const auto* const flag = std::get_if<bool*>(&figure.value)) return **flag ? "true" : "false";
  return ShortestText(NumberOf(figure));
}

// Messages within messages, as the paths of the figures have them: "attention.cudnn.fill".
std::string RatesText(KernelRates rates, absl::string_view margin) {
  std::string text =
      absl::StrCat(margin, "rates {\n", margin, "  source: ", Quoted(rates.source), "\n");
  std::vector<std::string> open;
  const auto close_to = [&](size_t depth) {
    for (; open.size() > depth; open.pop_back()) {
      absl::StrAppend(&text, margin, std::string(2 * open.size(), ' '), "}\n");
    }
  };
  for (const RateFigure& figure : FiguresOf(rates)) {
    const std::vector<std::string> names = absl::StrSplit(figure.path, '.');
    size_t same = 0;
    while (same < open.size() && same + 1 < names.size() && open[same] == names[same]) ++same;
    close_to(same);
    while (open.size() + 1 < names.size()) {
      const std::string& name = names[open.size()];
      open.push_back(name);
      absl::StrAppend(&text, margin, std::string(2 * open.size(), ' '), name, " {\n");
    }
    const std::string line = absl::StrCat(margin, std::string(2 * names.size(), ' '), names.back(),
                                          ": ", ValueOf(figure));
    absl::StrAppendFormat(&text, "%-*s  # %s\n", static_cast<int>(kComments), line, figure.meaning);
  }
  close_to(0);
  return absl::StrCat(text, margin, "}\n");
}

}  // namespace
}  // namespace part_file_cc

absl::StatusOr<Device> FindDeviceOrFile(absl::string_view name) {
  if (!IsClusterFile(name)) return FindDevice(name);
  const std::string file(name);
  ORRERY_ASSIGN_OR_RETURN(const ClusterText read, ReadClusterParts(file));
  if (read.kinds.size() == 1) return read.kinds.front();
  return absl::InvalidArgumentError(absl::StrCat(
      file, ": got ", read.kinds.size(),
      " kinds of device; wanted one, as device_kinds { name: \"mine\" like: \"h100-80gb\" }"));
}

absl::StatusOr<CollectiveProfile> FindCollectivesOrFile(absl::string_view name) {
  if (!IsClusterFile(name)) return FindCollectiveProfile(name);
  const std::string file(name);
  ORRERY_ASSIGN_OR_RETURN(const ClusterText read, ReadClusterParts(file));
  if (read.collectives.has_value()) return *read.collectives;
  return absl::InvalidArgumentError(
      absl::StrCat(file,
                   ": got no collectives; wanted such as collectives { name: \"mine\" "
                   "protocols { name: \"simple\" rate: 0.8 start_up: \"20us\" } }"));
}

std::string PrintCollectives(const CollectiveProfile& profile) {
  using part_file_cc::Quoted;
  std::string text = absl::StrCat("# What a communication library adds (docs/collectives.md).\n",
                                  "collectives {\n  name: ", Quoted(profile.name), "\n");
  for (const CollectiveProtocol& protocol : profile.protocols) {
    absl::StrAppend(&text, "  protocols {\n    name: ", Quoted(protocol.name), "\n");
    const auto add = [&](absl::string_view name, const std::string& value) {
      absl::StrAppend(&text, "    ", name, ": ", value, "\n");
    };
    add("rate", ShortestText(protocol.rate));
    add("rate_between_nodes", ShortestText(protocol.rate_between_nodes));
    add("start_up", Quoted(Print(protocol.start_up)));
    add("step_in_node", Quoted(Print(protocol.step_in_node)));
    add("step_between_nodes", Quoted(Print(protocol.step_between_nodes)));
    if (protocol.part_rate > Bandwidth(0)) add("part_rate", Quoted(Print(protocol.part_rate)));
    if (protocol.in_network) add("in_network", "true");
    if (protocol.sends) add("sends", "true");
    absl::StrAppend(&text, "  }\n");
  }
  return absl::StrCat(text, "}\n");
}

std::string PrintDevice(const Device& device) {
  using part_file_cc::Quoted;
  std::string text = absl::StrCat(
      "# A device (docs/clusters.md). With like: \"h100-80gb\" what is left out is as of that "
      "one.\n"
      "device_kinds {\n  name: ",
      Quoted(device.name), "\n");
  const auto add = [&](absl::string_view name, const std::string& value) {
    absl::StrAppend(&text, "  ", name, ": ", value, "\n");
  };
  if (device.fp64 > FlopRate(0)) add("fp64", Quoted(Print(device.fp64)));
  add("fp32", Quoted(Print(device.fp32)));
  add("tf32", Quoted(Print(device.tf32)));
  add("fp16", Quoted(Print(device.fp16)));
  add("fp8", Quoted(Print(device.fp8)));
  add("fp4", Quoted(Print(device.fp4)));
  add("memory", Quoted(Print(device.memory)));
  add("memory_bandwidth", Quoted(Print(device.memory_bandwidth)));
  add("launch_overhead", Quoted(Print(device.launch_overhead)));
  if (device.host.rate > Bandwidth(0)) {
    absl::StrAppend(&text, "  host { rate: ", Quoted(Print(device.host.rate)),
                    " latency: ", Quoted(Print(device.host.latency)), " }\n");
  }
  if (device.host_memory_bandwidth > Bandwidth(0)) {
    add("host_memory_bandwidth", Quoted(Print(device.host_memory_bandwidth)));
  }
  if (device.communication_slowdown != 0) {
    add("communication_slowdown", ShortestText(device.communication_slowdown));
  }
  if (!device.cores.like.empty()) {
    const std::string count =
        device.cores.count > 0 ? absl::StrCat(" count: ", device.cores.count) : "";
    absl::StrAppend(&text, "  cores { like: ", Quoted(device.cores.like), count,
                    " }  # what they have room for; count: how many, if others\n");
  }
  absl::StrAppend(
      &text, part_file_cc::RatesText(device.rates, device.rates.measured ? "  " : "  # "), "}\n");
  return text;
}

}  // namespace orrery::cluster
