#ifndef ORRERY_LOWERING_NETWORK_LINK_CLASSES_H_
#define ORRERY_LOWERING_NETWORK_LINK_CLASSES_H_

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "cluster/topology.h"
#include "cost_models/collectives/pricing.h"

// Equal things are computed once: links that carry the same of all that travels are one resource of
// a simulation, and so a step on thousands of devices shares a handful of them.

namespace orrery::lowering {

/// A stream of a rank, as a number. Of two things that occupy one lane only one is under way.
using Lane = int32_t;

/// A kind of flow. Flows of one kind differ in size only.
struct Traffic {
  absl::InlinedVector<Lane, 2> lanes = {};  // that each of them occupies, ascending
  int32_t number = 0;                       // of what they put on links: LinkLoads::Add
};

/// The links that each of several groups of ranks loads.
struct GroupLinks {
  std::vector<cluster::LinkNumber> all = {};  // group by group
  std::vector<size_t> ends = {};              // of each group in `all`

  size_t size() const { return ends.size(); }
  /// Those of one group.
  std::span<const cluster::LinkNumber> operator[](size_t group) const {
    const size_t begin = group == 0 ? 0 : ends[group - 1];
    return std::span(all).subspan(begin, ends[group] - begin);
  }
};

/// Parts of one kind of traffic that a link of a class carries.
struct ClassParts {
  int32_t link_class = 0;
  int64_t parts = 0;
};

/// Links of one rate, latency and kind that carry the same parts of each kind of traffic.
struct LinkClass {
  cluster::LinkNumber first = 0;  // the one of the lowest number
  int64_t links = 0;
  /// Whether two flows that load it can be under way at once.
  bool shared = false;
};

/// A number of each link: in an array where those lie close to each other, as of ranks in a row
/// they do, else in a hash table.
class LinkNumbers {
 public:
  LinkNumbers() = default;
  /// Of links from `first` to `last`, of which about `count` have a number.
  LinkNumbers(cluster::LinkNumber first, cluster::LinkNumber last, size_t count);

  /// Of one of those links; 0 as long as it is not set.
  int32_t& operator[](cluster::LinkNumber link);
  /// Requires a link that was set.
  int32_t at(cluster::LinkNumber link) const {
    return dense_.empty() ? sparse_.at(link) : dense_[static_cast<size_t>(link - first_)];
  }
  /// Calls `visit(link, number)` of each whose number is not 0, in any order.
  template <typename Visit>
  void ForEach(const Visit& visit) const {
    for (size_t i = 0; i < dense_.size(); ++i) {
      if (dense_[i] != 0) visit(first_ + static_cast<cluster::LinkNumber>(i), dense_[i]);
    }
    for (const auto& [link, number] : sparse_) {
      if (number != 0) visit(link, number);
    }
  }

 private:
  cluster::LinkNumber first_ = 0;
  std::vector<int32_t> dense_;
  absl::flat_hash_map<cluster::LinkNumber, int32_t> sparse_;
};

struct LinkClasses {
  std::vector<LinkClass> classes;                   // by their first link
  std::vector<std::vector<ClassParts>> by_traffic;  // classes ascending
  std::vector<int32_t> by_load;                     // see LinkLoads; -1: of none
};

/// What links carry. Links that carry the same of all that was added have one load, however many
/// they are, so that classes are found load by load: many times, while what travels is put on links
/// once.
class LinkLoads {
 public:
  /// `topology` lives longer.
  explicit LinkLoads(const cluster::Topology& topology);

  /// Adds what some flows put on links, and returns its number: 0, 1, …. O(volumes). Requires that
  /// a link stands once in it.
  int32_t Add(std::span<const cost_models::LinkVolume> volumes);

  /// The classes of the links that carry something of `traffic`. O(links) after Add, and O(loads ×
  /// what they are of).
  LinkClasses Classify(std::span<const Traffic> traffic);

  /// The class of a link that carries something of what was classified. Requires classes that were
  /// found after the last Add.
  int32_t ClassOf(cluster::LinkNumber link, const LinkClasses& classes) const {
    return classes.by_load[static_cast<size_t>(of_link_.at(link))];
  }

  /// Whether the links of all groups are of the same classes. Groups that see other classes than
  /// each other are not alike: one of them meets traffic that the other does not. O(links).
  /// Requires what ClassOf requires.
  bool SeeTheSame(const GroupLinks& groups, const LinkClasses& classes) const;

 private:
  // What links of a kind carry: what they carried before, and so many parts of what was added.
  struct Load {
    int32_t before = -1;  // -1: nothing, where `added` is the number of the kind
    int32_t added = 0;
    int64_t parts = 0;
  };
  // Links of one rate, latency and name.
  struct Kind {
    cluster::PathInfo speed;
    absl::string_view name;
  };
  // Links of a load.
  struct Members {
    cluster::LinkNumber first = 0;
    int64_t links = 0;
  };
  using Parts = std::pair<int32_t, int64_t>;  // of a traffic

  int32_t UnloadedOf(cluster::LinkNumber link);
  void FindMembers();
  int32_t CarriedBy(int32_t load, std::span<const std::vector<int32_t>> traffics,
                    std::vector<Parts>& carried) const;

  const cluster::Topology& topology_;
  std::vector<Kind> kinds_;
  std::vector<int32_t> unloaded_;  // of each kind
  std::vector<Load> loads_;        // load 0 is of links that were never named
  LinkNumbers of_link_;
  std::vector<Members> members_;  // by load; empty: not known
  int32_t added_ = 0;
};

/// The classes of links that several of those traffics load are not 0, by their numbers.
std::vector<char> LoadedBySeveral(std::span<const int32_t> traffics, const LinkClasses& classes);

}  // namespace orrery::lowering

#endif  // ORRERY_LOWERING_NETWORK_LINK_CLASSES_H_
