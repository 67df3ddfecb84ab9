#include "tools/goodput/goodput_files.h"

#include <cstdint>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "support/json_text.h"
#include "support/number_text.h"

namespace orrery::tools {

using simulator::goodput::Cause;
using simulator::goodput::CheckpointTier;
using simulator::goodput::Episode;
using simulator::goodput::kCauseCount;
using simulator::goodput::Spreading;
using simulator::goodput::TrialResult;

namespace goodput_files_cc {
namespace {

using Json = nlohmann::ordered_json;

void AddSpreading(const std::string& name, const Spreading& spreading, Json& json) {
  json[name] = spreading.mean;
  json[name + "_ci95"] = spreading.ci95;
  json[name + "_p5"] = spreading.p5;
  json[name + "_p50"] = spreading.p50;
  json[name + "_p95"] = spreading.p95;
}

std::string NameOfCause(size_t cause) {
  return std::string(simulator::goodput::NameOf(static_cast<Cause>(cause)));
}

Json CheckpointsJson(const GoodputAnswer& answer) {
  Json list = Json::array();
  const auto& spec = answer.question.spec;
  for (size_t i = 0; i < spec.tiers.size(); ++i) {
    const CheckpointTier& tier = spec.tiers[i];
    list.push_back({{"tier", tier.name},
                    {"every_steps", tier.every_steps},
                    {"every_s", static_cast<double>(tier.every_steps) * spec.step_s},
                    {"stall_s", tier.stall_s},
                    {"write_s", tier.write_s},
                    {"slower_steps_s", tier.drag_s},
                    {"load_s", tier.load_s},
                    {"saved", answer.summary.saves[i]}});
  }
  return list;
}

}  // namespace
}  // namespace goodput_files_cc

std::string GoodputJson(const GoodputAnswer& answer) {
  using goodput_files_cc::Json;
  const auto& spec = answer.question.spec;
  const auto& summary = answer.summary;
  Json json;
  goodput_files_cc::AddSpreading("goodput", summary.goodput, json);
  goodput_files_cc::AddSpreading("effective_time_fraction", summary.effective, json);
  json["best_interval_s"] = Json();
  if (answer.question.best.seconds > 0) json["best_interval_s"] = answer.question.best.seconds;
  Json lost, failures;
  for (size_t i = 0; i < kCauseCount; ++i) {
    lost[goodput_files_cc::NameOfCause(i)] = summary.lost[i];
  }
  for (size_t i = 0; i < spec.failures.size(); ++i) {
    failures[std::string(spec.failures[i].component->name)] = summary.failures[i];
  }
  json["lost"] = lost;
  goodput_files_cc::AddSpreading("interruptions", summary.interruptions, json);
  json["failures"] = failures.is_null() ? Json::object() : failures;
  json["planned_stops"] = summary.planned_stops;
  const double per_second = simulator::goodput::FailuresPerSecond(spec);
  json["mtbf_s"] = per_second > 0 ? Json(1 / per_second) : Json();
  json["days"] = answer.flags.days;
  json["devices"] = answer.facts.devices;
  json["hosts"] = spec.job.hosts;
  json["spare_hosts"] = spec.recovery.spares;
  json["step_time_s"] = spec.step_s;
  json["checkpoint_bytes"] = answer.facts.checkpoint_bytes;
  json["checkpoints"] = goodput_files_cc::CheckpointsJson(answer);
  json["trials"] = answer.results.size();
  json["seed"] = answer.flags.seed;
  return json.dump(1) + "\n";
}

std::string GoodputCsv(const GoodputAnswer& answer) {
  const auto& spec = answer.question.spec;
  std::string csv = "trial,goodput,effective_time_fraction,interruptions,planned_stops";
  for (size_t i = 0; i < kCauseCount; ++i) {
    absl::StrAppend(&csv, ",", goodput_files_cc::NameOfCause(i), "_s");
  }
  for (const auto& rate : spec.failures) absl::StrAppend(&csv, ",", rate.component->name);
  for (const CheckpointTier& tier : spec.tiers) absl::StrAppend(&csv, ",saved_", tier.name);
  csv += "\n";
  for (size_t trial = 0; trial < answer.results.size(); ++trial) {
    const TrialResult& result = answer.results[trial];
    int64_t interruptions = 0;
    for (const int32_t failures : result.failures) interruptions += failures;
    absl::StrAppend(&csv, trial, ",", ShortestText(result.worth_s / spec.length_s), ",",
                    ShortestText(result.trained_s / spec.length_s), ",", interruptions, ",",
                    result.planned_stops);
    for (const double seconds : result.lost_s) absl::StrAppend(&csv, ",", ShortestText(seconds));
    for (const int32_t failures : result.failures) absl::StrAppend(&csv, ",", failures);
    for (const int64_t saves : result.saves) absl::StrAppend(&csv, ",", saves);
    csv += "\n";
  }
  return csv;
}

std::string EpisodesTrace(const std::vector<Episode>& episodes) {
  constexpr double kMicroseconds = 1e6;
  std::string trace =
      "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n"
      "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":0,\"args\":{\"name\":\"run\"}},\n"
      "{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":0,\"tid\":0,\"args\":{\"name\":\"job\"}}";
  for (const Episode& episode : episodes) {
    absl::StrAppendFormat(
        &trace,
        ",\n{\"name\":%s,\"cat\":\"%s\",\"ph\":\"X\",\"pid\":0,\"tid\":0,\"ts\":%.3f,\"dur\":%.3f,"
        "\"args\":{\"detail\":%s}}",
        JsonString(episode.what), episode.what == "training" ? "training" : "lost",
        episode.start_s * kMicroseconds, (episode.end_s - episode.start_s) * kMicroseconds,
        JsonString(episode.detail));
  }
  return trace + "\n]}\n";
}

}  // namespace orrery::tools
