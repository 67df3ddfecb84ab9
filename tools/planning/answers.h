#ifndef ORRERY_TOOLS_PLANNING_ANSWERS_H_
#define ORRERY_TOOLS_PLANNING_ANSWERS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "search/search.h"
#include "search/views/run_cost.h"
#include "tools/planning/commands.h"
#include "tools/planning/planning_flags.h"
#include "tools/planning/questions.h"

// What came of each question, told side by side, and what to do next.

namespace orrery::tools {

/// The best of a question that has one. So many fields: what outlives the question.
struct Answer {
  std::string title;
  Question question;
  search::Result best;
  std::optional<search::Result> second = {};
  search::ParallelPlan base = {};
  int64_t devices = 0;  // of the cluster
  int64_t tokens_a_sample = 1;
  double sample_price = 0;            // 0: nobody says
  search::RunCost run = {};           // 0 steps: nobody says
  std::vector<Emitted> emitted = {};  // for each target of --emit
};

/// That of a search of `setting`, of which something is feasible.
Answer AnswerOf(const Question& question, const search::Setting& setting,
                const search::SearchRows& rows, const std::vector<EmitTarget>& targets);

/// One line for each: time, throughput, price, plan.
std::string BestsText(const std::vector<Answer>& answers);

/// Of each group that has several sizes: what more devices buy. The smallest that fits is what
/// others are held against.
std::string ScalingText(const std::vector<Answer>& answers);

/// The best by the goal: of throughput the most samples a second, of time the shortest run, or step
/// where nobody says how long a run is, of price the cheapest run, or sample. Of equals the first.
const Answer& WinnerOf(const std::vector<Answer>& answers, search::Goal goal);

/// Why none of the rows fits, in one line: by how much memory at least the one that comes closest
/// does not, or how many are infeasible otherwise.
std::string MisfitLine(const search::SettingOf& setting_of, const search::SearchRows& rows);

/// What to do next: the commands that play the answer and compare it with the second, and what
/// --emit asks for, printed, or written to its file.
absl::Status TellNext(const AskedCommand& asked, const Answer& answer,
                      const std::vector<EmitTarget>& targets);

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_PLANNING_ANSWERS_H_
