#include "support/parts/part_store.h"

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "support/check.h"

namespace orrery {

PartStore::Found PartStore::Find(const Question& question, const std::function<Kept()>& make) {
  const std::string name = absl::StrCat(question.kind, " ", question.key);
  std::unique_lock<std::mutex> lock(mutex_);
  PartCounts& counts = counts_[std::string(question.kind)];
  for (;;) {
    const auto found = places_.find(name);
    if (found == places_.end()) break;
    const std::shared_ptr<Place> place = found->second;
    ORRERY_CHECK(place->type == question.type) << name << " is of two types";
    made_.wait(lock, [&] { return place->kept.part != nullptr || place->failed; });
    if (place->failed) continue;
    ++counts.found;
    if (place->use != uses_.end()) uses_.splice(uses_.begin(), uses_, place->use);
    return {.part = place->kept.part};
  }
  const auto place = std::make_shared<Place>(
      Place{.type = question.type, .kind = std::string(question.kind), .use = uses_.end()});
  places_.emplace(name, place);
  ++counts.made;
  lock.unlock();
  Kept kept;
  try {
    kept = make();
  } catch (...) {
    lock.lock();
    place->failed = true;
    places_.erase(name);
    made_.notify_all();
    throw;
  }
  lock.lock();
  place->kept = std::move(kept);
  made_.notify_all();
  Keep(name, place);
  return {.part = place->kept.part, .is_new = true};
}

void PartStore::CheckEqual(absl::string_view kind, absl::string_view key, uint64_t found,
                           uint64_t made) {
  ORRERY_CHECK(found == made) << "the key lacks what the part depends on: " << kind << " " << key;
}

// Drops what was used longest ago; a part that is too large by itself, at once.
void PartStore::Keep(const std::string& name, const std::shared_ptr<Place>& place) {
  constexpr int64_t kOfPlace = 200;  // beside its name, which stands here twice
  place->kept.held += Bytes(2 * static_cast<int64_t>(name.size()) + kOfPlace);
  uses_.push_front(name);
  place->use = uses_.begin();
  held_ += place->kept.held;
  while (held_ > limit_ && !uses_.empty()) {
    const auto last = places_.find(uses_.back());
    const std::shared_ptr<Place> dropped = last->second;
    held_ -= dropped->kept.held;
    ++counts_[dropped->kind].dropped;
    dropped->use = uses_.end();  // whoever waited for it still gets it
    places_.erase(last);
    uses_.pop_back();
  }
}

// Of two questions of one hash the second is kept too early: no harm.
bool PartStore::WasAskedFor(absl::string_view kind, absl::string_view key) {
  constexpr size_t kMost = size_t{1} << 20;  // 18 MB
  const std::lock_guard<std::mutex> lock(mutex_);
  if (asked_.size() >= kMost) asked_.clear();
  return !asked_.insert(absl::HashOf(kind, key)).second;
}

std::map<std::string, PartCounts> PartStore::counts() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return counts_;
}

Bytes PartStore::held() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return held_;
}

}  // namespace orrery
