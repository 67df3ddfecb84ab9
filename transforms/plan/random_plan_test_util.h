#ifndef ORRERY_TRANSFORMS_PLAN_RANDOM_PLAN_TEST_UTIL_H_
#define ORRERY_TRANSFORMS_PLAN_RANDOM_PLAN_TEST_UTIL_H_

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "transforms/plan/axis.h"
#include "transforms/plan/parallel_plan.h"

// For tests only.

namespace orrery::transforms {

/// Texts that the axis takes: those of its record, and the default's where it can be said.
inline std::vector<std::string> TextsOf(const AxisInfo& axis) {
  std::vector<std::string> texts(axis.examples.begin(), axis.examples.end());
  const std::string text = axis.print(ParallelPlan());
  if (axis.form != AxisForm::kMany && std::ranges::find(texts, text) == texts.end()) {
    texts.push_back(text);
  }
  return texts;
}

/// The default but for one axis, which has the first text of its record.
inline ParallelPlan ExampleOf(const AxisInfo& axis) {
  ParallelPlan plan;
  if (!axis.examples.empty()) axis.parse(axis.examples.front(), plan).IgnoreError();
  return plan;
}

/// A plan whose axes each have the default or one of TextsOf. It need not make sense.
inline ParallelPlan RandomPlan(uint32_t seed) {
  std::mt19937 random(seed);
  ParallelPlan plan;
  for (const AxisInfo* axis : AllAxes()) {
    const std::vector<std::string> texts = TextsOf(*axis);
    const size_t times = axis->form == AxisForm::kMany ? random() % 3 : random() % 2;
    for (size_t i = 0; i < times && !texts.empty(); ++i) {
      axis->parse(texts[random() % texts.size()], plan).IgnoreError();
    }
  }
  return plan;
}

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_PLAN_RANDOM_PLAN_TEST_UTIL_H_
