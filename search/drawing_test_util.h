#ifndef ORRERY_SEARCH_DRAWING_TEST_UTIL_H_
#define ORRERY_SEARCH_DRAWING_TEST_UTIL_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>
#include <random>

#include "absl/strings/str_cat.h"
#include "search/settings/setting.h"
#include "transforms/plan/plan_text.h"

// For tests only.

namespace orrery::search {

/// Draws one of a list, again and again.
class Drawing {
 public:
  explicit Drawing(uint32_t seed) : random_(seed) {}
  /// One of them, each as likely.
  template <typename T>
  T Of(std::initializer_list<T> list) {
    return *(list.begin() + random_() % list.size());
  }

 private:
  std::mt19937 random_;
};

/// Calls `visit(setting, plan)` with what each of `count` seeds draws, where the plan has no more
/// ranks than there are devices. What fails says which it was.
template <typename DrawSetting, typename DrawPlan, typename Visit>
void ForEachDrawn(uint32_t first, uint32_t count, const DrawSetting& draw_setting,
                  const DrawPlan& draw_plan, const Visit& visit) {
  for (uint32_t seed = first; seed < first + count; ++seed) {
    Drawing draw(seed);
    Setting setting = draw_setting(draw);
    const ParallelPlan plan = draw_plan(draw);
    if (plan.ranks() > setting.cluster.size()) continue;
    SCOPED_TRACE(absl::StrCat("seed ", seed, ": ", setting.model_name, " on ", setting.cluster.name,
                              ", ", transforms::ToString(plan, {})));
    visit(setting, plan);
    if (testing::Test::HasFatalFailure()) return;
  }
}

}  // namespace orrery::search

#endif  // ORRERY_SEARCH_DRAWING_TEST_UTIL_H_
