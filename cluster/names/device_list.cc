#include "cluster/names/device_list.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cluster/topology.h"

namespace orrery::cluster {

absl::StatusOr<std::vector<DeviceId>> ParseDevices(const std::string& text, int32_t devices) {
  std::vector<DeviceId> list;
  const std::string all = absl::StrCat("0-", devices - 1);
  for (const absl::string_view item : absl::StrSplit(text.empty() ? all : text, ',')) {
    const std::vector<absl::string_view> parts = absl::StrSplit(item, ':');
    const std::vector<absl::string_view> ends = absl::StrSplit(parts[0], '-');
    int32_t first = 0, last = 0, step = 1;
    const bool strides = parts.size() == 1 || (parts.size() == 2 && ends.size() == 2 &&
                                               absl::SimpleAtoi(parts[1], &step) && step >= 1);
    const bool sound = strides && ends.size() <= 2 && absl::SimpleAtoi(ends[0], &first) &&
                       absl::SimpleAtoi(ends.back(), &last) && first >= 0 && first <= last &&
                       last < kMaxDevices;
    if (!sound) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", item, "' is no device or range; wanted such as 0-7 or 0,8,16"));
    }
    if (last >= devices) {
      return absl::InvalidArgumentError(
          absl::StrCat("device ", last, " is not of the cluster; wanted 0 to ", devices - 1));
    }
    for (int64_t device = first; device <= last; device += step) {
      list.push_back(DeviceId(static_cast<int32_t>(device)));
    }
  }
  return list;
}

}  // namespace orrery::cluster
