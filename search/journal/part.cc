#include "search/journal/part.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace orrery::search {
namespace part_cc {
namespace {

constexpr int64_t kMostParts = 1'000'000;

// Where a round begins: the bits of its number, mixed (the finalizer of MurmurHash3).
uint64_t Mixed(uint64_t round) {
  round = (round ^ (round >> 33)) * 0xff51afd7ed558ccdULL;
  round = (round ^ (round >> 33)) * 0xc4ceb9fe1a85ec53ULL;
  return round ^ (round >> 33);
}

}  // namespace
}  // namespace part_cc

absl::StatusOr<Part> ParsePart(absl::string_view text) {
  const std::vector<absl::string_view> numbers = absl::StrSplit(text, '/');
  Part part;
  if (numbers.size() == 2 && absl::SimpleAtoi(numbers[0], &part.index) &&
      absl::SimpleAtoi(numbers[1], &part.count) && part.index >= 1 && part.index <= part.count &&
      part.count <= part_cc::kMostParts) {
    return part;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("'", text, "': wanted I/N, the I-th of N parts, as in 2/3"));
}

std::string ToString(const Part& part) { return absl::StrCat(part.index, "/", part.count); }

bool Has(const Part& part, size_t candidate) {
  const auto count = static_cast<uint64_t>(part.count);
  return (candidate % count + part_cc::Mixed(candidate / count) % count) % count ==
         static_cast<uint64_t>(part.index - 1);
}

std::vector<size_t> CandidatesOf(const Part& part, size_t candidates) {
  std::vector<size_t> of_part;
  for (size_t i = 0; i < candidates; ++i) {
    if (Has(part, i)) of_part.push_back(i);
  }
  return of_part;
}

}  // namespace orrery::search
