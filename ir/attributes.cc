#include "ir/attributes.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <type_traits>
#include <utility>

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/names.h"
#include "support/number_text.h"

namespace orrery::ir {
namespace attributes_cc {
namespace {

// The shortest text that reads back as the same double, always with a point, an exponent or a name,
// so that it cannot be read as an integer.
std::string PrintDouble(double value) {
  std::string text = ShortestText(value);
  if (std::isfinite(value) && text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

struct Printer {
  std::string operator()(int64_t value) const { return absl::StrCat(value); }
  std::string operator()(double value) const { return PrintDouble(value); }
  std::string operator()(const std::string& value) const { return Quote(value); }
  std::string operator()(const std::vector<int64_t>& values) const {
    return absl::StrCat("[", absl::StrJoin(values, ", "), "]");
  }
  // An empty list of floats is told from an empty list of integers by its mark.
  std::string operator()(const std::vector<double>& values) const {
    if (values.empty()) return "[f]";
    return absl::StrCat("[",
                        absl::StrJoin(values, ", ",
                                      [](std::string* out, double value) {
                                        absl::StrAppend(out, PrintDouble(value));
                                      }),
                        "]");
  }
};

// What two sets of one hash may be equal by: numbers by their bits.
struct BitsOf {
  uint64_t operator()(int64_t value) const { return static_cast<uint64_t>(value); }
  uint64_t operator()(double value) const { return std::bit_cast<uint64_t>(value); }
};

struct Hashed {
  const AttributeSet& set;

  template <typename H>
  friend H AbslHashValue(H h, const Hashed& hashed) {
    for (const auto& [name, value] : hashed.set.attributes()) {
      h = H::combine(std::move(h), name, value.index());
      h = std::visit([&](const auto& held) { return Add(std::move(h), held); }, value);
    }
    return h;
  }

 private:
  template <typename H>
  static H Add(H h, const std::string& text) {
    return H::combine(std::move(h), text);
  }
  template <typename H, typename T>
  static H Add(H h, const std::vector<T>& values) {
    for (const T value : values) h = Add(std::move(h), value);
    return H::combine(std::move(h), values.size());
  }
  template <typename H, typename T>
  static H Add(H h, T value) {
    return H::combine(std::move(h), BitsOf()(value));
  }
};

struct Same {
  bool operator()(const std::string& a, const std::string& b) const { return a == b; }
  template <typename T>
  bool operator()(const std::vector<T>& a, const std::vector<T>& b) const {
    return std::ranges::equal(a, b, {}, BitsOf(), BitsOf());
  }
  template <typename T>
  bool operator()(T a, T b) const {
    return BitsOf()(a) == BitsOf()(b);
  }
};

bool AreSame(const AttributeSet& a, const AttributeSet& b) {
  return std::ranges::equal(a.attributes(), b.attributes(), [](const auto& one, const auto& other) {
    if (one.first != other.first || one.second.index() != other.second.index()) return false;
    return std::visit(
        [&](const auto& held) {
          return Same()(held, std::get<std::decay_t<decltype(held)>>(other.second));
        },
        one.second);
  });
}

}  // namespace
}  // namespace attributes_cc

AttributeSet::AttributeSet(std::initializer_list<Entry> list) {
  attributes_.reserve(list.size());
  for (const auto& [name, value] : list) Set(name, value);
}

void AttributeSet::Set(absl::string_view name, Attribute value) {
  auto at = attributes_.begin();
  while (at != attributes_.end() && at->first < name) ++at;
  if (at != attributes_.end() && at->first == name) {
    at->second = std::move(value);
  } else {
    attributes_.emplace(at, std::string(name), std::move(value));
  }
}

const Attribute* AttributeSet::Find(absl::string_view name) const {
  for (const auto& [found, value] : attributes_) {
    if (found == name) return &value;
  }
  return nullptr;
}

int64_t AttributeSet::Int(absl::string_view name, int64_t fallback) const {
  const Attribute* attribute = Find(name);
  const int64_t* value = attribute == nullptr ? nullptr : std::get_if<int64_t>(attribute);
  return value == nullptr ? fallback : *value;
}

double AttributeSet::Number(absl::string_view name, double fallback) const {
  const Attribute* attribute = Find(name);
  if (attribute == nullptr) return fallback;
  if (const auto* whole = std::get_if<int64_t>(attribute)) return static_cast<double>(*whole);
  const auto* real = std::get_if<double>(attribute);
  return real == nullptr ? fallback : *real;
}

std::string AttributeSet::String(absl::string_view name, absl::string_view fallback) const {
  const Attribute* attribute = Find(name);
  const std::string* value = attribute == nullptr ? nullptr : std::get_if<std::string>(attribute);
  return value == nullptr ? std::string(fallback) : *value;
}

std::vector<int64_t> AttributeSet::Ints(absl::string_view name) const {
  const Attribute* attribute = Find(name);
  const auto* value = attribute == nullptr ? nullptr : std::get_if<std::vector<int64_t>>(attribute);
  return value == nullptr ? std::vector<int64_t>() : *value;
}

std::string ToString(const AttributeSet& attributes) {
  if (attributes.empty()) return "";
  std::string text = "{";
  for (const auto& [name, value] : attributes.attributes()) {
    absl::StrAppend(&text, text.size() == 1 ? "" : ", ", IsPlainName(name) ? name : Quote(name),
                    "=", std::visit(attributes_cc::Printer(), value));
  }
  return absl::StrCat(text, "}");
}

AttributesId AttributeTable::Intern(const AttributeSet& set) {
  if (set.empty()) return AttributesId(0);
  auto& ids = by_hash_[absl::HashOf(attributes_cc::Hashed{set})];
  for (const AttributesId id : ids) {
    if (attributes_cc::AreSame((*this)[id], set)) return id;
  }
  const AttributesId id(static_cast<int32_t>(sets_.size()));
  sets_.push_back(set);
  ids.push_back(id);
  return id;
}

}  // namespace orrery::ir
