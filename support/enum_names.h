#ifndef ORRERY_SUPPORT_ENUM_NAMES_H_
#define ORRERY_SUPPORT_ENUM_NAMES_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "support/check.h"
#include "support/word_list.h"

namespace orrery {

/// A value of an enumeration and its name.
template <typename E>
struct EnumName {
  absl::string_view name = {};
  E value = {};
};

/// The names of an enumeration: one table from which values are printed, read and listed.
/// `constexpr EnumNames<Role, 2> kRoles({{"data", Role::kData}, {"state", Role::kState}});`
/// A name or a value that stands there twice, or a row too few or too many, does not compile.
template <typename E, size_t kCount>
class EnumNames {
 public:
  consteval explicit EnumNames(const EnumName<E> (&rows)[kCount]) {
    for (size_t i = 0; i < kCount; ++i) {
      for (size_t j = 0; j < i; ++j) {
        if (rows[i].value == rows[j].value) throw "a value has two names";
        if (rows[i].name == rows[j].name) throw "two values have one name";
      }
      rows_[i] = rows[i];
    }
  }

  /// The rows in the order in which they were written: that of lists and of errors.
  constexpr auto begin() const { return rows_.begin(); }
  constexpr auto end() const { return rows_.end(); }

  /// The name of `value`, which must have one.
  absl::string_view Of(E value) const {
    const auto row = std::ranges::find(rows_, value, &EnumName<E>::value);
    ORRERY_CHECK(row != rows_.end()) << "value " << static_cast<int>(value) << " has no name";
    return row->name;
  }

  /// The value of that name, or nothing.
  std::optional<E> Find(absl::string_view name) const {
    const auto row = std::ranges::find(rows_, name, &EnumName<E>::name);
    return row == rows_.end() ? std::nullopt : std::optional<E>(row->value);
  }

  /// The value of that name; the error lists the names: "'x': wanted cost, ops or layers".
  absl::StatusOr<E> Parse(absl::string_view name) const {
    const std::optional<E> value = Find(name);
    if (value.has_value()) return *value;
    return absl::InvalidArgumentError(absl::StrCat("'", name, "': wanted ", List(" or ")));
  }

  /// All names, "cost, ops or layers", with `last` before the last one.
  std::string List(absl::string_view last) const {
    std::array<absl::string_view, kCount> names;
    std::ranges::transform(rows_, names.begin(), &EnumName<E>::name);
    return ListWords(names, last);
  }

 private:
  std::array<EnumName<E>, kCount> rows_;
};

}  // namespace orrery

#endif  // ORRERY_SUPPORT_ENUM_NAMES_H_
