#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "support/csv.h"
#include "support/file.h"
#include "support/json_number.h"
#include "support/status.h"
#include "tools/redistribution/redistribution.h"
#include "tools/terminal/interrupt.h"
#include "tools/terminal/progress.h"

// Redistributions that others have planned, planned again.

namespace orrery::tools {
namespace redistribution_cases_cc {
namespace {

using nlohmann::json;

// As they are written: who reads the text says what is wrong with a fraction or 1e308. Throws where
// there is no list of numbers.
std::string Numbers(const json& list, absl::string_view between = ",") {
  std::vector<std::string> numbers;
  for (const json& number : list.get<std::vector<json>>()) {
    const std::optional<int64_t> whole = WholeNumber(number);
    numbers.push_back(whole.has_value() ? absl::StrCat(*whole)
                                        : absl::StrCat(number.get<double>()));
  }
  return absl::StrJoin(numbers, between);
}

// [[0, 1], []] as "(0,1),-".
std::string Mapping(const json& lists) {
  std::vector<std::string> dims;
  for (const json& list : lists) {
    dims.push_back(list.empty() ? "-" : absl::StrCat("(", Numbers(list), ")"));
  }
  return absl::StrJoin(dims, ",");
}

// [100, -1] as "100,-".
std::string Blocks(const json& list) {
  std::vector<std::string> blocks;
  for (const json& block : list.get<std::vector<json>>()) {
    const bool whole = block.get<double>() < 0;
    blocks.push_back(whole ? "-" : Numbers(json::array({block})));
  }
  return absl::StrJoin(blocks, ",");
}

// ["S0", "Psum"] and {"0": [1, 0]} as "S0,Psum order(0:1.0)".
std::string Placements(const json& list, const json& order) {
  std::string text = absl::StrJoin(list.get<std::vector<std::string>>(), ",");
  if (!order.is_object() || order.empty()) return text;
  std::vector<std::string> dims;
  for (const auto& [dim, axes] : order.items()) {
    dims.push_back(absl::StrCat(dim, ":", Numbers(axes, ".")));
  }
  return absl::StrCat(text, " order(", absl::StrJoin(dims, ","), ")");
}

// A record as the command line would have it, and what its format is priced by.
struct Record {
  RedistributionText text;
  std::string cost;
};

Record ReadRecord(const json& record) {
  RedistributionText text;
  text.mesh = Numbers(record.at("mesh"));
  text.shape = Numbers(record.at("shape"));
  if (record.contains("source")) {
    text.from = record.at("source").get<std::string>();
    text.to = record.at("target").get<std::string>();
    return {.text = std::move(text), .cost = "tensorcraft"};
  }
  if (record.contains("source_mapping")) {
    text.from = Mapping(record.at("source_mapping"));
    text.to = Mapping(record.at("target_mapping"));
    text.from_blocks = Blocks(record.at("source_blocks"));
    text.to_blocks = Blocks(record.at("target_blocks"));
    return {.text = std::move(text), .cost = "tensorcraft"};
  }
  text.itemsize = WholeNumber(record.value("itemsize", json(4))).value_or(-1);
  text.from = Placements(record.at("src"), record.value("src_shard_order", json()));
  text.to = Placements(record.at("dst"), record.value("dst_shard_order", json()));
  return {.text = std::move(text),
          .cost = absl::StrCat("dtensor:devices_per_host=",
                               Numbers(json::array({record.value("devices_per_host", json(8))})))};
}

// In quotes, with none inside, on one line: what reads line by line gets by.
std::string SimplyQuoted(absl::string_view text) {
  return CsvQuoted(absl::StrReplaceAll(text, {{"\"", "'"}, {"\n", " "}}));
}

std::string NameField(const std::string& name) {
  return name.find_first_of("\"\n") == std::string::npos ? CsvField(name) : SimplyQuoted(name);
}

struct Planned {
  redistribution::RedistributionPlan plan;
  double seconds = 0;
};

absl::StatusOr<Planned> PlanRecord(const json& record, const RedistributionCases& cases) {
  const Record read = ReadRecord(record);
  ORRERY_ASSIGN_OR_RETURN(const WrittenProblem written, ParseRedistribution(read.text));
  const auto start = std::chrono::steady_clock::now();
  ORRERY_ASSIGN_OR_RETURN(
      const Redistributor question,
      Redistributor::Create(written.problem, cases.cost.empty() ? read.cost : cases.cost,
                            cases.cost_model));
  ORRERY_ASSIGN_OR_RETURN(const int64_t limit, ParseElementLimit(cases.limit, question));
  Planned planned;
  ORRERY_ASSIGN_OR_RETURN(planned.plan, question.Plan(cases.planner, limit));
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  planned.seconds = took.count();
  return planned;
}

absl::StatusOr<Planned> TryRecord(const json& record, const RedistributionCases& cases) {
  try {
    return PlanRecord(record, cases);
  } catch (const json::exception& error) {
    return absl::InvalidArgumentError(error.what());
  }
}

}  // namespace
}  // namespace redistribution_cases_cc

absl::StatusOr<std::string> PlanRedistributionCases(const RedistributionCases& cases) {
  ORRERY_ASSIGN_OR_RETURN(const std::string text, ReadFile(cases.path));
  const nlohmann::json file = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!file.is_object() || !file.contains("cases") || !file["cases"].is_array()) {
    return absl::InvalidArgumentError(
        absl::StrCat(cases.path,
                     ": wanted a JSON object with a list \"cases\", as in "
                     "tests/data/redistribution_tensorcraft.json"));
  }
  std::string csv = "name,total_cost,peak_elements,planning_s,note\n";
  int64_t number = 0;
  Progress progress("records", file["cases"].size());
  for (const nlohmann::json& record : file["cases"]) {
    if (CaughtSignal() != 0) break;  // what is done is told
    const bool named = record.is_object() && record.contains("name") && record["name"].is_string();
    const std::string name = redistribution_cases_cc::NameField(
        named ? record["name"].get<std::string>() : absl::StrCat("record ", number));
    ++number;
    const absl::StatusOr<redistribution_cases_cc::Planned> planned =
        redistribution_cases_cc::TryRecord(record, cases);
    if (planned.ok()) {
      absl::StrAppend(&csv, name, ",", PlainNumber(planned->plan.cost), ",", planned->plan.peak,
                      ",", absl::StrFormat("%.6f", planned->seconds), ",\n");
    } else {
      absl::StrAppend(&csv, name, ",,,,",
                      redistribution_cases_cc::SimplyQuoted(PlannerNote(planned.status())), "\n");
    }
    progress.Done();
  }
  return csv;
}

}  // namespace orrery::tools
