#ifndef ORRERY_TOOLS_GOODPUT_GOODPUT_QUESTION_H_
#define ORRERY_TOOLS_GOODPUT_GOODPUT_QUESTION_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "simulator/goodput/best_interval.h"
#include "simulator/goodput/run_spec.h"
#include "tools/goodput/goodput_flags.h"
#include "tools/goodput/job_facts.h"

// The run that follows from what `goodput` is asked.

namespace orrery::tools {

/// A run to be played, as it is asked for.
struct GoodputQuestion {
  simulator::goodput::RunSpec spec = {};
  /// The tier that survives most: of its interval the best is told.
  std::string safest_tier = {};
  bool enough_spares = false;                  // nobody said how many there are
  simulator::goodput::BestInterval best = {};  // of that tier; 0 seconds: there is none
  std::vector<std::string> notes = {};
};

/// The run that follows from flags and facts, with the best interval where none is named: of runs
/// that are played so.
absl::StatusOr<GoodputQuestion> QuestionOf(const GoodputFlags& flags, const JobFacts& facts,
                                           const simulator::goodput::PlayManner& manner);

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_GOODPUT_GOODPUT_QUESTION_H_
