#include "transforms/pass/pass.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace orrery::transforms {

absl::StatusOr<int64_t> PositiveOption(const PassOptions& options, absl::string_view name) {
  const auto found = options.find(std::string(name));
  int64_t value = 0;
  if (found != options.end() && absl::SimpleAtoi(found->second, &value) && value >= 1) return value;
  return absl::InvalidArgumentError(absl::StrCat("option ", name, " is '",
                                                 found == options.end() ? "" : found->second,
                                                 "'; wanted a whole number of at least 1"));
}

}  // namespace orrery::transforms
