#include "tools/jitter/steps_report.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "support/json_text.h"
#include "support/number_text.h"
#include "support/units.h"

namespace orrery::tools {
namespace steps_report_cc {
namespace {

using search::StepsAnswer;
using simulator::Disturbances;
using simulator::Spread;
using simulator::StepFigures;

// Steps differ by parts of a thousand: four figures.
std::string Seconds(double seconds) {
  if (seconds == 0) return "0 s";
  const auto in = [seconds](double unit, absl::string_view name) {
    const double count = seconds / unit;
    const int digits = count >= 99.995 ? 1 : count >= 9.9995 ? 2 : 3;
    return absl::StrFormat("%.*f %s", digits, count, name);
  };
  return seconds >= 1 ? in(1, "s") : seconds >= 1e-3 ? in(1e-3, "ms") : in(1e-6, "us");
}

// By how much less the mean is without a source; a few thousandths are the draws of others.
std::string FasterText(double share) {
  if (std::abs(share) < 0.0005) return "no faster";
  return absl::StrFormat("%.1f %% %s", 100 * std::abs(share), share > 0 ? "faster" : "slower");
}

// "+1.1 %"; of nothing, however it was rounded, "+0.0 %".
std::string MoreText(double share) {
  return absl::StrFormat("%+.1f %%", std::abs(share) < 0.0005 ? 0.0 : 100 * share);
}

std::string Percent(double share) { return absl::StrFormat("%.1f %%", 100 * share); }

std::string Line(absl::string_view name, absl::string_view value) {
  return absl::StrFormat("  %-24s %s\n", name, value);
}

std::vector<std::pair<absl::string_view, const std::optional<Spread>*>> SpreadsOf(
    const Disturbances& of) {
  return {{"kernel", &of.kernel}, {"rank", &of.rank}, {"device", &of.device}, {"step", &of.step}};
}

std::string FoldingText(const StepsAnswer& answer) {
  const int64_t classes = std::ssize(answer.waits);
  int64_t ranks = 0;
  for (const search::RankWaits& row : answer.waits) ranks += row.ranks;
  const std::string folded =
      absl::StrCat(ranks, " ranks as ", classes, classes == 1 ? " class" : " classes");
  switch (answer.folding) {
    case search::StepsFolding::kEachRank:
      return absl::StrCat(ranks, ranks == 1 ? " rank" : " ranks, each by itself");
    case search::StepsFolding::kExact:
      return absl::StrCat(folded, " at the pace of their slowest, which is exact here");
    case search::StepsFolding::kFromBothSides:
      return absl::StrCat(folded, " at the pace of their slowest: times are bounds from above");
    case search::StepsFolding::kRoughly:
      return absl::StrCat(
          folded,
          " at the pace of their slowest, on links that they share or that are not alike: about");
  }
  return folded;
}

std::string WaitingText(const StepsAnswer& answer) {
  double waits = 0, undisturbed = 0, ranks = 0;
  for (const search::RankWaits& row : answer.waits) {
    waits += row.waits_s * static_cast<double>(row.ranks);
    undisturbed += row.undisturbed_s * static_cast<double>(row.ranks);
    ranks += static_cast<double>(row.ranks);
  }
  if (waits == 0) return "";
  return Line("waits for others", absl::StrCat(Seconds(waits / ranks), " a rank and step, ",
                                               Seconds(undisturbed / ranks), " undisturbed"));
}

std::string LateText(const StepsAnswer& answer) {
  constexpr size_t kMost = 4;
  if (answer.late.empty()) return "";
  std::vector<std::string> names;
  for (size_t i = 0; i < std::min(kMost, answer.late.size()); ++i) {
    names.push_back(absl::StrCat("rank ", answer.late[i].rank, " ", Percent(answer.late[i].share)));
  }
  if (answer.late.size() > kMost) names.push_back("…");
  std::string text = Line("waited for most", absl::StrJoin(names, ", "));
  const auto longest = std::ranges::max_element(answer.waits, {}, &search::RankWaits::for_it_s);
  if (longest->mostly_for < 0) return text;
  const std::string others =
      longest->ranks > 1 ? absl::StrCat(" and ", longest->ranks - 1, " alike") : "";
  return text + Line("waits most",
                     absl::StrCat("rank ", longest->rank, others, " for rank ", longest->mostly_for,
                                  ": ", Seconds(longest->for_it_s), " a step"));
}

std::string FiguresJson(const StepFigures& figures) {
  return absl::StrCat(
      "\"mean_s\": ", JsonNumber(figures.mean_s), ", \"p5_s\": ", JsonNumber(figures.p5_s),
      ", \"p50_s\": ", JsonNumber(figures.p50_s), ", \"p95_s\": ", JsonNumber(figures.p95_s),
      ", \"p99_s\": ", JsonNumber(figures.p99_s));
}

// A list of one line a row, within an object of the report.
template <typename Row, typename TextOf>
std::string Rows(const std::vector<Row>& rows, const TextOf& text_of) {
  std::string out;
  for (const Row& row : rows) {
    absl::StrAppend(&out, out.empty() ? "\n" : ",\n", "      {", text_of(row), "}");
  }
  return out.empty() ? "[]" : absl::StrCat("[", out, "\n    ]");
}

double Faster(const StepFigures& with, const StepFigures& without) {
  return with.mean_s > 0 ? 1 - without.mean_s / with.mean_s : 0;
}

absl::string_view FoldingName(search::StepsFolding folding) {
  switch (folding) {
    case search::StepsFolding::kEachRank:
      return "each rank";
    case search::StepsFolding::kExact:
      return "folded, exact";
    case search::StepsFolding::kFromBothSides:
      return "folded, bounds";
    case search::StepsFolding::kRoughly:
      return "folded, about";
  }
  return "";
}

}  // namespace
}  // namespace steps_report_cc

std::string DisturbancesText(const search::StepsQuestion& question) {
  const simulator::Disturbances& of = question.disturbances;
  std::vector<std::string> parts;
  for (const auto& [name, spread] : steps_report_cc::SpreadsOf(of)) {
    if (!spread->has_value()) continue;
    parts.push_back(absl::StrCat(name, " ", (*spread)->of->name, " ",
                                 ShortNumber(100 * (*spread)->spread), " %"));
  }
  if (of.pauses.has_value()) {
    parts.push_back(absl::StrCat("gc ", ToString(of.pauses->length), " every ",
                                 ToString(of.pauses->every),
                                 of.pauses->together ? ", all ranks at once" : ""));
  }
  for (const simulator::SlowRank& slow : of.slow) {
    parts.push_back(absl::StrCat("slow rank ", slow.rank, " x ", ShortNumber(slow.factor)));
  }
  for (const search::DegradedLinks& links : question.links) {
    parts.push_back(
        absl::StrCat(links.name, " links at ", ShortNumber(100 * links.share), " % of their rate"));
  }
  return parts.empty() ? "nothing disturbs them" : absl::StrJoin(parts, ", ");
}

std::string StepsText(const search::StepsQuestion& question, const search::StepsAnswer& answer) {
  using steps_report_cc::Line;
  using steps_report_cc::Seconds;
  const simulator::StepFigures& figures = answer.figures;
  const double undisturbed = answer.undisturbed.seconds();
  std::string text = absl::StrCat(
      question.steps, question.steps == 1 ? " step" : " steps", ", seed ",
      question.disturbances.seed, ": ", DisturbancesText(question), "\n",
      Line("step",
           absl::StrFormat("%s mean; p5 %s, p50 %s, p95 %s, p99 %s", Seconds(figures.mean_s),
                           Seconds(figures.p5_s), Seconds(figures.p50_s), Seconds(figures.p95_s),
                           Seconds(figures.p99_s))),
      Line("undisturbed",
           absl::StrFormat("%s; the mean is %s%s", Seconds(undisturbed),
                           steps_report_cc::MoreText(figures.mean_s / undisturbed - 1),
                           answer.own_stragglers ? "; without the cost model's own stragglers, as "
                                                   "ranks draw here"
                                                 : "")),
      Line("simulated", steps_report_cc::FoldingText(answer)));
  if (answer.at_least.has_value()) {
    absl::StrAppend(
        &text, Line("at least", absl::StrCat(Seconds(answer.at_least->mean_s), " mean; p50 ",
                                             Seconds(answer.at_least->p50_s),
                                             ", of ranks that wait for none of other replicas; "
                                             "each rank by itself: --most-unfolded-tasks")));
  }
  absl::StrAppend(&text, steps_report_cc::WaitingText(answer), steps_report_cc::LateText(answer));
  for (const search::WithoutSource& without : answer.without) {
    absl::StrAppend(&text, Line(absl::StrCat("without ", without.source),
                                absl::StrCat(Seconds(without.figures.mean_s), " mean, ",
                                             steps_report_cc::FasterText(
                                                 steps_report_cc::Faster(figures, without.figures)),
                                             "; p95 ", Seconds(without.figures.p95_s))));
  }
  return text;
}

std::string StepsJson(const search::StepsQuestion& question, const search::StepsAnswer& answer) {
  const auto time = [](std::string* out, Duration step) {
    absl::StrAppend(out, JsonNumber(step.seconds()));
  };
  std::string json = absl::StrCat(
      "{\n    \"count\": ", question.steps, ", \"seed\": ", question.disturbances.seed,
      ", \"disturbed_by\": ", JsonString(DisturbancesText(question)), ",\n    ",
      steps_report_cc::FiguresJson(answer.figures),
      ",\n    \"undisturbed_s\": ", JsonNumber(answer.undisturbed.seconds()),
      ", \"simulated\": ", JsonString(std::string(steps_report_cc::FoldingName(answer.folding))),
      ", \"tasks\": ", answer.tasks, ",\n    \"at_least\": ",
      answer.at_least.has_value()
          ? absl::StrCat("{", steps_report_cc::FiguresJson(*answer.at_least), "}")
          : "null");
  absl::StrAppend(
      &json, ",\n    \"waiting\": ", steps_report_cc::Rows(answer.waits, [](const auto& row) {
        return absl::StrCat("\"rank\": ", row.rank, ", \"ranks\": ", row.ranks,
                            ", \"waits_s\": ", JsonNumber(row.waits_s),
                            ", \"undisturbed_s\": ", JsonNumber(row.undisturbed_s),
                            ", \"mostly_for\": ",
                            row.mostly_for < 0 ? std::string("null") : absl::StrCat(row.mostly_for),
                            ", \"for_it_s\": ", JsonNumber(row.for_it_s));
      }));
  absl::StrAppend(
      &json, ",\n    \"waited_for\": ", steps_report_cc::Rows(answer.late, [](const auto& row) {
        return absl::StrCat("\"rank\": ", row.rank, ", \"share\": ", JsonNumber(row.share));
      }));
  absl::StrAppend(
      &json, ",\n    \"what_if\": ", steps_report_cc::Rows(answer.without, [&](const auto& row) {
        return absl::StrCat("\"without\": ", JsonString(row.source), ", ",
                            steps_report_cc::FiguresJson(row.figures), ", \"faster\": ",
                            JsonNumber(steps_report_cc::Faster(answer.figures, row.figures)));
      }));
  return absl::StrCat(json, ",\n    \"times_s\": [", absl::StrJoin(answer.times, ", ", time),
                      "]\n  }");
}

}  // namespace orrery::tools
