#ifndef ORRERY_TOOLS_GOODPUT_GOODPUT_FILES_H_
#define ORRERY_TOOLS_GOODPUT_GOODPUT_FILES_H_

#include <string>
#include <utility>
#include <vector>

#include "simulator/goodput/trials.h"
#include "tools/goodput/goodput_question.h"

// What `goodput` leaves and prints.

namespace orrery::tools {

/// All that was played.
struct GoodputAnswer {
  GoodputFlags flags;
  JobFacts facts = {};
  GoodputQuestion question = {};
  std::vector<simulator::goodput::TrialResult> results = {};
  simulator::goodput::RunSummary summary = {};
};

/// What is told of all runs, a name and a text each: "step", "7 s".
std::vector<std::pair<std::string, std::string>> GoodputLines(const GoodputAnswer& answer);

/// The report as people read it.
std::string GoodputText(const GoodputAnswer& answer);

/// One run of it, a line an episode.
std::string TimelineText(const std::vector<simulator::goodput::Episode>& episodes);

/// The answer as JSON: docs/goodput.md names the keys.
std::string GoodputJson(const GoodputAnswer& answer);

/// A row a run.
std::string GoodputCsv(const GoodputAnswer& answer);

/// One run in the Trace Event Format, for chrome://tracing and ui.perfetto.dev.
std::string EpisodesTrace(const std::vector<simulator::goodput::Episode>& episodes);

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_GOODPUT_GOODPUT_FILES_H_
