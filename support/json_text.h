#ifndef ORRERY_SUPPORT_JSON_TEXT_H_
#define ORRERY_SUPPORT_JSON_TEXT_H_

#include <string>

// What reports, traces and summaries put their JSON together from; they are written piece by piece.

namespace orrery {

/// `text` in quotes, escaped; bytes that are no UTF-8 are replaced.
std::string JsonString(const std::string& text);

/// `value` in 17 digits. Requires a finite one: JSON has no other.
std::string JsonNumber(double value);

}  // namespace orrery

#endif  // ORRERY_SUPPORT_JSON_TEXT_H_
