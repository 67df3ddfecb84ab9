#ifndef ORRERY_SIMULATOR_REPORT_JSON_TEXT_H_
#define ORRERY_SIMULATOR_REPORT_JSON_TEXT_H_

#include <string>

// What the report and the trace put their JSON together from; both are written piece by piece.

namespace orrery::simulator {

/// `text` in quotes, escaped; bytes that are no UTF-8 are replaced.
std::string JsonString(const std::string& text);

/// `value` in 17 digits. Requires a finite one: JSON has no other.
std::string JsonNumber(double value);

}  // namespace orrery::simulator

#endif  // ORRERY_SIMULATOR_REPORT_JSON_TEXT_H_
