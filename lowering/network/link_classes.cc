#include "lowering/network/link_classes.h"

#include <algorithm>
#include <string>
#include <utility>

namespace orrery::lowering {
namespace link_classes_cc {
namespace {

using cluster::LinkNumber;

struct Entry {
  LinkNumber link;
  int32_t traffic;
  int64_t parts;
};

std::vector<Entry> EntriesByLink(std::span<const Traffic> traffic) {
  std::vector<Entry> entries;
  for (size_t t = 0; t < traffic.size(); ++t) {
    for (const cost_models::LinkVolume& volume : traffic[t].volumes) {
      entries.push_back({volume.link, static_cast<int32_t>(t), volume.parts});
    }
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return a.link != b.link ? a.link < b.link : a.traffic < b.traffic;
  });
  return entries;
}

// What the links of a class have in common.
struct Signature {
  cluster::PathInfo speed;
  absl::string_view kind;
  std::vector<std::pair<int32_t, int64_t>> parts;  // by traffic

  friend bool operator==(const Signature&, const Signature&) = default;
  template <typename H>
  friend H AbslHashValue(H hash, const Signature& s) {
    return H::combine(std::move(hash), s.speed.rate.bytes_per_second(),
                      s.speed.latency.picoseconds(), s.kind, s.parts);
  }
};

bool Meet(const Traffic& a, const Traffic& b) {
  return std::any_of(a.lanes.begin(), a.lanes.end(), [&](Lane lane) {
    return std::binary_search(b.lanes.begin(), b.lanes.end(), lane);
  });
}

// Whether two of the kinds of traffic on a link can be under way at once.
bool IsShared(const Signature& signature, std::span<const Traffic> traffic) {
  for (const auto& [t, parts] : signature.parts) {
    for (const auto& [other, other_parts] : signature.parts) {
      if (other >= t) break;
      if (!Meet(traffic[static_cast<size_t>(t)], traffic[static_cast<size_t>(other)])) return true;
    }
  }
  return false;
}

}  // namespace
}  // namespace link_classes_cc

LinkClasses ClassifyLinks(std::span<const Traffic> traffic, const cluster::Topology& topology) {
  const std::vector<link_classes_cc::Entry> entries = link_classes_cc::EntriesByLink(traffic);
  LinkClasses result;
  result.by_traffic.resize(traffic.size());
  absl::flat_hash_map<link_classes_cc::Signature, int32_t> known;
  link_classes_cc::Signature signature;
  for (size_t first = 0, last = 0; first < entries.size(); first = last) {
    const cluster::LinkNumber number = entries[first].link;
    const cluster::Link link = topology.LinkAt(number);
    signature.speed = link.speed;
    signature.kind = link.kind;
    signature.parts.clear();
    for (last = first; last < entries.size() && entries[last].link == number; ++last) {
      signature.parts.emplace_back(entries[last].traffic, entries[last].parts);
    }
    const auto count = static_cast<int32_t>(result.classes.size());
    const auto [found, is_new] = known.try_emplace(signature, count);
    if (is_new) {
      result.classes.push_back(
          {.first = number, .shared = link_classes_cc::IsShared(signature, traffic)});
      for (const auto& [t, parts] : signature.parts) {
        result.by_traffic[static_cast<size_t>(t)].push_back({count, parts});
      }
    }
    ++result.classes[static_cast<size_t>(found->second)].links;
    result.class_of.emplace(number, found->second);
  }
  return result;
}

std::vector<int32_t> ClassesOf(std::span<const cost_models::LinkVolume> volumes,
                               const LinkClasses& classes) {
  std::vector<bool> met(classes.classes.size(), false);
  for (const cost_models::LinkVolume& volume : volumes) {
    met[static_cast<size_t>(classes.class_of.at(volume.link))] = true;
  }
  std::vector<int32_t> numbers;
  for (size_t c = 0; c < met.size(); ++c) {
    if (met[c]) numbers.push_back(static_cast<int32_t>(c));
  }
  return numbers;
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
