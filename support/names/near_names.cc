#include "support/names/near_names.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace orrery {
namespace near_names_cc {
namespace {

constexpr size_t kMostNear = 3;

std::string Plain(absl::string_view name) {
  std::string plain = absl::AsciiStrToLower(name);
  std::ranges::replace(plain, '_', '-');
  return plain;
}

}  // namespace
}  // namespace near_names_cc

size_t Slips(absl::string_view a, absl::string_view b) {
  // A row of the table a letter of `a`; the one two rows back is for letters that were swapped.
  std::vector<size_t> before_last, last(b.size() + 1), row(b.size() + 1);
  std::iota(last.begin(), last.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] =
          std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
    before_last = last;
    last = row;
  }
  return last.back();
}

std::vector<absl::string_view> NearNames(absl::string_view name,
                                         std::span<const absl::string_view> names) {
  constexpr size_t kLettersASlip = 3, kMostSlips = 3;
  // Errors of files may hold names of any length.
  constexpr size_t kLongest = 100;
  if (name.size() < 2 || name.size() > kLongest) return {};
  const std::string wanted = near_names_cc::Plain(name);
  size_t fewest = std::min(kMostSlips, wanted.size() / kLettersASlip) + 1;
  std::vector<absl::string_view> near, begun;
  for (const absl::string_view each : names) {
    const std::string plain = near_names_cc::Plain(each);
    if (absl::StartsWith(plain, wanted)) begun.push_back(each);
    const size_t slips = Slips(wanted, plain);
    if (slips > fewest || (slips == fewest && near.empty())) continue;
    if (slips < fewest) near.clear();
    fewest = slips;
    near.push_back(each);
  }
  if (near.empty()) near = begun;
  if (near.size() > near_names_cc::kMostNear) near.clear();
  return near;
}

std::string Choices(std::span<const absl::string_view> names) {
  const std::span<const absl::string_view> first = names.first(names.size() - 1);
  return absl::StrCat(absl::StrJoin(first, ", "), first.empty() ? "" : " or ", names.back());
}

std::string WantedNames(absl::string_view name, std::span<const absl::string_view> names,
                        absl::string_view lister, absl::string_view all) {
  const std::vector<absl::string_view> near = NearNames(name, names);
  const std::string meant = near.empty() ? "" : absl::StrCat("did you mean ", Choices(near), "?");
  if (!near.empty() && !lister.empty()) return absl::StrCat(meant, " `", lister, "` names all");
  const std::string wanted =
      all.empty() ? absl::StrCat("wanted one of ", absl::StrJoin(names, ", ")) : std::string(all);
  return near.empty() ? wanted : absl::StrCat(wanted, "; ", meant);
}

}  // namespace orrery
