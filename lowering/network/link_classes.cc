#include "lowering/network/link_classes.h"

#include <algorithm>
#include <array>

namespace orrery::lowering {
namespace link_classes_cc {
namespace {

using cluster::LinkNumber;
using Parts = std::pair<int32_t, int64_t>;  // of a traffic

// The loads of links that carry what they carried and now parts of something new, too. Links in a
// row differ in little: a few that were found last are five times as fast as looking each up.
class NextLoads {
 public:
  // 0: not known.
  int32_t& After(int32_t before, int64_t parts) {
    Recent& recent = recent_[static_cast<size_t>(before) % recent_.size()];
    if (recent.after == 0 || recent.before != before || recent.parts != parts) {
      Store(recent);
      recent = {.before = before, .parts = parts, .after = after_[{before, parts}]};
    }
    return recent.after;
  }

 private:
  struct Recent {
    int32_t before = 0;
    int64_t parts = 0;
    int32_t after = 0;
  };

  void Store(const Recent& recent) {
    if (recent.after != 0) after_[{recent.before, recent.parts}] = recent.after;
  }

  std::array<Recent, 16> recent_;
  absl::flat_hash_map<std::pair<int32_t, int64_t>, int32_t> after_;
};

bool Meet(const Traffic& a, const Traffic& b) {
  return std::any_of(a.lanes.begin(), a.lanes.end(), [&](Lane lane) {
    return std::binary_search(b.lanes.begin(), b.lanes.end(), lane);
  });
}

// Whether two of the kinds of traffic on a link can be under way at once.
bool IsShared(std::span<const Parts> loads, std::span<const Traffic> traffic) {
  for (const auto& [t, parts] : loads) {
    for (const auto& [other, other_parts] : loads) {
      if (other >= t) break;
      if (!Meet(traffic[static_cast<size_t>(t)], traffic[static_cast<size_t>(other)])) return true;
    }
  }
  return false;
}

// The numbers of the traffics of each thing that was added.
std::vector<std::vector<int32_t>> TrafficsOf(std::span<const Traffic> traffic, int32_t added) {
  std::vector<std::vector<int32_t>> traffics(static_cast<size_t>(added));
  for (size_t t = 0; t < traffic.size(); ++t) {
    traffics[static_cast<size_t>(traffic[t].number)].push_back(static_cast<int32_t>(t));
  }
  return traffics;
}

// A class, and what its links carry.
struct Carrying {
  LinkClass links;
  std::vector<Parts> carried;
  int32_t number = 0;  // as it was found
};

// The classes in the order of their first links; `by_load` is by number.
LinkClasses InOrder(std::vector<Carrying> found, std::span<const Traffic> traffic,
                    std::vector<int32_t> by_load) {
  std::ranges::sort(found, {}, [](const Carrying& c) { return c.links.first; });
  LinkClasses result;
  result.by_traffic.resize(traffic.size());
  std::vector<int32_t> places(found.size());
  for (size_t c = 0; c < found.size(); ++c) {
    places[static_cast<size_t>(found[c].number)] = static_cast<int32_t>(c);
    found[c].links.shared = IsShared(found[c].carried, traffic);
    result.classes.push_back(found[c].links);
    for (const auto& [t, parts] : found[c].carried) {
      result.by_traffic[static_cast<size_t>(t)].push_back({static_cast<int32_t>(c), parts});
    }
  }
  for (int32_t& number : by_load) {
    if (number >= 0) number = places[static_cast<size_t>(number)];
  }
  result.by_load = std::move(by_load);
  return result;
}

}  // namespace
}  // namespace link_classes_cc

// Not many more links than have a number.
LinkNumbers::LinkNumbers(cluster::LinkNumber first, cluster::LinkNumber last, size_t count)
    : first_(first) {
  constexpr int64_t kDense = 16;
  if (last - first < kDense * static_cast<int64_t>(count)) {
    dense_.assign(static_cast<size_t>(last - first) + 1, 0);
  }
}

int32_t& LinkNumbers::operator[](cluster::LinkNumber link) {
  return dense_.empty() ? sparse_[link] : dense_[static_cast<size_t>(link - first_)];
}

// Most topologies have a few links a device; where each pair has one, few of them carry anything.
LinkLoads::LinkLoads(const cluster::Topology& topology) : topology_(topology), loads_(1) {
  constexpr size_t kLinksADevice = 4;
  if (topology.link_count() == 0) return;
  of_link_ = LinkNumbers(0, topology.link_count() - 1,
                         kLinksADevice * static_cast<size_t>(topology.devices()));
}

// The load of a link that carries nothing yet.
int32_t LinkLoads::UnloadedOf(cluster::LinkNumber number) {
  const cluster::Link link = topology_.LinkAt(number);
  const auto kind = std::ranges::find_if(kinds_, [&](const Kind& other) {
    return other.speed == link.speed && other.name == link.kind;
  });
  if (kind != kinds_.end()) return unloaded_[static_cast<size_t>(kind - kinds_.begin())];
  unloaded_.push_back(static_cast<int32_t>(loads_.size()));
  loads_.push_back({.added = static_cast<int32_t>(kinds_.size())});
  kinds_.push_back({.speed = link.speed, .name = link.kind});
  return unloaded_.back();
}

int32_t LinkLoads::Add(std::span<const cost_models::LinkVolume> volumes) {
  link_classes_cc::NextLoads next;
  for (const cost_models::LinkVolume& volume : volumes) {
    int32_t& load = of_link_[volume.link];
    if (load == 0) load = UnloadedOf(volume.link);
    int32_t& after = next.After(load, volume.parts);
    if (after == 0) {
      after = static_cast<int32_t>(loads_.size());
      loads_.push_back({.before = load, .added = added_, .parts = volume.parts});
    }
    load = after;
  }
  members_.clear();
  return added_++;
}

void LinkLoads::FindMembers() {
  if (!members_.empty()) return;
  members_.resize(loads_.size());
  of_link_.ForEach([&](cluster::LinkNumber link, int32_t load) {
    Members& members = members_[static_cast<size_t>(load)];
    if (members.links++ == 0 || link < members.first) members.first = link;
  });
}

// What links of that load carry of each traffic, ascending. Returns the number of their kind.
int32_t LinkLoads::CarriedBy(int32_t load, std::span<const std::vector<int32_t>> traffics,
                             std::vector<Parts>& carried) const {
  carried.clear();
  const Load* row = &loads_[static_cast<size_t>(load)];
  for (; row->before >= 0; row = &loads_[static_cast<size_t>(row->before)]) {
    for (const int32_t t : traffics[static_cast<size_t>(row->added)]) {
      carried.emplace_back(t, row->parts);
    }
  }
  std::sort(carried.begin(), carried.end());
  return row->added;
}

LinkClasses LinkLoads::Classify(std::span<const Traffic> traffic) {
  FindMembers();
  const auto traffics = link_classes_cc::TrafficsOf(traffic, added_);
  absl::flat_hash_map<std::pair<int32_t, std::vector<Parts>>, size_t> known;
  std::vector<link_classes_cc::Carrying> found;
  std::vector<int32_t> by_load(loads_.size(), -1);
  std::vector<Parts> carried;
  for (size_t load = 1; load < loads_.size(); ++load) {
    const Members& members = members_[load];
    if (members.links == 0) continue;
    const int32_t kind = CarriedBy(static_cast<int32_t>(load), traffics, carried);
    if (carried.empty()) continue;
    const auto [number, is_new] = known.try_emplace({kind, carried}, found.size());
    if (is_new) {
      found.push_back({.links = {.first = members.first},
                       .carried = carried,
                       .number = static_cast<int32_t>(found.size())});
    }
    LinkClass& links = found[number->second].links;
    links.first = std::min(links.first, members.first);
    links.links += members.links;
    by_load[load] = static_cast<int32_t>(number->second);
  }
  return link_classes_cc::InOrder(std::move(found), traffic, std::move(by_load));
}

bool LinkLoads::SeeTheSame(const GroupLinks& groups, const LinkClasses& classes) const {
  std::vector<size_t> last_group(classes.classes.size(), 0);  // that sees it, counted from 1
  size_t of_first = 0;
  for (size_t g = 0; g < groups.size(); ++g) {
    size_t seen = 0;
    for (const cluster::LinkNumber link : groups[g]) {
      size_t& last = last_group[static_cast<size_t>(ClassOf(link, classes))];
      if (g > 0 && last == 0) return false;
      seen += last != g + 1;
      last = g + 1;
    }
    if (g == 0) of_first = seen;
    if (seen != of_first) return false;
  }
  return true;
}

std::vector<char> LoadedBySeveral(std::span<const int32_t> traffics, const LinkClasses& classes) {
  std::vector<char> loaded(classes.classes.size(), 0), several(classes.classes.size(), 0);
  for (const int32_t traffic : traffics) {
    for (const ClassParts& load : classes.by_traffic[static_cast<size_t>(traffic)]) {
      const auto link_class = static_cast<size_t>(load.link_class);
      several[link_class] = std::exchange(loaded[link_class], char{1});
    }
  }
  return several;
}

}  // namespace orrery::lowering
