#ifndef ORRERY_SEARCH_SETTINGS_SETTING_TEST_UTIL_H_
#define ORRERY_SEARCH_SETTINGS_SETTING_TEST_UTIL_H_

#include <string>
#include <utility>

#include "ir/models/mlp.h"
#include "search/settings/model_flops.h"
#include "search/settings/setting.h"
#include "transforms/training/training_step.h"

// For tests only.

namespace orrery::search {

/// The setting of a search over an MLP of 4 layers of 64 and 48 samples.
inline Setting MlpSetting(const std::string& cluster = "uniform:8@200Gbps",
                          const std::string& optimizer = "adam") {
  Setting setting;
  setting.step = ir::Mlp({.layers = 4, .dim = 64, .batch = 48}).value();
  transforms::AppendOptimizer(setting.step, optimizer).value();
  setting.model_name = "mlp:layers=4,dim=64";
  setting.batch_size = 48;
  setting.cluster = cluster::ParseCluster(cluster).value();
  setting.cost_model = cost_models::MakeCostModel("roofline").value();
  setting.model_flops = CountModelFlops(setting.step);
  return setting;
}

}  // namespace orrery::search

#endif  // ORRERY_SEARCH_SETTINGS_SETTING_TEST_UTIL_H_
