#include "support/string_pool.h"

namespace orrery {

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
  const absl::string_view stored = arena_.Store(text);
  const StringId id(size());
  views_.push_back(stored);
  ids_.emplace(stored, id);
  return id;
}

StringId StringPool::Find(absl::string_view text) const {
  const auto found = ids_.find(text);
  return found == ids_.end() ? StringId() : found->second;
}

}  // namespace orrery
