#include "transforms/substitutions/correct_mutant.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ir/op_kind.h"
#include "ir/tensor.h"
#include "support/status.h"
#include "transforms/substitutions/check_rule.h"
#include "transforms/substitutions/correction.h"
#include "transforms/substitutions/draw_rule.h"
#include "transforms/substitutions/size_algebra.h"
#include "transforms/substitutions/wrong_boxes.h"

namespace orrery::transforms::substitutions {
namespace correct_mutant_cc {
namespace {

constexpr int32_t kSamples = 600;
// Shapes of a regime beyond as many as there are sizes: that a sum fits all of these is no chance.
constexpr size_t kMoreSamples = 6;

using Samples = std::vector<const MutantSample*>;

// Borders of runs at the sizes of a sample.
std::optional<std::vector<AxisRuns>> At(const SizedBoxes& boxes, const MutantSample& sample) {
  std::vector<AxisRuns> runs;
  for (const SizedAxis& axis : boxes.axes) {
    AxisRuns along = {.axis = axis.axis, .runs = {}};
    int64_t last = 0;
    for (const SizedRun& run : axis.runs) {
      const std::optional<int64_t> begin = Evaluate(run.begin, sample.variables);
      const std::optional<int64_t> end = Evaluate(run.end, sample.variables);
      if (begin != last || !end.has_value() || *end <= *begin) return std::nullopt;
      last = *end;
      along.runs.push_back({.begin = *begin, .end = *end, .wrong = run.wrong});
    }
    if (last != sample.dims[FromFirst(axis.axis, sample.dims.size())]) return std::nullopt;
    runs.push_back(std::move(along));
  }
  return runs;
}

// Whether boxes cover all that is wrong there.
bool Cover(const SizedBoxes& boxes, const MutantSample& sample) {
  const std::optional<std::vector<AxisRuns>> runs = At(boxes, sample);
  if (!runs.has_value()) return false;
  for (ir::Odometer at(sample.dims, {}); !at.done(); at.Next()) {
    const bool covered = std::ranges::any_of(*runs, [&](const AxisRuns& axis) {
      const int64_t i = at.at()[FromFirst(axis.axis, sample.dims.size())];
      return std::ranges::any_of(axis.runs, [&](const AxisRun& run) {
        return run.wrong && run.begin <= i && i < run.end;
      });
    });
    const Element element = sample.elements[static_cast<size_t>(at.index())];
    if (element == Element::kWrong && !covered) return false;
  }
  return true;
}

// The sum of sizes that a number of each sample is.
template <typename NumberOf>
std::optional<Expression> Fit(const Samples& samples, NumberOf number_of) {
  std::vector<const Variables*> draws;
  std::vector<int64_t> values;
  for (const MutantSample* sample : samples) {
    draws.push_back(&sample->variables);
    values.push_back(number_of(*sample));
  }
  return FitSizes(draws, values);
}

// Borders of the runs of samples of one pattern; nothing where one is no sum of sizes.
std::optional<SizedBoxes> FitBoxes(const Samples& samples) {
  SizedBoxes boxes;
  for (const MutantSample* sample : samples) boxes.draws.push_back(&sample->variables);
  for (size_t a = 0; a < samples[0]->boxes->size(); ++a) {
    const AxisRuns& like = (*samples[0]->boxes)[a];
    SizedAxis axis = {.axis = like.axis, .runs = {}, .mutant_size = {}};
    Expression begin = Whole(0);
    for (size_t r = 0; r < like.runs.size(); ++r) {
      const std::optional<Expression> end =
          Fit(samples, [&](const MutantSample& sample) { return (*sample.boxes)[a].runs[r].end; });
      if (!end.has_value()) return std::nullopt;
      axis.runs.push_back({.begin = begin, .end = *end, .wrong = like.runs[r].wrong});
      begin = *end;
    }
    const std::optional<Expression> size = Fit(samples, [&](const MutantSample& sample) {
      return sample.mutant_dims[FromFirst(like.axis, sample.mutant_dims.size())];
    });
    if (!size.has_value()) return std::nullopt;
    axis.mutant_size = *size;
    boxes.axes.push_back(std::move(axis));
  }
  return boxes;
}

bool Holds(const AtMost& guard, const Variables& variables) {
  Rule rule;
  rule.guards = {guard};
  return AreAllowed(rule, variables);
}

bool HoldsAtAll(const AtMost& guard, const std::vector<const Variables*>& draws) {
  return std::ranges::all_of(draws, [&](const Variables* draw) { return Holds(guard, *draw); });
}

// That runs have elements, those of other regimes none, or some; and that a size is 0 or 1, or
// more.
std::vector<AtMost> Candidates(const SizedBoxes& own, const std::vector<SizedBoxes>& all) {
  std::vector<AtMost> guards;
  const auto add = [&](const AtMost& guard) {
    if (std::ranges::find(guards, guard) == guards.end()) guards.push_back(guard);
  };
  for (const SizedAxis& axis : own.axes) {
    for (const SizedRun& run : axis.runs) {
      add(Guard(AddTimes(run.begin, 1, Whole(1)), run.end));
    }
  }
  for (const SizedBoxes& boxes : all) {
    for (const SizedAxis& axis : boxes.axes) {
      for (const SizedRun& run : axis.runs) {
        add(Guard(run.end, run.begin));
        add(Guard(AddTimes(run.begin, 1, Whole(1)), run.end));
      }
    }
  }
  for (size_t i = 0; i < own.draws[0]->sizes.size(); ++i) {
    const Expression size = {.terms = {{.variables = {static_cast<int32_t>(i)}}}};
    for (const int64_t most : {0, 1}) {
      add(Guard(size, Whole(most)));
      add(Guard(Whole(most + 1), size));
    }
  }
  return guards;
}

// The guards that leave no sample in which something is wrong outside the boxes, each of which
// leaves out the most that those before do not. Nothing where no guards do.
std::optional<std::vector<AtMost>> Guards(const SizedBoxes& own, const std::vector<SizedBoxes>& all,
                                          const std::vector<MutantSample>& samples) {
  Samples bad;
  for (const MutantSample& sample : samples) {
    if (!Cover(own, sample)) bad.push_back(&sample);
  }
  std::vector<AtMost> candidates = Candidates(own, all);
  std::erase_if(candidates, [&](const AtMost& guard) { return !HoldsAtAll(guard, own.draws); });
  std::vector<AtMost> guards;
  while (!bad.empty()) {
    const auto left_out = [&](const AtMost& guard) {
      return std::ranges::count_if(
          bad, [&](const MutantSample* sample) { return !Holds(guard, sample->variables); });
    };
    const auto best = std::ranges::max_element(candidates, {}, left_out);
    if (best == candidates.end() || left_out(*best) == 0) return std::nullopt;
    guards.push_back(*best);
    std::erase_if(bad,
                  [&](const MutantSample* sample) { return !Holds(*best, sample->variables); });
  }
  return guards;
}

std::vector<MutantSample> DrawSamples(const Rule& mutant, uint64_t seed) {
  RandomBits random(seed);
  WorkTable works;
  std::vector<MutantSample> samples;
  constexpr int32_t kFirst = 6;  // each of many draws: where these find none, others take as long
  for (int32_t i = 0; i < kSamples && (i < kFirst || !samples.empty()); ++i) {
    const LargeSizes large = i % 2 == 0 ? LargeSizes::kNone : LargeSizes::kTwo;
    const std::optional<Variables> variables =
        DrawVariables(mutant, {.large = large}, random, works);
    if (!variables.has_value()) continue;
    std::optional<MutantSample> sample = Sample(mutant, *variables, random, works);
    if (sample.has_value()) samples.push_back(*std::move(sample));
  }
  return samples;
}

// A regime: where its boxes are, as far as sums of sizes say it.
struct Regime {
  std::string pattern;
  std::optional<SizedBoxes> boxes;
};

// Regimes that have elements that are right, and shapes enough.
std::vector<Regime> RegimesOf(const Rule& mutant, const std::vector<MutantSample>& samples) {
  std::map<std::string, Samples> by_pattern;
  for (const MutantSample& sample : samples) {
    if (sample.boxes.has_value()) by_pattern[sample.Pattern()].push_back(&sample);
  }
  std::vector<Regime> regimes;
  for (const auto& [pattern, of_pattern] : by_pattern) {
    const bool wrong = std::ranges::any_of(*of_pattern[0]->boxes, [](const AxisRuns& axis) {
      return std::ranges::all_of(axis.runs, &AxisRun::wrong);
    });
    if (wrong || of_pattern.size() < mutant.sizes.size() + kMoreSamples) continue;
    regimes.push_back({.pattern = pattern, .boxes = FitBoxes(of_pattern)});
  }
  return regimes;
}

// The rule of a regime, checked.
absl::StatusOr<Rule> RuleOf(const Rule& mutant, const SizedBoxes& own,
                            const std::vector<SizedBoxes>& all,
                            const std::vector<MutantSample>& samples) {
  ORRERY_ASSIGN_OR_RETURN(Rule rule, Correct(mutant, own));
  const std::optional<std::vector<AtMost>> guards = Guards(own, all, samples);
  if (!guards.has_value()) {
    return absl::InvalidArgumentError("no sizes tell where it is equal from where it is not");
  }
  rule.guards.insert(rule.guards.end(), guards->begin(), guards->end());
  return rule;
}

// The same with a bias behind the inputs that all convolutions of both sides add: boxes stay where
// they are. Nothing of products, or where there is one.
std::optional<Rule> WithBias(const Rule& rule) {
  const RuleOp& original = rule.left.ops[0];
  if (original.kind != ir::OpKind::kConv || original.operands.size() > 2) return std::nullopt;
  Rule with = rule;
  const auto bias = static_cast<int32_t>(rule.inputs.size());
  const auto weights = static_cast<size_t>(original.operands[1]);
  with.name += "_with_bias";
  with.inputs.push_back({.name = "bias", .dims = {rule.inputs[weights].dims[0]}});
  for (RuleSide* side : {&with.left, &with.right}) {
    const auto make_room = [&](int32_t& value) { value += value < bias ? 0 : 1; };
    for (RuleOp& op : side->ops) {
      std::ranges::for_each(op.operands, make_room);
      if (op.kind == ir::OpKind::kConv) op.operands.push_back(bias);
    }
    std::ranges::for_each(side->returns, make_room);
  }
  return with;
}

// Adds a rule where it holds, and else why not.
void AddChecked(Rule rule, absl::string_view pattern, const Generation& options,
                CorrectedMutant& corrected) {
  const absl::Status status = CheckRule(rule, {.shapes = options.shapes, .seed = options.seed});
  if (!status.ok()) {
    corrected.refused.push_back(absl::StrCat("[", pattern, "] ", status.message()));
    return;
  }
  rule.proof.shapes = options.shapes;
  corrected.rules.push_back(std::move(rule));
}

}  // namespace
}  // namespace correct_mutant_cc

absl::StatusOr<CorrectedMutant> CorrectMutant(const Rule& mutant, const Generation& options) {
  ORRERY_RETURN_IF_ERROR(CheckOriginal(mutant));
  const std::vector<MutantSample> samples = correct_mutant_cc::DrawSamples(mutant, options.seed);
  if (samples.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("mutant @", mutant.name, " (line ", mutant.line,
                     "): no sizes were found at which both sides can be computed, are small enough "
                     "to be executed and have as many dimensions"));
  }
  CorrectedMutant corrected;
  corrected.samples = static_cast<int32_t>(samples.size());
  const auto regimes = correct_mutant_cc::RegimesOf(mutant, samples);
  corrected.regimes = static_cast<int32_t>(regimes.size());
  std::vector<SizedBoxes> all;
  for (const auto& regime : regimes) {
    if (regime.boxes.has_value()) all.push_back(*regime.boxes);
  }
  for (size_t i = 0; i < regimes.size(); ++i) {
    const auto& regime = regimes[i];
    absl::StatusOr<Rule> rule = absl::InvalidArgumentError("its borders are no sums of sizes");
    if (regime.boxes.has_value()) {
      rule = correct_mutant_cc::RuleOf(mutant, *regime.boxes, all, samples);
    }
    if (!rule.ok()) {
      corrected.refused.push_back(absl::StrCat("[", regime.pattern, "] ", rule.status().message()));
      continue;
    }
    rule->name = absl::StrCat(mutant.name, "_", i + 1);
    const std::optional<Rule> with_bias = correct_mutant_cc::WithBias(*rule);
    correct_mutant_cc::AddChecked(*std::move(rule), regime.pattern, options, corrected);
    if (!with_bias.has_value()) continue;
    correct_mutant_cc::AddChecked(*with_bias, regime.pattern, options, corrected);
  }
  return corrected;
}

