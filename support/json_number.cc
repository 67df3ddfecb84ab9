#include "support/json_number.h"

#include <cmath>
#include <limits>

#include "nlohmann/json.hpp"

namespace orrery {

std::optional<int64_t> WholeNumber(const nlohmann::json& value) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<uint64_t>();
    if (number > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return std::nullopt;
    return static_cast<int64_t>(number);
  }
  if (value.is_number_integer()) return value.get<int64_t>();
  if (!value.is_number_float()) return std::nullopt;
  const double number = value.get<double>();
  constexpr double kLimit = 9223372036854775808.0;  // 2^63
  if (!(number >= -kLimit && number < kLimit) || number != std::floor(number)) return std::nullopt;
  return static_cast<int64_t>(number);
}

}  // namespace orrery
