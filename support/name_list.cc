#include "support/name_list.h"

#include <algorithm>

namespace orrery {
namespace name_list_cc {
namespace {

constexpr size_t kChunkBytes = 1 << 14;

}  // namespace
}  // namespace name_list_cc

absl::string_view TextArena::Store(absl::string_view text) {
  if (text.empty()) return {};
  if (chunks_.empty() || chunks_.back().capacity() - chunks_.back().size() < text.size()) {
    chunks_.emplace_back();
    chunks_.back().reserve(std::max(name_list_cc::kChunkBytes, text.size()));
  }
  std::string& chunk = chunks_.back();
  const size_t begin = chunk.size();
  chunk.append(text.data(), text.size());
  return absl::string_view(chunk.data() + begin, text.size());
}

NameList& NameList::operator=(const NameList& other) {
  if (this != &other) *this = NameList(other);
  return *this;
}

void NameList::KeepTextOf(const NameList& other) {
  kept_.insert(kept_.end(), other.kept_.begin(), other.kept_.end());
  if (other.own_ != nullptr) kept_.push_back(other.own_);
}

absl::string_view NameList::Store(absl::string_view name) {
  if (name.empty()) return {};
  if (own_ == nullptr) own_ = std::make_shared<TextArena>();
  return own_->Store(name);
}

}  // namespace orrery
