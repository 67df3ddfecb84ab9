#ifndef ORRERY_TOOLS_PLANNING_QUESTIONS_H_
#define ORRERY_TOOLS_PLANNING_QUESTIONS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "search/settings/setting.h"
#include "tools/flags.h"
#include "tools/planning/planning_flags.h"

// The questions of a command line of grid_search that asks several at once.

namespace orrery::tools {

/// One model, one batch size and one cluster of those that are asked for.
struct Question {
  ModelFlags model;
  double device_hour = 0;
  size_t group = 0;          // alike for those that differ in the size of their cluster alone
  bool is_of_table = false;  // whether a table tells what others of its group come to beside it
  std::vector<search::ModelColumn> model_columns = {};  // of tables (tools/model_columns.h)
};

/// What is asked for.
struct QuestionLists {
  ModelFlags model;  // whose model and cluster may be lists
  std::vector<int64_t> batch_sizes;
};

/// Each model on each cluster with each batch size, in each size of --gpus, ascending; with
/// --fits-on and without --gpus in all sizes that divide the cluster's.
absl::StatusOr<std::vector<Question>> QuestionsOf(const QuestionLists& lists,
                                                  const PlanningFlags& planning);

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_PLANNING_QUESTIONS_H_
