#ifndef ORRERY_SUPPORT_JSON_NUMBER_H_
#define ORRERY_SUPPORT_JSON_NUMBER_H_

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>

// Numbers of files that others wrote: JSON has one kind of number, and 1e308 is one.

namespace orrery {

/// The whole number that `value` is, written as 8 or as 8.0; nothing where it is no number, has a
/// fraction or does not fit 64 bits. What nlohmann's get<int64_t> makes of those is undefined.
std::optional<int64_t> WholeNumber(const nlohmann::json& value);

}  // namespace orrery

#endif  // ORRERY_SUPPORT_JSON_NUMBER_H_
