#include "tools/validation/fit.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "support/status.h"
#include "support/threads.h"
#include "tools/terminal/interrupt.h"
#include "tools/terminal/progress.h"
#include "tools/validation/predict_step.h"

namespace orrery::tools {
namespace fit_cc {
namespace {

// A row that is taken.
struct Row {
  const MeasuredStep* step;
  RowUse use;
  int32_t group;  // of its source and split
  bool fitted;
};

// A row that is fitted, and what it was parallelized into.
struct FittedRow {
  Row row;
  StepWay way;
};

// Rows that may be taken, in their order.
std::vector<Row> CandidatesOf(std::span<const MeasuredStep> steps, const FittedFigures& figures) {
  std::vector<Row> rows;
  std::map<std::pair<std::string, std::string>, int32_t> groups;
  for (const MeasuredStep& step : steps) {
    if (step.seconds <= 0) continue;
    const absl::StatusOr<RowUse> use = RowUseOf(step, figures);
    if (!use.ok()) continue;
    const auto group =
        groups.try_emplace({step.source, step.split}, static_cast<int32_t>(groups.size())).first;
    rows.push_back({.step = &step,
                    .use = *use,
                    .group = group->second,
                    .fitted = step.split == "calibration"});
  }
  return rows;
}

// At most so many of each group, evenly spread.
std::vector<Row> Thinned(const std::vector<Row>& rows, size_t most) {
  std::map<int32_t, size_t> counts, seen;
  for (const Row& row : rows) ++counts[row.group];
  std::vector<Row> thinned;
  for (const Row& row : rows) {
    const size_t count = counts[row.group], number = seen[row.group]++;
    const bool taken = count <= most || number * most / count != (number + 1) * most / count;
    if (taken) thinned.push_back(row);
  }
  return thinned;
}

// What a fit of these rows about asks for: slopes once, errors now and then, before and after.
int64_t PredictionsFor(std::span<const Row> rows, std::span<const FitParameter> parameters) {
  constexpr int64_t kErrors = 5;
  int64_t predictions = 0;
  for (const Row& row : rows) {
    predictions += 2;
    if (!row.fitted) continue;
    predictions += kErrors + std::ranges::count_if(parameters, [&](const auto& each) {
                     return Tells(row.use, each);
                   });
  }
  return predictions;
}

// As many of each source and split as the budget lasts for.
std::vector<Row> TakenOf(const std::vector<Row>& candidates,
                         std::span<const FitParameter> parameters, int64_t most_predictions) {
  constexpr size_t kMostRows = 64, kLeastRows = 3;
  std::vector<Row> rows;
  for (size_t most = kMostRows; most >= kLeastRows; --most) {
    rows = Thinned(candidates, most);
    if (PredictionsFor(rows, parameters) <= most_predictions) break;
  }
  return rows;
}

// Errors and slopes of rows by simulation. What rows are parallelized into does not change on the
// way, and is not chosen again.
class Simulated {
 public:
  Simulated(const FitOptions& options, FittedFigures all, std::vector<FittedRow> rows,
            std::vector<FitParameter> parameters)
      : options_(options),
        all_(std::move(all)),
        rows_(std::move(rows)),
        parameters_(std::move(parameters)) {}

  std::vector<double> Errors(const std::vector<double>& moves) const {
    const FittedFigures figures = After(all_, parameters_, moves);
    std::vector<double> errors(rows_.size(), 0);
    ForEachOnThreads(rows_.size(), static_cast<size_t>(options_.threads),
                     [&](size_t i) { errors[i] = ErrorOf(i, figures).value_or(kUnpredicted); });
    return errors;
  }

  std::vector<std::vector<double>> Slopes(const std::vector<double>& moves,
                                          const std::vector<double>& errors) const {
    constexpr double kStep = 0.1;
    std::vector<std::vector<double>> slopes(rows_.size(),
                                            std::vector<double>(parameters_.size(), 0));
    std::vector<std::pair<size_t, size_t>> asked;
    for (size_t i = 0; i < rows_.size(); ++i) {
      for (size_t j = 0; j < parameters_.size(); ++j) {
        if (Tells(rows_[i].row.use, parameters_[j])) asked.emplace_back(i, j);
      }
    }
    ForEachOnThreads(asked.size(), static_cast<size_t>(options_.threads), [&](size_t a) {
      const auto [i, j] = asked[a];
      std::vector<double> to = moves;
      const double step = to[j] + kStep > parameters_[j].range().most ? -kStep : kStep;
      to[j] += step;
      const std::optional<double> error = ErrorOf(i, After(all_, parameters_, to));
      if (error.has_value()) slopes[i][j] = (*error - errors[i]) / step;
    });
    return slopes;
  }

 private:
  static constexpr double kUnpredicted = 1;

  std::optional<double> ErrorOf(size_t row, const FittedFigures& figures) const {
    const MeasuredStep& step = *rows_[row].row.step;
    const absl::StatusOr<double> seconds =
        PredictAgain(step, options_.cost_model, figures, *rows_[row].way);
    if (!seconds.ok() || *seconds <= 0) return std::nullopt;
    return std::log(*seconds / step.seconds);
  }

