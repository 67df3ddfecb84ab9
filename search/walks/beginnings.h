#ifndef ORRERY_SEARCH_WALKS_BEGINNINGS_H_
#define ORRERY_SEARCH_WALKS_BEGINNINGS_H_

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <vector>

#include "search/walks/registry.h"

// What the files of the methods share.

namespace orrery::search {

/// Where walks begin, and where they go on once they know no neighbour.
class Beginnings {
 public:
  explicit Beginnings(const WalkQuestion& question) : question_(question) {
    if (!question_.family) return;
    std::set<uint64_t> families;
    for (const uint32_t i : question_.promising) {
      if (!question_.is_open(i) || !families.insert(question_.family(i)).second) continue;
      seeds_.push_back(i);
    }
  }

  /// Of the next family that is begun by none, and by one that `counts`, that one.
  template <typename Counts>
  std::optional<size_t> Seed(const std::set<size_t>& taken, const Counts& counts) {
    while (seed_ < seeds_.size() && !question_.is_open(seeds_[seed_])) ++seed_;
    for (size_t at = seed_; at < seeds_.size(); ++at) {
      if (IsUsable(seeds_[at], taken) && counts(seeds_[at])) return seeds_[at];
    }
    return std::nullopt;
  }

  /// The next open one: of each family the most promising first, then all in their order.
  std::optional<size_t> Next(const std::set<size_t>& taken) {
    const auto any = [](size_t) { return true; };
    if (const std::optional<size_t> seed = Seed(taken, any)) return seed;
    // What is closed once stays so; what is only taken comes again.
    while (next_ < question_.promising.size() && !question_.is_open(question_.promising[next_])) {
      ++next_;
    }
    for (size_t at = next_; at < question_.promising.size(); ++at) {
      if (IsUsable(question_.promising[at], taken)) return question_.promising[at];
    }
    return std::nullopt;
  }

  /// Takes as many as there are until there are `most`.
  void Fill(size_t most, std::set<size_t>& taken) {
    while (taken.size() < most) {
      const std::optional<size_t> next = Next(taken);
      if (!next.has_value()) break;
      taken.insert(*next);
    }
  }

 private:
  bool IsUsable(size_t i, const std::set<size_t>& taken) const {
    return question_.is_open(i) && !taken.contains(i);
  }

  const WalkQuestion& question_;
  std::vector<size_t> seeds_;
  size_t seed_ = 0, next_ = 0;
};

/// Draws by a seed, alike on every machine: distributions of the standard library are not.
class Draws {
 public:
  explicit Draws(uint32_t seed) : random_(seed) {}

  /// One of `count`, counted from 0. Requires one at least.
  size_t Below(size_t count) { return random_() % count; }
  /// From 0 up to 1.
  double Unit() { return static_cast<double>(random_()) * 0x1p-32; }
  /// One of them. Requires one at least.
  template <typename T>
  const T& Of(const std::vector<T>& all) {
    return all[Below(all.size())];
  }

 private:
  std::mt19937 random_;
};

/// Neighbours of candidates, each found once.
class NeighbourTable {
 public:
  /// `question` lives longer.
  explicit NeighbourTable(const WalkQuestion& question) : question_(question) {}

  const std::vector<size_t>& Of(size_t i) {
    const auto [found, is_new] = known_.try_emplace(i);
    if (is_new) found->second = question_.neighbours(i);
    return found->second;
  }

 private:
  const WalkQuestion& question_;
  std::map<size_t, std::vector<size_t>> known_;  // looked up
};

}  // namespace orrery::search

#endif  // ORRERY_SEARCH_WALKS_BEGINNINGS_H_
