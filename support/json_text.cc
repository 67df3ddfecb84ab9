#include "support/json_text.h"

#include <cmath>

#include "nlohmann/json.hpp"
#include "support/check.h"
#include "support/number_text.h"

namespace orrery {

std::string JsonString(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string JsonNumber(double value) {
  ORRERY_CHECK(std::isfinite(value)) << "JSON has no " << value;
  return SeventeenDigits(value);
}

}  // namespace orrery
