#ifndef ORRERY_SUPPORT_ID_TABLE_H_
#define ORRERY_SUPPORT_ID_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "support/check.h"

namespace orrery {

/// An array that only an id of type `IdType` can index: the side table of a thing that lives
/// elsewhere.
template <typename IdType, typename T>
class IdTable {
 public:
  IdTable() = default;
  explicit IdTable(int32_t size, const T& value = T()) : rows_(static_cast<size_t>(size), value) {}

  int32_t size() const { return static_cast<int32_t>(rows_.size()); }
  bool empty() const { return rows_.empty(); }
  /// Makes it that many rows; new ones hold `value`.
  void resize(int32_t size, const T& value = T()) {
    rows_.resize(static_cast<size_t>(size), value);
  }
  /// Makes room for that many rows in all, to save reallocation.
  void reserve(int32_t size) { rows_.reserve(static_cast<size_t>(size)); }

  typename std::vector<T>::reference operator[](IdType id) {
    ORRERY_DCHECK(id.valid() && id.index() < size()) << id;
    return rows_[static_cast<size_t>(id.index())];
  }
  typename std::vector<T>::const_reference operator[](IdType id) const {
    ORRERY_DCHECK(id.valid() && id.index() < size()) << id;
    return rows_[static_cast<size_t>(id.index())];
  }

  /// Appends a row and returns its id.
  IdType push_back(T value) {
    rows_.push_back(std::move(value));
    return IdType(size() - 1);
  }

  /// All rows, by index of their ids.
  const std::vector<T>& rows() const { return rows_; }
  std::vector<T>& rows() { return rows_; }

 private:
  std::vector<T> rows_;
};

}  // namespace orrery

#endif  // ORRERY_SUPPORT_ID_TABLE_H_
