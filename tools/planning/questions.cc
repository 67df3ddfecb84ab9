#include "tools/planning/questions.h"

#include "cluster/resize.h"
#include "support/status.h"
#include "tools/model_columns.h"
#include "tools/search_lists.h"

namespace orrery::tools {
namespace questions_cc {
namespace {

// The cluster in all sizes that are asked for.
absl::StatusOr<std::vector<std::string>> SizesOf(const std::string& cluster,
                                                 const PlanningFlags& planning) {
  if (planning.gpus.empty() && !planning.fits_on) return std::vector<std::string>{cluster};
  std::vector<int64_t> sizes;
  if (planning.gpus.empty()) {
    ORRERY_ASSIGN_OR_RETURN(sizes, Annotated(cluster::SmallerSizes(cluster), "--fits-on"));
  } else {
    ORRERY_ASSIGN_OR_RETURN(sizes, Annotated(ParseSizes(planning.gpus), "--gpus"));
  }
  std::vector<std::string> specs;
  for (const int64_t size : sizes) {
    ORRERY_ASSIGN_OR_RETURN(specs.emplace_back(),
                            Annotated(cluster::ResizedSpec(cluster, size), "--gpus"));
  }
  return specs;
}

}  // namespace
}  // namespace questions_cc

absl::StatusOr<std::vector<Question>> QuestionsOf(const QuestionLists& lists,
                                                  const PlanningFlags& planning) {
  const std::vector<std::string> clusters = SplitNames(lists.model.cluster, /*plain=*/false);
  ORRERY_ASSIGN_OR_RETURN(const std::vector<double> prices,
                          Annotated(ParsePrices(planning.price, clusters.size()), "--price"));
  std::vector<std::vector<std::string>> sizes;
  for (const std::string& cluster : clusters) {
    ORRERY_ASSIGN_OR_RETURN(sizes.emplace_back(), questions_cc::SizesOf(cluster, planning));
  }
  const std::vector<std::string> models = SplitNames(lists.model.model, /*plain=*/true);
  const std::vector<std::string> columns = ModelColumnNames(models);
  std::vector<Question> questions;
  size_t group = 0;
  for (const std::string& model : models) {
    for (size_t c = 0; c < clusters.size(); ++c) {
      for (const int64_t batch_size : lists.batch_sizes) {
        for (const std::string& cluster : sizes[c]) {
          Question& question = questions.emplace_back(
              Question{lists.model, prices[c], group, sizes[c].size() > 1 && !planning.fits_on,
                       ModelColumnsOf(model, columns)});
          question.model.model = model;
          question.model.cluster = cluster;
          question.model.batch_size = batch_size;
        }
        ++group;
      }
    }
  }
  return questions;
}

}  // namespace orrery::tools
