#include "tools/listings.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "cluster/cluster.h"
#include "cluster/device.h"
#include "cost_models/collectives/collective_algorithm.h"
#include "cost_models/collectives/collective_kind.h"
#include "cost_models/cost_model.h"
#include "ir/models/model.h"
#include "tools/presets.h"
#include "transforms/pass_registry.h"
#include "transforms/plan/axis.h"
#include "transforms/schedules/schedule.h"
#include "transforms/training/training_step.h"

namespace orrery::tools {
namespace listings_cc {
namespace {

using Things = std::vector<NamedThing>;

Things Models() {
  Things things;
  for (const ir::ModelInfo* family : ir::AllModels()) {
    std::string keys;
    for (const ir::ModelKey& key : family->keys) {
      absl::StrAppend(&keys, keys.empty() ? "" : ", ", key.name);
      if (keys.size() < 40) continue;
      absl::StrAppend(&keys, ", …");
      break;
    }
    things.push_back(
        {std::string(family->name), absl::StrCat("family: ", family->summary, "; keys ", keys)});
  }
  for (const ir::ModelPreset& preset : ir::AllPresets()) {
    things.push_back(
        {std::string(preset.name), absl::StrCat(preset.model, ", as in ", preset.source)});
  }
  return things;
}

Things Clusters() {
  Things things;
  for (const cluster::ClusterSpelling& spelling : cluster::ListClusters()) {
    things.push_back({spelling.example, spelling.summary});
  }
  return things;
}

Things Devices() {
  Things things;
  for (const cluster::Device& device : cluster::AllDevices()) {
    things.push_back({device.name, absl::StrCat(ToString(device.memory), " of memory at ",
                                                ToString(device.memory_bandwidth), "; ",
                                                cluster::DeviceSource(device.name))});
  }
  return things;
}

Things Schedules() {
  Things things;
  for (const transforms::PipelineSchedule* schedule : transforms::AllSchedules()) {
    things.push_back({std::string(schedule->name), std::string(schedule->summary)});
  }
  return things;
}

Things Algorithms() {
  Things things;
  for (const cost_models::CollectiveAlgorithm* each : cost_models::AllCollectiveAlgorithms()) {
    things.push_back({std::string(each->name), std::string(each->summary)});
  }
  return things;
}

Things Kinds() {
  Things things;
  for (const cost_models::CollectiveKindInfo& kind : cost_models::AllCollectiveKinds()) {
    things.push_back({std::string(kind.name), absl::StrCat("Of ", kind.size, ".")});
  }
  return things;
}

Things CostModels() {
  Things things;
  for (const cost_models::CostModelInfo* info : cost_models::AllCostModels()) {
    things.push_back({std::string(info->name), std::string(info->summary)});
  }
  return things;
}

Things Presets() {
  Things things;
  for (const Preset& preset : AllPresets()) {
    things.push_back({std::string(preset.name), std::string(preset.summary)});
  }
  return things;
}

// The words of "none, sgd or adam".
std::vector<std::string> WordsIn(absl::string_view text) {
  std::vector<std::string> words;
  const std::string listed = absl::StrReplaceAll(text, {{" or ", ","}, {";", ","}, {" ", ""}});
  for (const absl::string_view word : absl::StrSplit(listed, ',')) {
    const bool plain = !word.empty() && std::ranges::all_of(word, [](char c) {
      return absl::ascii_islower(static_cast<unsigned char>(c)) ||
             absl::ascii_isdigit(static_cast<unsigned char>(c)) || c == '-' || c == '_';
    });
    if (plain && std::ranges::find(words, word) == words.end()) words.emplace_back(word);
  }
  return words;
}

// Those that it takes among the words that its help has, and its examples.
std::vector<std::string> ValuesOf(const transforms::AxisInfo& axis) {
  if (axis.form == transforms::AxisForm::kSwitch) return {};
  std::vector<std::string> values = WordsIn(axis.values);
  for (const absl::string_view example : axis.examples) {
    if (!axis.is_number && std::ranges::find(values, example) == values.end())
      values.emplace_back(example);
  }
  std::erase_if(values, [&](const std::string& value) {
    transforms::ParallelPlan plan;
    return absl::StrContains(value, ' ') || !axis.parse(value, plan).ok();
  });
  return values;
}

// Of flags that are neither of plans nor have a listing.
std::vector<std::string> FewWords(absl::string_view flag) {
  if (flag == "optimizer") return WordsIn(transforms::OptimizerNames());
  if (flag == "loss") return WordsIn(transforms::LossNames());
  if (flag == "passes") {
    std::vector<std::string> names;
    for (const transforms::PassInfo* pass : transforms::AllPasses()) names.emplace_back(pass->name);
    return names;
  }
  constexpr std::pair<absl::string_view, absl::string_view> kWords[] = {
      {"completion", "bash,zsh"},
      {"goal", "throughput,time,memory,price"},
      {"method", "exhaustive,beam,annealing"},
      {"network", "fluid,astra-unaware,astra-aware"},
      {"op", "matmul,grouped,attention,elementwise"},
      {"plan", "pipedream"},
      {"planner", "optimal,greedy,naive"},
      {"space", "default,full"},
      {"trace-level", "stage,op,flow"}};
  for (const auto& [name, words] : kWords) {
    if (name == flag) return WordsIn(words);
  }
  return {};
}

}  // namespace
}  // namespace listings_cc

std::span<const Listing> AllListings() {
  namespace own = listings_cc;
  static const auto& listings = *new std::vector<Listing>{
      {"list-models", "names all built-in models", {"model", "input"}, own::Models},
      {"list-clusters", "names all ways to spell --cluster", {"cluster"}, own::Clusters},
      {"list-devices", "names all devices", {"device"}, own::Devices, "cluster"},
      {"list-schedules", "names all schedules of pipelines", {"schedule", "name"}, own::Schedules},
      {"list-algorithms", "names all algorithms of collectives", {"algorithm"}, own::Algorithms},
      {"list-kinds", "names all kinds of collectives", {"kind"}, own::Kinds},
      {"list-cost-models", "names all cost models", {"cost-model"}, own::CostModels},
      {"list-presets", "names all presets", {"preset"}, own::Presets}};
  return listings;
}

std::string ListingText(const Listing& listing) {
  constexpr size_t kColumn = 28;
  std::string text;
  for (const NamedThing& thing : listing.things()) {
    const size_t length = thing.name.size();
    absl::StrAppend(
        &text, thing.name,
        length < kColumn ? std::string(kColumn - length, ' ') : "\n" + std::string(kColumn, ' '),
        thing.summary, "\n");
  }
  return text;
}

std::vector<std::string> KnownValues(absl::string_view flag, std::span<const Listing> listings) {
  for (const Listing& listing : listings) {
    if (std::ranges::find(listing.of, flag) == listing.of.end()) continue;
    std::vector<std::string> values;
    for (const NamedThing& thing : listing.things()) {
      // Of "dgx-a100:4" what is not a number of one's own.
      const size_t colon = thing.name.find(':');
      values.push_back(thing.name.substr(0, colon == std::string::npos ? colon : colon + 1));
    }
    if (flag == "cost-model") values.insert(values.end(), {"kernels:", "measured:"});
    return values;
  }
  if (const transforms::AxisInfo* axis = transforms::FindAxis(flag); axis != nullptr) {
    return listings_cc::ValuesOf(*axis);
  }
  return listings_cc::FewWords(flag);
}

}  // namespace orrery::tools
