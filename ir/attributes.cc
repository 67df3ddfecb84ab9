#include "ir/attributes.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/text.h"

namespace orrery::ir {
namespace {

// The shortest text that reads back as the same double, always with a point, an exponent or a name,
// so that it cannot be read as an integer.
std::string PrintDouble(double value) {
  char buffer[40];
  const auto end = std::to_chars(buffer, buffer + sizeof(buffer), value).ptr;
  std::string text(buffer, end);
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

// A set as bytes: what has the same bytes prints the same. By bits, not by value: 0.0 and -0.0 are
// equal but not the same, and NaN equals nothing.
class KeyWriter {
 public:
  std::string Write(const AttributeSet& set) {
    key_.reserve(64);
    for (const auto& [name, value] : set.attributes()) {
      (*this)(name);
      Number(value.index());
      std::visit(*this, value);
    }
    return std::move(key_);
  }

  void operator()(int64_t value) { Number(value); }
  void operator()(double value) { Number(value); }
  void operator()(const std::string& text) {
    Number(text.size());
    key_ += text;
  }
  template <typename T>
  void operator()(const std::vector<T>& values) {
    Number(values.size());
    for (const T value : values) Number(value);
  }

 private:
  template <typename T>
  void Number(T value) {
    char bytes[sizeof(T)];
    std::memcpy(bytes, &value, sizeof(T));
    key_.append(bytes, sizeof(T));
  }

  std::string key_;
};

}  // namespace

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
                    "=", std::visit(Printer(), value));
  }
  return absl::StrCat(text, "}");
}

AttributesId AttributeTable::Intern(const AttributeSet& set) {
  if (set.empty()) return AttributesId(0);
  const AttributesId next(static_cast<int32_t>(sets_.size()));
  const auto [found, is_new] = ids_.emplace(KeyWriter().Write(set), next);
  if (is_new) sets_.push_back(set);
  return found->second;
}

}  // namespace orrery::ir