  const FitOptions& options_;
  FittedFigures all_;
  std::vector<FittedRow> rows_;
  std::vector<FitParameter> parameters_;
};

// The owners of which a figure has moved; devices say what their rates were fitted on.
FittedFigures MovedOf(const FittedFigures& all, const FitReport& report,
                      const std::string& sources) {
  std::set<std::pair<FitOwner, std::string>> moved;
  for (size_t j = 0; j < report.parameters.size(); ++j) {
    const FitParameter& parameter = report.parameters[j];
    if (report.fit.moves[j] != 0) moved.emplace(parameter.owner, parameter.name);
  }
  FittedFigures figures = After(all, report.parameters, report.fit.moves);
  std::erase_if(figures.devices, [&](const cluster::Device& device) {
    return !moved.contains({FitOwner::kDevice, device.name});
  });
  for (cluster::Device& device : figures.devices) {
    device.rates.source =
        absl::StrCat("validate --fit on ", sources, "; the rest: ", device.rates.source);
  }
  std::erase_if(figures.collectives, [&](const cluster::CollectiveProfile& profile) {
    return !moved.contains({FitOwner::kCollectives, profile.name});
  });
  std::erase_if(figures.stacks, [&](const auto& stack) {
    return !moved.contains({FitOwner::kStack, stack.first});
  });
  return figures;
}

std::string SourcesOf(std::span<const FittedRow> rows) {
  std::vector<std::string> names;
  for (const FittedRow& each : rows) {
    const std::string& source = each.row.step->source;
    if (std::ranges::find(names, source) == names.end()) names.push_back(source);
  }
  return absl::StrCat(rows.size(), " rows of ", absl::StrJoin(names, ", "));
}

}  // namespace
}  // namespace fit_cc

std::vector<PredictedStep> PredictSteps(std::span<const MeasuredStep> steps,
                                        absl::string_view cost_model, const FittedFigures& figures,
                                        int32_t threads) {
  std::vector<std::optional<PredictedStep>> found(steps.size());
  Progress progress("rows", steps.size());
  ForEachOnThreads(steps.size(), static_cast<size_t>(threads), [&](size_t i) {
    if (CaughtSignal() != 0) return;
    found[i] = Predict(steps[i], cost_model, &figures);
    progress.Done();
  });
  std::vector<PredictedStep> predicted;
  for (std::optional<PredictedStep>& step : found) {
    if (step.has_value()) predicted.push_back(std::move(*step));
  }
  return predicted;
}

absl::StatusOr<FitReport> Fit(std::span<const MeasuredStep> steps, const FitOptions& options) {
  using namespace fit_cc;  // NOLINT(google-build-using-namespace): this file's own
  const std::vector<Row> candidates = CandidatesOf(steps, options.start);
  std::vector<RowUse> uses;
  for (const Row& row : candidates) {
    if (row.fitted) uses.push_back(row.use);
  }
  ORRERY_ASSIGN_OR_RETURN(const FittedFigures all, WithOwners(uses, options.start));
  FitReport report;
  report.parameters = ParametersOf(uses, all);
  std::vector<MeasuredStep> taken;
  std::vector<Row> rows;
  for (const Row& row : TakenOf(candidates, report.parameters, options.most_predictions)) {
    taken.push_back(*row.step);
    rows.push_back(row);
  }
  report.before.resize(rows.size());
  std::vector<StepWay> ways(rows.size());
  ForEachOnThreads(rows.size(), static_cast<size_t>(options.threads), [&](size_t i) {
    report.before[i] =
        Predict(taken[i], options.cost_model, &options.start, rows[i].fitted ? &ways[i] : nullptr);
  });
  std::vector<FittedRow> fitted;
  for (size_t i = 0; i < rows.size(); ++i) {
    report.fitted.push_back(rows[i].fitted && report.before[i].seconds > 0);
    if (report.fitted[i]) fitted.push_back({rows[i], std::move(ways[i])});
  }
  if (fitted.empty()) {
    return absl::FailedPreconditionError(
        "--fit: no row with split \"calibration\" has a time that can be predicted; wanted some");
  }
  FitProblem problem;
  for (const FittedRow& each : fitted) problem.groups.push_back(each.row.group);
  for (const FitParameter& parameter : report.parameters) {
    problem.ranges.push_back(parameter.range());
  }
  const std::string sources = SourcesOf(fitted);
  const Simulated simulated(options, all, std::move(fitted), report.parameters);
  std::vector<std::vector<double>> slopes;
  problem.errors = [&](const std::vector<double>& moves) { return simulated.Errors(moves); };
  problem.slopes = [&](const std::vector<double>& moves, const std::vector<double>& errors) {
    return slopes = simulated.Slopes(moves, errors);
  };
  report.fit = FitRobustly(problem);
  constexpr double kTells = 0.002;  // of a move
  for (size_t j = 0; j < report.parameters.size(); ++j) {
    report.telling.push_back(std::ranges::count_if(
        slopes, [&](const std::vector<double>& row) { return std::abs(row[j]) > kTells; }));
  }
  report.figures = MovedOf(all, report, sources);
  const FittedFigures after = After(all, report.parameters, report.fit.moves);
  report.after = PredictSteps(taken, options.cost_model, after, options.threads);
  return report;
}

}  // namespace orrery::tools
