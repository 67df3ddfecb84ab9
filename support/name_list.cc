#include "support/name_list.h"

#include <algorithm>

namespace orrery {
namespace {

constexpr size_t kChunkBytes = 1 << 14;

}  // namespace

absl::string_view TextArena::Store(absl::string_view text) {
  if (text.empty()) return {};
  if (chunks_.empty() || chunks_.back().capacity() - chunks_.back().size() < text.size()) {
    chunks_.emplace_back();
    chunks_.back().reserve(std::max(kChunkBytes, text.size()));
  }
  std::string& chunk = chunks_.back();
  const size_t begin = chunk.size();
  chunk.append(text.data(), text.size());
  return absl::string_view(chunk.data() + begin, text.size());
}

NameList::NameList(const NameList& other) {
  names_.reserve(other.names_.size());
  for (const absl::string_view name : other.names_) push_back(name);
}

NameList& NameList::operator=(const NameList& other) {
  if (this != &other) *this = NameList(other);
  return *this;
}

}  // namespace orrery
