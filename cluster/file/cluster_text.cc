#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/util/json_util.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "cluster/cluster.pb.h"
#include "cluster/cluster_file.h"
#include "cluster/file/file_position.h"
#include "cluster/file/file_rates.h"
#include "cluster/file/file_topology.h"
#include "cluster/quantity.h"
#include "support/module.h"
#include "support/status.h"

namespace orrery::cluster {
namespace cluster_text_cc {
namespace {

using google::protobuf::TextFormat;

// Keeps the first error; those after it are often its consequence.
class FirstError final : public google::protobuf::io::ErrorCollector {
 public:
  explicit FirstError(const std::string& file) : file_(file) {}
  void AddError(int line, google::protobuf::io::ColumnNumber column,
                const std::string& message) override {
    if (!status_.ok()) return;
    const std::string where = line >= 0 ? absl::StrCat(":", line + 1, ":", column + 1) : "";
    status_ = absl::InvalidArgumentError(absl::StrCat(
        file_, where, ": ", Quotable(message), " Wanted fields as cluster.proto lists them"));
  }
  const absl::Status& status() const { return status_; }

 private:
  std::string file_;
  absl::Status status_;
};

absl::Status ParseText(absl::string_view text, const std::string& name, file::Cluster& message,
                       TextFormat::ParseInfoTree& positions) {
  FirstError error(name);
  TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  parser.WriteLocationsTo(&positions);
  parser.SetRecursionLimit(16);
  if (parser.ParseFromString(std::string(text), &message)) return absl::OkStatus();
  if (!error.status().ok()) return error.status();
  return absl::InvalidArgumentError(
      absl::StrCat(name, ": is no cluster; wanted fields as cluster.proto lists them"));
}

absl::Status ParseJson(absl::string_view text, const std::string& name, file::Cluster& message) {
  const auto status = google::protobuf::util::JsonStringToMessage(std::string(text), &message);
  if (status.ok()) return absl::OkStatus();
  const std::string full = status.message().ToString();
  return absl::InvalidArgumentError(absl::StrCat(name, ": ",
                                                 Quotable(full.substr(0, full.find('\n'))),
                                                 "; wanted fields as cluster.proto lists them"));
}

template <typename Value>
absl::Status Assign(const absl::StatusOr<Value>& parsed, const FilePosition& position,
                    Value& value) {
  if (!parsed.ok()) return position.Error(Quotable(parsed.status().message()));
  value = *parsed;
  return absl::OkStatus();
}

absl::Status ReadPeaks(const file::DeviceKind& kind, const FilePosition& position, Device& device) {
  struct Peak {
    absl::string_view name;
    bool present;
    const std::string& text;
    FlopRate& rate;
  };
  for (const Peak& peak : {Peak{"fp64", kind.has_fp64(), kind.fp64(), device.fp64},
                           Peak{"fp32", kind.has_fp32(), kind.fp32(), device.fp32},
                           Peak{"tf32", kind.has_tf32(), kind.tf32(), device.tf32},
                           Peak{"fp16", kind.has_fp16(), kind.fp16(), device.fp16},
                           Peak{"fp8", kind.has_fp8(), kind.fp8(), device.fp8},
                           Peak{"fp4", kind.has_fp4(), kind.fp4(), device.fp4}}) {
    if (!peak.present) continue;
    ORRERY_RETURN_IF_ERROR(Assign(ParseFlopRate(peak.text), position.At(peak.name), peak.rate));
  }
  // What a device has no units for runs on those of the wider type.
  if (!kind.has_like() && !kind.has_tf32()) device.tf32 = device.fp32;
  if (!kind.has_like() && !kind.has_fp16()) device.fp16 = device.tf32;
  if (!kind.has_like() && !kind.has_fp8()) device.fp8 = device.fp16;
  if (!kind.has_like() && !kind.has_fp4()) device.fp4 = device.fp8;
  return absl::OkStatus();
}

// How many there are, `rates` may say, too: of a file that leaves `cores` out.
absl::Status ReadCores(const file::DeviceKind& kind, const FilePosition& position,
                       DeviceCores& cores) {
  if (!kind.has_cores()) {
    if (kind.rates().has_cores()) cores.count = kind.rates().cores();
    return absl::OkStatus();
  }
  const file::Cores& message = kind.cores();
  const FilePosition at = position.At("cores");
  if (message.has_like()) {
    Device like;
    ORRERY_RETURN_IF_ERROR(Assign(FindDevice(message.like()), at.At("like"), like));
    cores = like.cores;
  }
  constexpr int kMost = 1'000'000;
  if (message.has_count() && (message.count() < 1 || message.count() > kMost)) {
    return at.At("count").Error(absl::StrCat("got ", message.count(), "; wanted 1 to ", kMost));
  }
  cores.count = message.count();
  if (!cores.like.empty()) return absl::OkStatus();
  return at.Error("does not say whose cores they are; wanted such as cores { like: 'a100-80gb' }");
}

absl::StatusOr<Device> ReadKind(const file::DeviceKind& kind, const FilePosition& position) {
  Device device;
  if (kind.has_like())
    ORRERY_RETURN_IF_ERROR(Assign(FindDevice(kind.like()), position.At("like"), device));
  device.name = kind.name();
  if (device.name.empty()) return position.Error("got no name; wanted one for devices to call it");
  ORRERY_RETURN_IF_ERROR(ReadPeaks(kind, position, device));
  if (kind.has_memory()) {
    ORRERY_RETURN_IF_ERROR(Assign(ParseBytes(kind.memory()), position.At("memory"), device.memory));
  }
  if (kind.has_memory_bandwidth()) {
    ORRERY_RETURN_IF_ERROR(Assign(ParseBandwidth(kind.memory_bandwidth()),
                                  position.At("memory_bandwidth"), device.memory_bandwidth));
  }
  if (kind.has_launch_overhead()) {
    ORRERY_RETURN_IF_ERROR(Assign(ParseDuration(kind.launch_overhead()),
                                  position.At("launch_overhead"), device.launch_overhead));
  }
  if (kind.has_host()) {
    ORRERY_ASSIGN_OR_RETURN(device.host, ReadSpeed(kind.host(), position.At("host")));
  }
  if (kind.has_host_memory_bandwidth()) {
    ORRERY_RETURN_IF_ERROR(Assign(ParseBandwidth(kind.host_memory_bandwidth()),
                                  position.At("host_memory_bandwidth"),
                                  device.host_memory_bandwidth));
  }
  if (kind.has_communication_slowdown()) {
    device.communication_slowdown = kind.communication_slowdown();
  }
  if (kind.has_rates()) {
    ORRERY_ASSIGN_OR_RETURN(device.rates,
                            ReadRates(kind.rates(), position.At("rates"), device.rates));
  }
  ORRERY_RETURN_IF_ERROR(ReadCores(kind, position, device.cores));
  if (const absl::Status status = CheckDevice(device); !status.ok()) return position.Error(status);
  return device;
}

// The file's own kinds, each name once.
absl::StatusOr<std::vector<Device>> ReadKinds(const file::Cluster& message,
                                              const FilePosition& position) {
  std::vector<Device> kinds;
  for (int i = 0; i < message.device_kinds_size(); ++i) {
    const FilePosition at = position.At("device_kinds", i);
    ORRERY_ASSIGN_OR_RETURN(const Device device, ReadKind(message.device_kinds(i), at));
    for (const Device& other : kinds) {
      if (other.name != device.name) continue;
      return at.At("name").Error(
          absl::StrCat("got '", Quotable(device.name), "' twice; wanted a name once"));
    }
    kinds.push_back(device);
  }
  return kinds;
}

absl::StatusOr<Device> KindOf(const file::DeviceGroup& group, const FilePosition& position,
                              const std::vector<Device>& own) {
  for (const Device& device : own) {
    if (device.name == group.kind()) return device;
  }
  Device device;
  ORRERY_RETURN_IF_ERROR(Assign(FindDevice(group.kind()), position.At("kind"), device));
  return device;
}

// How many devices the groups count; 0 when that is left to the topology.
absl::StatusOr<int32_t> CountDevices(const file::Cluster& message, const FilePosition& position) {
  if (message.devices_size() == 0) {
    return position.Error(
        "got no devices; wanted such as devices { count: 8 kind: \"h100-80gb\" }");
  }
  if (message.devices_size() == 1 && !message.devices(0).has_count()) return 0;
  int64_t count = 0;
  for (int i = 0; i < message.devices_size(); ++i) {
    count += message.devices(i).count();
    if (message.devices(i).count() >= 1 && count <= kMaxDevices) continue;
    return position.At("devices", i)
        .At("count")
        .Error(absl::StrCat("got ", message.devices(i).count(), " devices, ", count,
                            " in all; wanted 1 or more, and at most ", kMaxDevices, " in all"));
  }
  return static_cast<int32_t>(count);
}

absl::Status AddDevices(const file::Cluster& message, const FilePosition& position,
                        const std::vector<Device>& own, Cluster& cluster) {
  for (int i = 0; i < message.devices_size(); ++i) {
    const FilePosition at = position.At("devices", i);
    ORRERY_ASSIGN_OR_RETURN(const Device device, KindOf(message.devices(i), at, own));
    const int32_t count =
        message.devices(i).has_count() ? message.devices(i).count() : cluster.size();
    cluster.AddDevices(device, count);
  }
  return absl::OkStatus();
}

absl::StatusOr<CollectiveProtocol> ReadProtocol(const file::CollectiveProtocol& message,
                                                const FilePosition& position) {
  CollectiveProtocol protocol = {.name = Quotable(message.name()),
                                 .in_network = message.in_network(),
                                 .sends = message.sends()};
  if (message.has_rate()) protocol.rate = message.rate();
  if (message.has_rate_between_nodes()) protocol.rate_between_nodes = message.rate_between_nodes();
  struct Time {
    absl::string_view name;
    bool present;
    const std::string& text;
    Duration& time;
  };
  for (const Time& time :
       {Time{"start_up", message.has_start_up(), message.start_up(), protocol.start_up},
        Time{"step_in_node", message.has_step_in_node(), message.step_in_node(),
             protocol.step_in_node},
        Time{"step_between_nodes", message.has_step_between_nodes(), message.step_between_nodes(),
             protocol.step_between_nodes}}) {
    if (!time.present) continue;
    ORRERY_RETURN_IF_ERROR(Assign(ParseDuration(time.text), position.At(time.name), time.time));
  }
  if (message.has_part_rate()) {
    ORRERY_RETURN_IF_ERROR(
        Assign(ParseBandwidth(message.part_rate()), position.At("part_rate"), protocol.part_rate));
  }
  return protocol;
}

absl::StatusOr<CollectiveProfile> ReadProfile(const file::CollectiveProfile& message,
                                              const FilePosition& position) {
  CollectiveProfile profile = {.name = Quotable(message.name())};
  if (message.protocols_size() == 0) {
    ORRERY_RETURN_IF_ERROR(
        Assign(FindCollectiveProfile(message.name()), position.At("name"), profile));
  }
  for (int i = 0; i < message.protocols_size(); ++i) {
    ORRERY_ASSIGN_OR_RETURN(CollectiveProtocol protocol,
                            ReadProtocol(message.protocols(i), position.At("protocols", i)));
    profile.protocols.push_back(std::move(protocol));
  }
  const absl::Status status = CheckCollectiveProfile(profile);
  if (!status.ok()) return position.Error(status);
  return profile;
}

absl::StatusOr<Cluster> ReadCluster(const file::Cluster& message, const FilePosition& position,
                                    const ClusterText& parts, const std::string& name) {
  Cluster cluster;
  cluster.name = message.has_name() ? Quotable(message.name()) : name;
  ORRERY_ASSIGN_OR_RETURN(const int32_t devices, CountDevices(message, position));
  if (!message.has_topology()) {
    return position.Error(
        "got no topology; wanted such as topology { kind: \"switch\" port { rate: "
        "\"450GB/s\" latency: \"1us\" } }");
  }
  ORRERY_ASSIGN_OR_RETURN(cluster.topology,
                          ReadTopology(message.topology(), devices, position.At("topology")));
  ORRERY_RETURN_IF_ERROR(AddDevices(message, position, parts.kinds, cluster));
  if (parts.collectives.has_value()) cluster.topology.SetCollectiveProfile(*parts.collectives);
  return cluster;
}

}  // namespace
}  // namespace cluster_text_cc

absl::StatusOr<ClusterText> ReadClusterText(absl::string_view text, ClusterFormat format,
                                            const std::string& name) {
  file::Cluster message;
  google::protobuf::TextFormat::ParseInfoTree positions;
  const bool has_lines = format == ClusterFormat::kText;
  ORRERY_RETURN_IF_ERROR(has_lines ? cluster_text_cc::ParseText(text, name, message, positions)
                                   : cluster_text_cc::ParseJson(text, name, message));
  const FilePosition position(name, file::Cluster::descriptor(), has_lines ? &positions : nullptr);
  ClusterText read;
  ORRERY_ASSIGN_OR_RETURN(read.kinds, cluster_text_cc::ReadKinds(message, position));
  if (message.has_collectives()) {
    ORRERY_ASSIGN_OR_RETURN(
        read.collectives,
        cluster_text_cc::ReadProfile(message.collectives(), position.At("collectives")));
  }
  read.cluster = cluster_text_cc::ReadCluster(message, position, read, name);
  return read;
}

}  // namespace orrery::cluster

ORRERY_MODULE_ENTRY(cluster_file, orrery::cluster::ReadClusterText)
