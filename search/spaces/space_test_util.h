#ifndef ORRERY_SEARCH_SPACES_SPACE_TEST_UTIL_H_
#define ORRERY_SEARCH_SPACES_SPACE_TEST_UTIL_H_

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "search/spaces/space.h"
#include "transforms/plan/plan_text.h"

// For tests only: spaces as they are written, and what is in them.

namespace orrery::search {

// The flags of a search, as they are written: {"micro-batches", "1,2"}.
using Lists = std::vector<std::pair<const char*, const char*>>;

inline Space SpaceOf(const Lists& lists, const transforms::ParallelPlan& base = {}) {
  Space space(base);
  for (const auto& [flag, values] : lists) {
    const absl::Status status = space.List(*transforms::FindAxis(flag), values);
    EXPECT_TRUE(status.ok()) << status;
  }
  return space;
}

inline Space SavingSpaceOf(const Lists& lists) {
  Space space = SpaceOf(lists);
  space.SaveMemory();
  return space;
}

inline std::vector<transforms::ParallelPlan> PlansOf(const Space& space, const SpaceSize& size) {
  return Enumerate(space, size).value().All();
}

// "dp.hp.pp.K schedule", one a plan.
inline std::vector<std::string> List(const Space& space, const SpaceSize& size) {
  std::vector<std::string> list;
  for (const transforms::ParallelPlan& plan : PlansOf(space, size)) {
    const std::string schedule = plan.schedule.name();
    list.push_back(absl::StrCat(plan.dp, ".", plan.hp, ".", plan.pp, ".", plan.microbatches,
                                schedule == "1f1b" ? "" : " ", schedule == "1f1b" ? "" : schedule));
  }
  return list;
}

inline std::vector<std::string> Texts(const Space& space, const SpaceSize& size) {
  std::vector<std::string> texts;
  for (const transforms::ParallelPlan& plan : PlansOf(space, size)) texts.push_back(ToString(plan));
  return texts;
}

}  // namespace orrery::search

#endif  // ORRERY_SEARCH_SPACES_SPACE_TEST_UTIL_H_
