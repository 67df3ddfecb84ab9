#ifndef ORRERY_IR_ATTRIBUTES_H_
#define ORRERY_IR_ATTRIBUTES_H_

#include <cstdint>
#include <deque>
#include <initializer_list>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "support/id.h"

namespace orrery::ir {

ORRERY_DEFINE_ID(AttributesId, "attributes");

/// What an attribute holds. Prints as 8, 0.5, "sum", [1, 0], [0.5, 1.0].
using Attribute =
    std::variant<int64_t, double, std::string, std::vector<int64_t>, std::vector<double>>;

/// The attributes of one op, by name, in the order of the names.
class AttributeSet {
 public:
  /// An attribute with its name.
  using Entry = std::pair<std::string, Attribute>;

  AttributeSet() = default;
  AttributeSet(std::initializer_list<Entry> list);

  bool empty() const { return attributes_.empty(); }
  /// Gives an attribute a value, in place of the one that it has.
  void Set(absl::string_view name, Attribute value);
  /// The attribute, or null when there is none of that name.
  const Attribute* Find(absl::string_view name) const;
  /// The attribute as one type; `fallback` when it is absent or of another type.
  int64_t Int(absl::string_view name, int64_t fallback) const;
  /// A whole or real number.
  double Number(absl::string_view name, double fallback) const;
  /// The text of an attribute; `fallback` when it is absent or no text.
  std::string String(absl::string_view name, absl::string_view fallback) const;
  /// The whole numbers of an attribute; none when it is absent or no list of such.
  std::vector<int64_t> Ints(absl::string_view name) const;

  std::span<const Entry> attributes() const { return attributes_; }
  friend bool operator==(const AttributeSet&, const AttributeSet&) = default;
  friend bool operator<(const AttributeSet& a, const AttributeSet& b) {
    return a.attributes_ < b.attributes_;
  }

 private:
  std::vector<Entry> attributes_;  // a handful
};

/// "{axis=0, lr=0.5}"; nothing for the empty set.
std::string ToString(const AttributeSet& attributes);

/// Each distinct set once, under a dense id; id 0 is the empty set. Real numbers are told apart by
/// their bits, not by value: 0.0 and -0.0 are equal but print differently, and NaN equals nothing.
class AttributeTable {
 public:
  AttributeTable() : sets_(1) {}

  /// The id of a set: that of an equal one that is there, or a new one.
  AttributesId Intern(const AttributeSet& set);
  const AttributeSet& operator[](AttributesId id) const {
    return sets_[static_cast<size_t>(id.index())];
  }

 private:
  std::deque<AttributeSet> sets_;
  absl::flat_hash_map<size_t, absl::InlinedVector<AttributesId, 1>> by_hash_;
};

}  // namespace orrery::ir

#endif  // ORRERY_IR_ATTRIBUTES_H_
