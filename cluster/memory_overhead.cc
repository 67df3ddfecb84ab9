#include "cluster/memory_overhead.h"

#include <array>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cluster/device.h"
#include "support/status.h"

namespace orrery::cluster {
namespace memory_overhead_cc {
namespace {

constexpr Bytes kMiB(1 << 20);

absl::Status Refuse(absl::string_view item) {
  return absl::InvalidArgumentError(absl::StrCat(
      "'", item,
      "': wanted none, usual, or framework=, communicator= and workspace= with bytes "
      "and fragmentation= with a part from 0 to 1, as in usual,framework=1GiB,fragmentation=0.05"));
}

absl::Status Set(absl::string_view item, MemoryOverhead& overhead) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(item, absl::MaxSplits('=', 1));
  if (parts.first == "fragmentation") {
    double& part = overhead.fragmentation;
    const bool good = absl::SimpleAtod(parts.second, &part) && part >= 0 && part <= 1;
    return good ? absl::OkStatus() : Refuse(item);
  }
  const std::array<std::pair<absl::string_view, Bytes*>, 3> sizes = {
      {{"framework", &overhead.framework},
       {"communicator", &overhead.communicator},
       {"workspace", &overhead.workspace}}};
  for (const auto& [name, size] : sizes) {
    if (parts.first != name) continue;
    const absl::StatusOr<Bytes> bytes = ParseBytes(parts.second);
    if (!bytes.ok()) return Refuse(item);
    *size = *bytes;
    return absl::OkStatus();
  }
  return Refuse(item);
}

}  // namespace
}  // namespace memory_overhead_cc

MemoryOverhead UsualOverhead(absl::string_view device) {
  const absl::StatusOr<Device> found = FindDevice(device);
  if (!found.ok()) return {};
  const bool hopper = found->fp8 > found->fp16;  // or later: the first with fp8
  const bool card = absl::EndsWith(device, "-pcie");
  return {.framework = memory_overhead_cc::kMiB * 512,
          .communicator = memory_overhead_cc::kMiB * (card ? 40 : 240),
          .workspace = memory_overhead_cc::kMiB * 2 * (hopper ? 32 : 4),
          .fragmentation = 0};
}

absl::StatusOr<MemoryOverhead> ParseMemoryOverhead(absl::string_view text,
                                                   absl::string_view device) {
  MemoryOverhead overhead;
  if (text.empty() || text == "none") return overhead;
  bool first = true;
  for (const absl::string_view item : absl::StrSplit(text, ',')) {
    if (std::exchange(first, false) && item == "usual") {
      overhead = UsualOverhead(device);
    } else {
      ORRERY_RETURN_IF_ERROR(memory_overhead_cc::Set(item, overhead));
    }
  }
  return overhead;
}

}  // namespace orrery::cluster
