#include <mutex>
#include <set>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "cluster/file/file_topology.h"
#include "cluster/quantity.h"
#include "support/status.h"

namespace orrery::cluster {
namespace file_graph_cc {
namespace {

using VertexNames = absl::flat_hash_map<std::string, VertexId>;

// Devices first, then switches, by the names that links call them.
class GraphReader {
 public:
  GraphReader(const file::Graph& graph, const FilePosition& position)
      : graph_(graph), position_(position) {}

  absl::StatusOr<LinkGraph> Read(int32_t devices);

 private:
  absl::Status AddVertex(const std::string& name, const FilePosition& position);
  absl::Status AddDevices(int32_t devices);
  absl::Status AddSwitches();
  absl::Status AddLink(const file::Link& link, const FilePosition& position);
  absl::StatusOr<std::vector<VertexId>> Ends(const file::Link& link,
                                             const FilePosition& position) const;
  absl::Status AddShared(const std::vector<VertexId>& ends, const Link& row,
                         const FilePosition& position);
  absl::Status Append(const Link& link, const FilePosition& position);

  const file::Graph& graph_;
  const FilePosition& position_;
  VertexNames vertices_;
  GraphParts parts_;
};

absl::Status GraphReader::AddVertex(const std::string& name, const FilePosition& position) {
  if (name.empty()) return position.Error("got no name; wanted one for links to call it");
  const VertexId vertex(static_cast<int32_t>(parts_.names.size()));
  if (!vertices_.emplace(name, vertex).second) {
    return position.Error(absl::StrCat("got '", Quotable(name), "' twice; wanted a name once"));
  }
  parts_.names.push_back(name);
  return absl::OkStatus();
}

absl::Status GraphReader::AddDevices(int32_t devices) {
  if (graph_.devices_size() > 0 && devices > 0 && graph_.devices_size() != devices) {
    return position_.At("devices").Error(absl::StrCat(
        "got ", graph_.devices_size(), " names; wanted one for each of ", devices, " devices"));
  }
  parts_.devices = graph_.devices_size() > 0 ? graph_.devices_size() : devices;
  if (parts_.devices < 1 || parts_.devices > kMaxDevices) {
    return position_.At("devices").Error(
        absl::StrCat("got ", parts_.devices, " devices; wanted 1 to ", kMaxDevices));
  }
  for (int32_t device = 0; device < parts_.devices; ++device) {
    const bool named = graph_.devices_size() > 0;
    ORRERY_RETURN_IF_ERROR(AddVertex(named ? graph_.devices(device) : ToString(DeviceId(device)),
                                     position_.At("devices", named ? device : -1)));
  }
  return absl::OkStatus();
}

absl::Status GraphReader::AddSwitches() {
  for (int i = 0; i < graph_.switches_size(); ++i) {
    const VertexId vertex(static_cast<int32_t>(parts_.names.size()));
    ORRERY_RETURN_IF_ERROR(AddVertex(graph_.switches(i).name(), position_.At("switches", i)));
    if (graph_.switches(i).reduces()) parts_.reducing.push_back(vertex);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<VertexId>> GraphReader::Ends(const file::Link& link,
                                                        const FilePosition& position) const {
  if (link.between_size() < 2 || (link.between_size() > 2 && !link.shared())) {
    return position.At("between").Error(absl::StrCat(
        "got ", link.between_size(), " names; wanted two, or more of a link that is shared"));
  }
  std::vector<VertexId> ends;
  for (int i = 0; i < link.between_size(); ++i) {
    const auto vertex = vertices_.find(link.between(i));
    if (vertex == vertices_.end()) {
      return position.At("between", i)
          .Error(absl::StrCat("got '", Quotable(link.between(i)),
                              "'; wanted a device or a switch, as ",
                              Quotable(parts_.names.front())));
    }
    ends.push_back(vertex->second);
  }
  if (ends[0] == ends[1]) {
    return position.At("between").Error(
        absl::StrCat("got '", Quotable(link.between(0)), "' at both ends; wanted two vertices"));
  }
  return ends;
}

absl::Status GraphReader::Append(const Link& link, const FilePosition& position) {
  if (static_cast<int64_t>(parts_.links.size()) >= LinkGraph::kMaxLinks) {
    return position.Error(
        absl::StrCat("got more links; wanted at most ", LinkGraph::kMaxLinks, " in all"));
  }
  parts_.links.push_back(link);
  return absl::OkStatus();
}

// All send into one vertex and receive from another; the link between these two is what they share.
absl::Status GraphReader::AddShared(const std::vector<VertexId>& ends, const Link& row,
                                    const FilePosition& position) {
  std::string name;
  for (const VertexId end : ends) {
    absl::StrAppend(&name, name.empty() ? "" : "-", parts_.names[static_cast<size_t>(end.index())]);
  }
  const VertexId in(static_cast<int32_t>(parts_.names.size()));
  const VertexId out(in.index() + 1);
  parts_.names.push_back(absl::StrCat("into ", name, " #", in.index()));
  parts_.names.push_back(absl::StrCat("out of ", name, " #", in.index()));
  ORRERY_RETURN_IF_ERROR(Append({in, out, row.speed, row.kind}, position));
  for (const VertexId end : ends) {
    ORRERY_RETURN_IF_ERROR(Append({end, in, {row.speed.rate}, row.kind}, position));
    ORRERY_RETURN_IF_ERROR(Append({out, end, {row.speed.rate}, row.kind}, position));
  }
  return absl::OkStatus();
}

absl::Status GraphReader::AddLink(const file::Link& link, const FilePosition& position) {
  ORRERY_ASSIGN_OR_RETURN(const std::vector<VertexId> ends, Ends(link, position));
  file::Speed speed;
  if (link.has_rate()) speed.set_rate(link.rate());
  if (link.has_latency()) speed.set_latency(link.latency());
  Link row = {.from = ends[0], .to = ends[1]};
  ORRERY_ASSIGN_OR_RETURN(row.speed, ReadSpeed(speed, position));
  row.kind = KeepName(link.has_kind() ? Quotable(link.kind()) : "link");
  Link back = {.from = row.to, .to = row.from, .speed = row.speed, .kind = row.kind};
  if (link.has_back_rate()) {
    const auto rate = ParseBandwidth(link.back_rate());
    if (!rate.ok()) return position.At("back_rate").Error(rate.status());
    back.speed.rate = *rate;
  }
  if (link.has_back_rate() && (link.one_way() || link.shared())) {
    return position.At("back_rate")
        .Error(
            "got a rate for a way back; wanted none of a link that is "
            "one_way or shared");
  }
  const int32_t count = link.has_count() ? link.count() : 1;
  if (count < 1)
    return position.At("count").Error(absl::StrCat("got ", count, "; wanted 1 or more"));
  for (int32_t i = 0; i < count; ++i) {
    if (link.shared()) {
      ORRERY_RETURN_IF_ERROR(AddShared(ends, row, position));
      continue;
    }
    ORRERY_RETURN_IF_ERROR(Append(row, position));
    if (!link.one_way()) ORRERY_RETURN_IF_ERROR(Append(back, position));
  }
  return absl::OkStatus();
}

absl::StatusOr<LinkGraph> GraphReader::Read(int32_t devices) {
  ORRERY_RETURN_IF_ERROR(AddDevices(devices));
  ORRERY_RETURN_IF_ERROR(AddSwitches());
  for (int i = 0; i < graph_.links_size(); ++i) {
    ORRERY_RETURN_IF_ERROR(AddLink(graph_.links(i), position_.At("links", i)));
  }
  parts_.switches = static_cast<int32_t>(parts_.names.size()) - parts_.devices;
  absl::StatusOr<LinkGraph> links = LinkGraph::Create(std::move(parts_));
  if (!links.ok()) return position_.Error(Quotable(links.status().message()));
  return links;
}

}  // namespace
}  // namespace file_graph_cc

absl::string_view KeepName(const std::string& text) {
  static std::mutex& mutex = *new std::mutex;
  static std::set<std::string>& names = *new std::set<std::string>;
  const std::lock_guard<std::mutex> lock(mutex);
  return *names.insert(text).first;
}

absl::StatusOr<LinkGraph> ReadGraph(const file::Graph& graph, int32_t devices,
                                    const FilePosition& position) {
  return file_graph_cc::GraphReader(graph, position).Read(devices);
}

}  // namespace orrery::cluster
