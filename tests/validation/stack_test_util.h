#ifndef ORRERY_TESTS_VALIDATION_STACK_TEST_UTIL_H_
#define ORRERY_TESTS_VALIDATION_STACK_TEST_UTIL_H_

#include <gtest/gtest.h>

#include <string>

#include "lowering/blocks/stack_kernels.h"
#include "search/evaluate.h"
#include "search/plan_player.h"
#include "tools/flags.h"
#include "tools/validation/software_stack.h"

namespace orrery::tools {

inline constexpr char kDropoutGpt[] = "gpt:layers=4,hidden=64,heads=4,seq=32,vocab=256,dropout=0.1";

/// A setting of a small model on eight devices.
inline search::Setting SmallSetting(const transforms::ParallelPlan& plan,
                                    const std::string& cost_model = "roofline",
                                    const std::string& model = kDropoutGpt,
                                    const std::string& cluster = "uniform:8@200Gbps") {
  ModelFlags flags;
  flags.model = model;
  flags.batch_size = 16;
  flags.cluster = cluster;
  flags.memory_limit = "none";
  flags.cost_model = cost_model;
  return MakeSetting(flags, plan).value();
}

/// Plays it as a stack would, in the first way to carry the plan out: which is the best depends on
/// the kernels.
inline search::Run PlayedWith(const lowering::StackKernels& kernels,
                              const transforms::ParallelPlan& plan, bool fold = true,
                              const std::string& model = kDropoutGpt) {
  search::Setting setting = SmallSetting(plan, "roofline", model);
  setting.lowering.kernels = kernels;
  setting.lowering.fold = fold;
  search::PlanPlayer player(setting, plan);
  EXPECT_TRUE(player.Prepare().ok());
  return player.Play({}).value();
}

}  // namespace orrery::tools

#endif  // ORRERY_TESTS_VALIDATION_STACK_TEST_UTIL_H_
