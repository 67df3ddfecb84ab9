#include "support/string_pool.h"

#include <algorithm>

namespace orrery {
namespace {

constexpr size_t kChunkBytes = 1 << 14;

}  // namespace

StringPool::StringPool() { Intern(""); }

StringPool::StringPool(const StringPool& other) {
  views_.reserve(other.views_.size());
  ids_.reserve(other.views_.size());
  for (const absl::string_view text : other.views_) Intern(text);
}

StringPool& StringPool::operator=(const StringPool& other) {
  if (this != &other) *this = StringPool(other);
  return *this;
}

StringId StringPool::Intern(absl::string_view text) {
  if (const auto found = ids_.find(text); found != ids_.end()) return found->second;
  const absl::string_view stored = Store(text);
  const StringId id(size());
  views_.push_back(stored);
  ids_.emplace(stored, id);
  return id;
}

StringId StringPool::Find(absl::string_view text) const {
  const auto found = ids_.find(text);
  return found == ids_.end() ? StringId() : found->second;
}

absl::string_view StringPool::Store(absl::string_view text) {
  if (chunks_.empty() || chunks_.back().capacity() - chunks_.back().size() < text.size()) {
    chunks_.emplace_back();
    chunks_.back().reserve(std::max(kChunkBytes, text.size()));
  }
  std::string& chunk = chunks_.back();
  const size_t begin = chunk.size();
  chunk.append(text.data(), text.size());
  return absl::string_view(chunk.data() + begin, text.size());
}

}  // namespace orrery
