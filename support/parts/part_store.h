#ifndef ORRERY_SUPPORT_PARTS_PART_STORE_H_
#define ORRERY_SUPPORT_PARTS_PART_STORE_H_

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <typeindex>
#include <unordered_map>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "support/units.h"

// What many candidates of a search are made of, made once. A part stands under a key, a text that
// says all that the part depends on: what the key lacks, the part must not depend on.

namespace orrery {

/// How often parts of one kind were asked for.
struct PartCounts {
  int64_t found = 0;    // and were there, or being made
  int64_t made = 0;     // and were not
  int64_t dropped = 0;  // to make room

  friend bool operator==(const PartCounts&, const PartCounts&) = default;
};

/// Parts by their keys, for several threads: a part is made by the one that asks first, and the
/// others wait for it. Where they take more than `limit` together, those that were asked for
/// longest ago are dropped, and made again when they are asked for again: what is in the store
/// decides how long a search takes, and nothing else. Whoever holds a part keeps it.
class PartStore {
 public:
  /// Nothing is kept with a limit of 0.
  explicit PartStore(Bytes limit) : limit_(limit) {}

  PartStore(const PartStore&) = delete;
  PartStore& operator=(const PartStore&) = delete;

  /// From now on what is found is made again all the same, and where the two differ the program
  /// ends: for tests, that a key says all that its part depends on.
  void CheckWhatIsFound() { checks_ = true; }

  /// The part that stands under `kind` and `key`; where there is none, what `make` returns. A Part
  /// tells by `Bytes held() const` how much memory it takes, and by `uint64_t number() const`,
  /// which is equal for equal parts, what it is. `make` may ask for other parts, as long as they do
  /// not ask for this one. Requires that one kind is of one type.
  template <typename Part, typename Make>
  std::shared_ptr<const Part> FindOrMake(absl::string_view kind, absl::string_view key,
                                         const Make& make) {
    const auto made = [&make]() -> Kept {
      auto part = std::make_shared<const Part>(make());
      const Bytes held = part->held();
      return {std::move(part), held};
    };
    const Found found = Find({kind, key, typeid(Part)}, made);
    auto part = std::static_pointer_cast<const Part>(found.part);
    if (checks_ && !found.is_new) CheckEqual(kind, key, part->number(), make().number());
    return part;
  }

  /// The same for parts that few ask for twice: what is asked for the first time is made, and not
  /// kept. `make` returns a Part, as before.
  template <typename Part, typename Make>
  std::shared_ptr<const Part> FindOrMakeFromSecond(absl::string_view kind, absl::string_view key,
                                                   const Make& make) {
    if (WasAskedFor(kind, key)) return FindOrMake<Part>(kind, key, make);
    return std::make_shared<const Part>(make());
  }

  /// Whether somebody asked this before of that kind and key, as far back as is known; from now on
  /// somebody did.
  bool WasAskedFor(absl::string_view kind, absl::string_view key);

  /// What was asked for, by kind; without what was made and not kept.
  std::map<std::string, PartCounts> counts() const;
  /// How much the parts take that are here now, their keys with them.
  Bytes held() const;

 private:
  struct Kept {
    std::shared_ptr<const void> part;
    Bytes held;
  };
  struct Found {
    std::shared_ptr<const void> part;
    bool is_new = false;
  };
  struct Question {
    absl::string_view kind, key;
    std::type_index type;
  };
  // Where a part stands, or will.
  struct Place {
    std::type_index type;
    std::string kind;
    Kept kept = {};       // no part: one is being made
    bool failed = false;  // to make it: an exception
    std::list<std::string>::iterator use = {};
  };

  Found Find(const Question& question, const std::function<Kept()>& make);
  static void CheckEqual(absl::string_view kind, absl::string_view key, uint64_t found,
                         uint64_t made);
  void Keep(const std::string& name, const std::shared_ptr<Place>& place);

  const Bytes limit_;
  bool checks_ = false;
  mutable std::mutex mutex_;
  std::condition_variable made_;
  std::unordered_map<std::string, std::shared_ptr<Place>> places_;  // looked up
  std::list<std::string> uses_;  // of the parts that are made: the last one first
  std::map<std::string, PartCounts> counts_;
  absl::flat_hash_set<size_t> asked_;  // hashes of what was asked for; looked up
  Bytes held_;
};

}  // namespace orrery

#endif  // ORRERY_SUPPORT_PARTS_PART_STORE_H_
