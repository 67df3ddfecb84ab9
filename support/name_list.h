#ifndef ORRERY_SUPPORT_NAME_LIST_H_
#define ORRERY_SUPPORT_NAME_LIST_H_

#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace orrery {

/// Text that stays where it is: what was stored keeps its address until the arena goes. It moves,
/// and is never copied: a vector that grows would copy it, and what was read would be of the old
/// one.
class TextArena {
 public:
  TextArena() = default;
  TextArena(TextArena&&) = default;
  TextArena& operator=(TextArena&&) = default;

  /// A copy of `text`, good until the arena goes; nothing is kept of an empty one.
  absl::string_view Store(absl::string_view text);

 private:
  std::deque<std::string> chunks_;
};

/// A list of names, none of them hashed: appending one costs a copy of its characters. A name that
/// was read stays good until the list goes, even when it is replaced. Copies share the text.
class NameList {
 public:
  NameList() = default;
  NameList(const NameList& other) : names_(other.names_) { KeepTextOf(other); }
  NameList& operator=(const NameList& other);
  NameList(NameList&&) = default;
  NameList& operator=(NameList&&) = default;

  /// Appends a name, of which a copy is kept.
  void push_back(absl::string_view name) {
    names_.push_back(name.empty() ? absl::string_view() : Store(name));
  }
  /// Replaces name i, of which a copy is kept; the old text stays where it is.
  void Set(size_t i, absl::string_view name) { names_[i] = Store(name); }
  /// Makes the names that `other` has now good for SetKept here, whatever becomes of `other`.
  void KeepTextOf(const NameList& other);
  /// The same as Set for a name of a list whose text is kept: nothing is copied.
  void SetKept(size_t i, absl::string_view name) { names_[i] = name; }
  absl::string_view operator[](size_t i) const { return names_[i]; }
  size_t size() const { return names_.size(); }
  /// Makes room for that many names in all, without their text.
  void reserve(size_t names) { names_.reserve(names); }

 private:
  absl::string_view Store(absl::string_view name);

  std::shared_ptr<TextArena> own_;  // that only this list adds to; null before the first name
  std::vector<std::shared_ptr<const TextArena>> kept_;  // of other lists
  std::vector<absl::string_view> names_;
};

}  // namespace orrery

#endif  // ORRERY_SUPPORT_NAME_LIST_H_
