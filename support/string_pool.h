#ifndef ORRERY_SUPPORT_STRING_POOL_H_
#define ORRERY_SUPPORT_STRING_POOL_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "support/id.h"
#include "support/name_list.h"

namespace orrery {

ORRERY_DEFINE_ID(StringId, "string");

/// Each distinct string once, under a dense id. Id 0 is the empty string.
class StringPool {
 public:
  StringPool();
  StringPool(const StringPool& other);
  StringPool& operator=(const StringPool& other);
  StringPool(StringPool&&) = default;
  StringPool& operator=(StringPool&&) = default;

  /// The id of `text`, new or old.
  StringId Intern(absl::string_view text);
  /// The id of `text`, or an invalid id if it was never interned.
  StringId Find(absl::string_view text) const;
  absl::string_view operator[](StringId id) const {
    return views_[static_cast<size_t>(id.index())];
  }
  int32_t size() const { return static_cast<int32_t>(views_.size()); }

 private:
  TextArena arena_;
  std::vector<absl::string_view> views_;
  absl::flat_hash_map<absl::string_view, StringId> ids_;
};

}  // namespace orrery

#endif  // ORRERY_SUPPORT_STRING_POOL_H_
