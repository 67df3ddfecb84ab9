#include "simulator/traces/pickle.h"

#include <limits>
#include <string>

#include "support/check.h"
#include "support/printable.h"

namespace orrery::simulator {
namespace pickle_cc {
namespace {

// Readers take items of a list from their stack at once; more than so many are too many for some.
constexpr int32_t kMostItems = 1000;

}  // namespace
}  // namespace pickle_cc

Pickle::Pickle(std::ostream& out) : out_(out) { Write({"\x80\x02", 2}); }

void Pickle::End() { Write("."); }

void Pickle::Number(int64_t value) {
  if (value >= std::numeric_limits<int32_t>::min() &&
      value <= std::numeric_limits<int32_t>::max()) {
    Write("J");
    WriteLittle(static_cast<uint64_t>(value), 4);
    return;
  }
  Write({"\x8a\x08", 2});
  WriteLittle(static_cast<uint64_t>(value), 8);
}

void Pickle::Text(absl::string_view text) {
  const std::string clean = OneLine(text);
  Write("X");
  WriteLittle(clean.size(), 4);
  Write(clean);
}

void Pickle::NextItem() {
  ORRERY_CHECK(depth_ > 0 && depth_ < kMostDepth) << depth_;
  if (items_[depth_]++ < pickle_cc::kMostItems) return;
  Write("e(");
  items_[depth_] = 1;
}

void Pickle::Entry(absl::string_view key, int64_t value) {
  Text(key);
  Number(value);
}

void Pickle::Entry(absl::string_view key, absl::string_view value) {
  Text(key);
  Text(value);
}

void Pickle::Write(absl::string_view bytes) {
  out_.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

void Pickle::WriteLittle(uint64_t value, int bytes) {
  char little[8];
  for (int i = 0; i < bytes; ++i) little[i] = static_cast<char>(value >> (8 * i) & 0xff);
  Write({little, static_cast<size_t>(bytes)});
}

}  // namespace orrery::simulator
