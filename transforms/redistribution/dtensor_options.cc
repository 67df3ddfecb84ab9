#include <cmath>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "transforms/redistribution/dtensor.h"

namespace orrery::transforms::redistribution {
namespace dtensor_options_cc {
namespace {

struct Option {
  absl::string_view name, value;
};

absl::Status Wrong(const Option& option, absl::string_view wanted) {
  return absl::InvalidArgumentError(
      absl::StrCat("dtensor: ", option.name, " is '", option.value, "'; wanted ", wanted));
}

absl::Status ReadNumber(const Option& option, double& number) {
  double read = 0;
  if (!absl::SimpleAtod(option.value, &read) || !std::isfinite(read) || read < 0) {
    return Wrong(option, "a number that is not negative, as in all_to_all_penalty=1");
  }
  number = read;
  return absl::OkStatus();
}

absl::Status Read(const Option& option, DtensorOptions& options) {
  if (option.name == "devices_per_host") {
    if (absl::SimpleAtoi(option.value, &options.devices_per_host) && options.devices_per_host > 0) {
      return absl::OkStatus();
    }
    return Wrong(option, "a whole number of at least 1, as in devices_per_host=8");
  }
  if (option.name == "all_to_all_penalty") return ReadNumber(option, options.all_to_all_penalty);
  if (option.name == "partial_cost") return ReadNumber(option, options.partial_cost);
  if (option.name == "memory_bandwidth") return ReadNumber(option, options.memory_bandwidth);
  if (option.name == "merge") {
    options.merge = true;
    return option.value.empty() ? absl::OkStatus() : Wrong(option, "no value");
  }
  if (option.name == "replica_consistent") {
    options.consistency =
        option.value.empty() ? ReplicaConsistency::kOneAllReduce : ReplicaConsistency::kReducedOnce;
    const bool known = option.value.empty() || option.value == "reduced-once";
    return known ? absl::OkStatus() : Wrong(option, "no value, or reduced-once");
  }
  return absl::InvalidArgumentError(
      absl::StrCat("dtensor: no option '", option.name,
                   "'; wanted devices_per_host, all_to_all_penalty, merge, ",
                   "partial_cost, memory_bandwidth or replica_consistent"));
}

}  // namespace
}  // namespace dtensor_options_cc

absl::StatusOr<DtensorOptions> ParseDtensorOptions(absl::string_view text) {
  DtensorOptions options;
  absl::flat_hash_set<absl::string_view> seen;
  if (text.empty()) return options;
  const std::vector<absl::string_view> parts = absl::StrSplit(text, ',');
  for (const absl::string_view part : parts) {
    const size_t equals = part.find('=');
    const dtensor_options_cc::Option option = {
        .name = part.substr(0, equals),
        .value = equals == absl::string_view::npos ? "" : part.substr(equals + 1)};
    if (!seen.insert(option.name).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("dtensor: ", option.name, " is given twice; wanted each option once"));
    }
    if (auto status = dtensor_options_cc::Read(option, options); !status.ok()) return status;
  }
  return options;
}

}  // namespace orrery::transforms::redistribution
