#ifndef ORRERY_SEARCH_SPACES_VALUE_NUMBERS_H_
#define ORRERY_SEARCH_SPACES_VALUE_NUMBERS_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "support/check.h"

namespace orrery::search {

/// A row of numbers below 65,536, a byte each as long as they are below 256: of millions of plans
/// one for each axis.
class ValueNumbers {
 public:
  bool empty() const { return size() == 0; }
  size_t size() const { return is_wide_ ? wide_.size() : narrow_.size(); }
  uint32_t operator[](size_t i) const { return is_wide_ ? wide_[i] : narrow_[i]; }
  /// Requires that there is one.
  uint32_t back() const { return (*this)[size() - 1]; }

  /// Adds a number as the `at`-th, behind as many zeros as there are too few before it.
  void Add(size_t at, size_t number) {
    constexpr size_t kMost = std::numeric_limits<uint16_t>::max();
    ORRERY_CHECK(at >= size() && number <= kMost) << number << " at " << at;
    if (number > std::numeric_limits<uint8_t>::max() && !is_wide_) {
      wide_.assign(narrow_.begin(), narrow_.end());
      narrow_ = std::vector<uint8_t>();
      is_wide_ = true;
    }
    if (is_wide_) {
      wide_.resize(at, 0);
      wide_.push_back(static_cast<uint16_t>(number));
    } else {
      narrow_.resize(at, 0);
      narrow_.push_back(static_cast<uint8_t>(number));
    }
  }
  /// Requires that there is one.
  void RemoveLast() { is_wide_ ? wide_.pop_back() : narrow_.pop_back(); }
  /// Keeps no room for more.
  void ShrinkToFit() {
    narrow_.shrink_to_fit();
    wide_.shrink_to_fit();
  }

 private:
  std::vector<uint8_t> narrow_;
  std::vector<uint16_t> wide_;  // in its place
  bool is_wide_ = false;
};

}  // namespace orrery::search

#endif  // ORRERY_SEARCH_SPACES_VALUE_NUMBERS_H_
