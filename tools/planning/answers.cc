#include "tools/planning/answers.h"

#include <algorithm>
#include <iostream>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "search/bounds/least_memory.h"
#include "support/check.h"
#include "support/file.h"
#include "support/number_text.h"
#include "transforms/plan/plan_text.h"

namespace orrery::tools {
namespace answers_cc {
namespace {

using search::Goal;

// Smaller is better.
double SizeOf(const Answer& answer, Goal goal) {
  switch (goal) {
    case Goal::kMemory:
      return static_cast<double>(answer.best.peak_memory.count());
    case Goal::kPrice:
      return answer.run.steps > 0 ? answer.run.price : answer.sample_price;
    case Goal::kTime:
      return answer.run.steps > 0 ? answer.run.seconds : answer.best.step_time.seconds();
    case Goal::kThroughput:
      break;
  }
  return -answer.best.figures.throughput_samples_per_s;
}

// A row of what more devices buy, beside the smallest size.
std::string ScalingRow(const Answer& answer, const Answer& smallest) {
  const double rate = answer.best.figures.throughput_samples_per_s;
  const double speedup = rate / smallest.best.figures.throughput_samples_per_s;
  const double more = static_cast<double>(answer.devices) / static_cast<double>(smallest.devices);
  std::string costs;
  if (answer.run.steps > 0) costs = absl::StrFormat(" %9s", search::AmountText(answer.run.days()));
  if (answer.sample_price > 0) {
    absl::StrAppendFormat(&costs, " %13s",
                          answer.run.steps > 0 ? search::AmountText(answer.run.price)
                                               : absl::StrFormat("%.4g", answer.sample_price));
  }
  return absl::StrFormat("%8d %12s %10s %8.2fx %10.1f%% %6.1f%% %10s%s  %s\n", answer.devices,
                         ToString(answer.best.step_time), ShortNumber(rate), speedup,
                         100 * speedup / more, 100 * answer.best.figures.mfu,
                         ToString(answer.best.peak_memory), costs,
                         transforms::ToString(answer.best.plan, answer.base));
}

std::string ScalingTable(const std::vector<const Answer*>& sizes) {
  const Answer& first = *sizes.front();
  const bool run = first.run.steps > 0, priced = first.sample_price > 0;
  std::string text = absl::StrFormat(
      "\nwhat more devices buy, %s, batch %d:\n%8s %12s %10s %9s %11s %7s %10s%s%s\n",
      first.question.model.model, first.question.model.batch_size, "devices", "step", "samples/s",
      "speedup", "efficiency", "MFU", "memory", run ? "      days" : "",
      !priced ? ""
      : run   ? "     price/run"
              : "  price/sample");
  for (const Answer* size : sizes) text += ScalingRow(*size, first);
  return text;
}

// The notes, as lines that the system passes over or for people; then the text.
std::string WithNotes(const Emitted& emitted, absl::string_view comment) {
  std::string text;
  for (const std::string& note : emitted.notes) absl::StrAppend(&text, comment, note, "\n");
  return text + emitted.text;
}

absl::Status TellEmitted(const EmitTarget& target, const Emitted& emitted) {
  const Emitter& emitter = *target.emitter;
  if (target.file.empty()) {
    std::cout << "\n" << emitter.summary << ":\n" << WithNotes(emitted, "# ");
    return absl::OkStatus();
  }
  std::cout << "\n" << emitter.summary << ": " << target.file << "\n";
  // A file without comments has its notes here.
  if (emitter.comment.empty()) std::cout << WithNotes({"", emitted.notes}, "# ");
  return WriteFile(target.file,
                   emitter.comment.empty() ? emitted.text : WithNotes(emitted, emitter.comment));
}

}  // namespace
}  // namespace answers_cc

Answer AnswerOf(const Question& question, const search::Setting& setting,
                const search::SearchRows& rows, const std::vector<EmitTarget>& targets) {
  const std::vector<const search::Result*> ranked = search::Ranked(rows);
  ORRERY_CHECK(!ranked.empty()) << "an answer of which nothing is feasible";
  Answer answer = {.title = absl::StrCat(setting.model_name, ", batch ", setting.batch_size,
                                         ", on ", setting.cluster.name),
                   .question = question,
                   .best = *ranked.front(),
                   .base = setting.base,
                   .devices = setting.cluster.size(),
                   .tokens_a_sample = setting.tokens_a_sample,
                   .sample_price = search::PriceOfSample(setting, *ranked.front()),
                   .run = search::CostOfRun(setting, *ranked.front())};
  if (ranked.size() > 1) answer.second = *ranked[1];
  const std::string& optimizer = question.model.optimizer;
  for (const EmitTarget& target : targets) {
    answer.emitted.push_back(
        Emit(*target.emitter, {setting, answer.best.plan, optimizer.empty() ? "adam" : optimizer}));
  }
  return answer;
}

std::string BestsText(const std::vector<Answer>& answers) {
  std::string text = "\nbest of each:\n";
  for (const Answer& answer : answers) {
    absl::StrAppend(
        &text, answer.title, ": ", ToString(answer.best.step_time), ", ",
        ShortNumber(answer.best.figures.throughput_samples_per_s), " samples/s",
        answer.sample_price > 0 ? absl::StrFormat(", %.4g a sample", answer.sample_price) : "",
        ": ", transforms::ToString(answer.best.plan, answer.base), "\n");
  }
  return text;
}

std::string ScalingText(const std::vector<Answer>& answers) {
  std::map<size_t, std::vector<const Answer*>> groups;
  for (const Answer& answer : answers) groups[answer.question.group].push_back(&answer);
  std::string text;
  for (const auto& [group, sizes] : groups) {
    if (sizes.front()->question.is_of_table) text += answers_cc::ScalingTable(sizes);
  }
  return text;
}

const Answer& WinnerOf(const std::vector<Answer>& answers, search::Goal goal) {
  ORRERY_CHECK(!answers.empty()) << "no answer";
  return *std::ranges::min_element(answers, {}, [goal](const Answer& answer) {
    return std::pair(answers_cc::SizeOf(answer, goal), answer.best.step_time);
  });
}

std::string MisfitLine(const search::SettingOf& setting_of, const search::SearchRows& rows) {
  std::optional<size_t> closest;
  int64_t left = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    left += rows.IsLeft(i) ? 1 : 0;
    if (rows.IsPruned(i) || rows.IsLeft(i)) continue;
    const search::Result* const played = rows.Played(i);
    const bool memory =
        played == nullptr ||
        (played->infeasible.has_value() && played->infeasible->reason == InfeasibleReason::kMemory);
    if (memory && (!closest.has_value() || rows.MemoryOf(i) < rows.MemoryOf(*closest))) closest = i;
  }
  const std::string doubt =
      left > 0 ? absl::StrCat("; not sure: ", left, " candidates are left, try more --budget") : "";
  if (!closest.has_value()) {
    return absl::StrCat(rows.size(), " candidates, none of which can be played", doubt);
  }
  const search::Result row = rows[*closest];
  const search::Setting& setting = setting_of(row.plan);
  const Bytes limit = search::MemoryLimit(setting, row.plan), need = row.peak_memory;
  return absl::StrCat("needs ", ToString(need), row.ran ? " a rank, " : " a rank at least, ",
                      need > limit ? ToString(need - limit) : "more",
                      " too much: ", transforms::ToString(row.plan, setting.base), doubt);
}

absl::Status TellNext(const AskedCommand& asked, const Answer& answer,
                      const std::vector<EmitTarget>& targets) {
  std::cout << "play it:   " << SimulateCommand(asked, answer.best.plan) << "\n";
  if (answer.second.has_value()) {
    std::cout << "compare:   " << CompareCommand(asked, answer.best.plan, answer.second->plan)
              << "\n";
  }
  if (targets.empty()) {
    std::cout << "train so:  --emit " << EmitterNames() << " beside these flags\n";
  }
  absl::Status status;
  for (size_t i = 0; i < targets.size(); ++i) {
    status.Update(answers_cc::TellEmitted(targets[i], answer.emitted[i]));
  }
  return status;
}

}  // namespace orrery::tools
