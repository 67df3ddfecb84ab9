#ifndef ORRERY_SEARCH_SETTINGS_SETTING_TEST_UTIL_H_
#define ORRERY_SEARCH_SETTINGS_SETTING_TEST_UTIL_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "ir/models/mlp.h"
#include "ir/models/model_test_util.h"
#include "search/settings/model_flops.h"
#include "search/settings/setting.h"
#include "transforms/training/training_step.h"

// For tests only.

namespace orrery::search {

/// The setting of a search for plans of a training step, by what the roofline allows.
inline Setting StepSetting(ir::Function step, const std::string& model_name, int64_t batch_size,
                           const std::string& cluster) {
  Setting setting;
  setting.step = std::move(step);
  setting.model_name = model_name;
  setting.batch_size = batch_size;
  setting.cluster = cluster::ParseCluster(cluster).value();
  setting.cost_model = cost_models::MakeCostModel("roofline").value();
  setting.model_flops = CountModelFlops(setting.step);
  return setting;
}

/// That of a built-in model trained by Adam, with keys such as "layers=2,hidden=8".
inline Setting ModelSetting(const std::string& family, absl::string_view keys, int64_t batch_size,
                            const std::string& cluster) {
  ir::Function step = ir::BuildModel(family, keys, batch_size);
  EXPECT_TRUE(transforms::MakeTrainingStep(step, {}).ok());
  return StepSetting(std::move(step), family, batch_size, cluster);
}

/// That of an MLP of 4 layers of 64 and 48 samples.
inline Setting MlpSetting(const std::string& cluster = "uniform:8@200Gbps",
                          const std::string& optimizer = "adam") {
  ir::Function step = ir::Mlp({.layers = 4, .dim = 64, .batch = 48}).value();
  transforms::AppendOptimizer(step, optimizer).value();
  return StepSetting(std::move(step), "mlp:layers=4,dim=64", 48, cluster);
}

/// The same on devices of two kinds, half of its cluster's each: the later ones compute, and read
/// their memory, so many times as slowly.
inline Setting WithSlowerHalf(Setting setting, int64_t times) {
  const cluster::Device fast = setting.cluster.device;
  cluster::Device slow = fast;
  slow.name = "slow";
  slow.fp32 = FlopRate(fast.fp32.flops_per_second() / static_cast<double>(times));
  slow.tf32 = FlopRate(fast.tf32.flops_per_second() / static_cast<double>(times));
  slow.memory_bandwidth = Bandwidth(fast.memory_bandwidth.bytes_per_second() / times);
  const int32_t half = setting.cluster.size() / 2;
  cluster::Cluster mixed{.name = "mixed", .device = fast, .topology = setting.cluster.topology};
  mixed.AddDevices(fast, half);
  mixed.AddDevices(slow, half);
  setting.cluster = mixed;
  return setting;
}

}  // namespace orrery::search

#endif  // ORRERY_SEARCH_SETTINGS_SETTING_TEST_UTIL_H_
