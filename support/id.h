#ifndef ORRERY_SUPPORT_ID_H_
#define ORRERY_SUPPORT_ID_H_

#include <compare>
#include <cstdint>
#include <limits>
#include <ostream>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace orrery {

/// A typed index of four bytes: it names a row of a table and has no arithmetic. `Tag` has a
/// `static constexpr const char* kName`, which is how the id prints ("op3").
template <typename Tag>
class Id {
 public:
  constexpr Id() = default;
  constexpr explicit Id(int32_t index) : index_(index) {}

  /// The row, counted from 0; -1 for the id that names nothing.
  constexpr int32_t index() const { return index_; }
  /// Whether the id names a row at all.
  constexpr bool valid() const { return index_ >= 0; }

  friend constexpr auto operator<=>(Id, Id) = default;

  template <typename H>
  friend H AbslHashValue(H h, Id id) {
    return H::combine(std::move(h), id.index_);
  }
  friend std::string ToString(Id id) {
    return id.valid() ? absl::StrCat(Tag::kName, id.index_) : absl::StrCat(Tag::kName, "<none>");
  }
  friend std::ostream& operator<<(std::ostream& out, Id id) { return out << ToString(id); }

 private:
  int32_t index_ = -1;
};

}  // namespace orrery

/// Declares the id type `NAME`, printed as `text` followed by its number.
#define ORRERY_DEFINE_ID(NAME, text)           \
  struct NAME##Tag {                           \
    static constexpr const char* kName = text; \
  };                                           \
  using NAME = ::orrery::Id<NAME##Tag>

#endif  // ORRERY_SUPPORT_ID_H_
