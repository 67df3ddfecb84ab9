#ifndef ORRERY_TOOLS_TRACES_NUMBER_LIST_H_
#define ORRERY_TOOLS_TRACES_NUMBER_LIST_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace orrery::tools {

/// The numbers of a text like "0,8-15", from 0 on, in the order in which they stand there, each
/// once. An error that says what is wrong with it, at most a million.
absl::StatusOr<std::vector<int32_t>> ParseNumberList(absl::string_view text);

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_TRACES_NUMBER_LIST_H_