std::string SectionOf(const Rule& mutant, const CorrectedMutant& corrected) {
  std::string text =
      absl::StrCat("\n// @", mutant.name, ": ", corrected.samples, " shapes, ", corrected.regimes,
                   " ways of boxes to stand, ", corrected.refused.size(),
                   " of these refused: ", corrected.rules.size(),
                   corrected.rules.size() == 1 ? " rule.\n" : " rules.\n");
  for (const std::string& why : corrected.refused)
    absl::StrAppend(&text, "// Refused: ", why, "\n");
  for (const Rule& rule : corrected.rules) absl::StrAppend(&text, "\n", Print(rule));
  return text;
}

absl::StatusOr<std::string> GenerateMutants(absl::string_view mutants, const Generation& options) {
  ORRERY_ASSIGN_OR_RETURN(const std::vector<Rule> all, ParseMutants(mutants));
  std::string text =
      "// Mutants with the kernels that correct them, as opt --generate-substitutions makes them "
      "of "
      "a\n// file of mutants, such as nearly.rules.\n";
  for (const Rule& mutant : all) {
    ORRERY_ASSIGN_OR_RETURN(const CorrectedMutant corrected, CorrectMutant(mutant, options));
    absl::StrAppend(&text, SectionOf(mutant, corrected));
  }
  return text;
}

}  // namespace orrery::transforms::substitutions
