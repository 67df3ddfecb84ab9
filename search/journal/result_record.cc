#include "search/journal/result_record.h"

#include <cmath>
#include <optional>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "support/number_text.h"
#include "transforms/plan/axis.h"
#include "transforms/plan/plan_text.h"

namespace orrery::search {
namespace result_record_cc {
namespace {

using Json = nlohmann::ordered_json;

// The one list of what a result is made of. A field that is missing here does not compile.
template <typename R, typename Visit>
void ForEachField(R& result, const Visit& visit) {
  auto& [plan, ran, step_time, figures, communication_overhead, exposed_communication_s,
         bubble_fraction, peak_memory, simulated_tasks, fits, gathered, infeasible, pruned, left] =
      result;
  visit("plan", plan);
  visit("ran", ran);
  visit("step_time_ps", step_time);
  visit("figures", figures);
  visit("communication_overhead", communication_overhead);
  visit("exposed_communication_s", exposed_communication_s);
  visit("bubble_fraction", bubble_fraction);
  visit("peak_memory_bytes", peak_memory);
  visit("simulated_tasks", simulated_tasks);
  visit("fits", fits);
  visit("gathered", gathered);
  visit("infeasible", infeasible);
  visit("pruned", pruned);
  visit("left", left);
}

template <typename F, typename Visit>
void ForEachFigure(F& figures, const Visit& visit) {
  auto& [throughput_samples_per_s, tokens_per_s, mfu, hfu, wall_time_s] = figures;
  visit("throughput_samples_per_s", throughput_samples_per_s);
  visit("tokens_per_s", tokens_per_s);
  visit("mfu", mfu);
  visit("hfu", hfu);
  visit("wall_time_s", wall_time_s);
}

// JSON has bytes of Unicode alone; names of files may be anything.
Json JsonOf(const std::string& text) { return absl::CEscape(text); }
Json JsonOf(bool value) { return value; }
Json JsonOf(int64_t value) { return value; }
Json JsonOf(double value) {
  if (std::isfinite(value)) return value;
  return ShortestText(value);
}
Json JsonOf(Duration value) { return value.picoseconds(); }
Json JsonOf(Bytes value) { return value.count(); }
Json JsonOf(const simulator::ModelFigures& figures) {
  Json object = Json::object();
  ForEachFigure(figures, [&](const char* name, double value) { object[name] = JsonOf(value); });
  return object;
}
Json JsonOf(const std::optional<Infeasible>& infeasible) {
  if (!infeasible.has_value()) return nullptr;
  return {{"reason", static_cast<int>(infeasible->reason)}, {"detail", JsonOf(infeasible->detail)}};
}

Json PlanJson(const ParallelPlan& plan, const ParallelPlan& base) {
  Json object = Json::object();
  for (const transforms::AxisInfo* axis : transforms::AllAxes()) {
    const std::string text = axis->print(plan);
    if (text != axis->print(base)) object[std::string(axis->flag)] = JsonOf(text);
  }
  return object;
}

// Zero of either sign is equal and not the same.
bool IsSame(const Json& a, const Json& b) { return a == b && a.dump() == b.dump(); }

Json ResultJson(const Result& result, const ParallelPlan& plan) {
  static const Json& defaults = *new Json([] {
    Json object;
    const Result none;
    ForEachField(none, [&]<typename T>(const char* name, const T& value) {
      if constexpr (!std::is_same_v<T, ParallelPlan>) object[name] = JsonOf(value);
    });
    return object;
  }());
  Json object = Json::object();
  ForEachField(result, [&]<typename T>(const char* name, const T& value) {
    if constexpr (std::is_same_v<T, ParallelPlan>) {
      if (Json changed = PlanJson(value, plan); !changed.empty()) object[name] = std::move(changed);
    } else if (Json json = JsonOf(value); !IsSame(json, defaults[name])) {
      object[name] = std::move(json);
    }
  });
  return object;
}

// Readers throw where the text is not what a writer made; ParseRecord catches.
void Read(const Json& json, std::string& text) {
  if (!absl::CUnescape(json.get<std::string>(), &text)) throw std::invalid_argument("text");
}
void Read(const Json& json, bool& value) { value = json.get<bool>(); }
void Read(const Json& json, int64_t& value) { value = json.get<int64_t>(); }
void Read(const Json& json, double& value) {
  value = json.is_string() ? std::stod(json.get<std::string>()) : json.get<double>();
}
void Read(const Json& json, Duration& value) { value = Duration(json.get<int64_t>()); }
void Read(const Json& json, Bytes& value) { value = Bytes(json.get<int64_t>()); }
void Read(const Json& json, simulator::ModelFigures& figures) {
  ForEachFigure(figures, [&](const char* name, double& value) { Read(json.at(name), value); });
}
void Read(const Json& json, std::optional<Infeasible>& infeasible) {
  const int reason = json.at("reason").get<int>();
  if (reason < 0 || reason > static_cast<int>(InfeasibleReason::kUnsupported)) {
    throw std::invalid_argument("reason");
  }
  infeasible = {.reason = static_cast<InfeasibleReason>(reason), .detail = ""};
  Read(json.at("detail"), infeasible->detail);
}
void Read(const Json& json, ParallelPlan& plan) {
  for (const auto& [flag, value] : json.items()) {
    const transforms::AxisInfo* const axis = transforms::FindAxis(flag);
    if (axis == nullptr) throw std::invalid_argument(flag);
    std::string text;
    Read(value, text);
    axis->copy({}, plan);  // values of some add up
    if (text.empty()) continue;
    if (const absl::Status set = transforms::SetAxis(*axis, text, plan); !set.ok()) {
      throw std::invalid_argument(std::string(set.message()));
    }
  }
}

Result ReadResult(const Json& json, const ParallelPlan& plan) {
  Result result;
  result.plan = plan;
  size_t seen = 0;
  ForEachField(result, [&](const char* name, auto& value) {
    if (!json.contains(name)) return;
    ++seen;
    Read(json.at(name), value);
  });
  if (seen != json.size()) throw std::invalid_argument("a field that results do not have");
  return result;
}

}  // namespace
}  // namespace result_record_cc

std::string RecordText(const CandidateResults& done, const ParallelPlan& plan) {
  using result_record_cc::Json;
  Json results = Json::array();
  for (const Result& result : done.results) {
    results.push_back(result_record_cc::ResultJson(result, plan));
  }
  return Json{{"candidate", done.candidate}, {"results", std::move(results)}}.dump();
}

absl::StatusOr<CandidateResults> ParseRecord(absl::string_view text, const PlansView& plans) {
  using result_record_cc::Json;
  try {
    const Json json = Json::parse(text.begin(), text.end());
    CandidateResults done;
    done.candidate = json.at("candidate").get<size_t>();
    if (done.candidate >= plans.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("candidate ", done.candidate, " of ", plans.size()));
    }
    const ParallelPlan plan = plans[done.candidate];
    for (const Json& result : json.at("results")) {
      done.results.push_back(result_record_cc::ReadResult(result, plan));
    }
    if (done.results.empty()) return absl::InvalidArgumentError("a candidate without results");
    return done;
  } catch (const std::exception& error) {
    return absl::InvalidArgumentError(
        absl::StrCat("no record of a candidate of this search: ", error.what()));
  }
}

}  // namespace orrery::search
