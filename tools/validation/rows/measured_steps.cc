#include "tools/validation/rows/measured_steps.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "support/file.h"
#include "support/status.h"
#include "tools/validation/rows/row_models.h"

namespace orrery::tools {
namespace measured_steps_cc {
namespace {

using Json = nlohmann::json;

// A field of an object; null where there is none.
const Json& Field(const Json& object, const char* key) {
  static const Json& kNull = *new Json();
  if (!object.is_object()) return kNull;
  const auto found = object.find(key);
  return found == object.end() ? kNull : *found;
}

double Number(const Json& object, const char* key) {
  const Json& field = Field(object, key);
  return field.is_number() ? field.get<double>() : 0;
}

// 0, as where nothing is said, of what is no whole number from 0 to 10^9.
int64_t Whole(const Json& object, const char* key) {
  constexpr double kMost = 1e9;  // products of two stay far below 2^63
  const double number = Number(object, key);
  const bool whole = number >= 0 && number <= kMost && number == std::floor(number);
  return whole ? static_cast<int64_t>(number) : 0;
}

// A number of seconds or of gigabytes that can have been measured; else 0, as where nothing is
// said.
double Measured(const Json& object, const char* key) {
  constexpr double kLeast = 1e-9, kMost = 1e9;
  const double number = Number(object, key);
  return number >= kLeast && number <= kMost ? number : 0;
}

bool Truth(const Json& object, const char* key) {
  const Json& field = Field(object, key);
  return field.is_boolean() && field.get<bool>();
}

std::string Text(const Json& object, const char* key) {
  const Json& field = Field(object, key);
  return field.is_string() ? field.get<std::string>() : "";
}

struct MemoryField {
  const char* key;
  double unit;  // bytes
  MemoryMeasure measure;
};
constexpr double kGigabyte = 1e9, kGibibyte = 1024.0 * 1024 * 1024;
constexpr MemoryField kMemoryFields[] = {
    {"mem_max_allocated_gb", kGigabyte, MemoryMeasure::kAllocated},
    {"memory_gb_max", kGigabyte, MemoryMeasure::kDevice},
    {"memory_gb", kGigabyte, MemoryMeasure::kAllocated},
    {"memory_gib", kGibibyte, MemoryMeasure::kAllocated},
    {"peak_alloc_gib", kGibibyte, MemoryMeasure::kAllocated}};

void ReadMeasured(const Json& row, bool reserved, MeasuredStep& step) {
  const Json &measured = Field(row, "measured"), &derived = Field(row, "derived");
  step.seconds = Measured(measured, "iter_time_s");
  if (step.seconds <= 0) step.seconds = Measured(derived, "iter_time_s");
  for (const MemoryField& field : kMemoryFields) {
    if (Measured(measured, field.key) <= 0) continue;
    step.bytes = Measured(measured, field.key) * field.unit;
    step.measure = reserved ? MemoryMeasure::kReserved : field.measure;
    return;
  }
}

// Families whose feed-forwards are gated, where a row does not say.
bool IsOfGatedFamily(const std::string& name) {
  constexpr absl::string_view kFamilies[] = {"llama",   "qwen",    "mistral", "mixtral", "deepseek",
                                             "gpt_oss", "gpt-oss", "gpt oss", "kimi",    "glm"};
  const std::string lower = absl::AsciiStrToLower(name);
  return std::ranges::any_of(
      kFamilies, [&](absl::string_view family) { return absl::StartsWith(lower, family); });
}

void ReadModel(const Json& model, MeasuredStep& step) {
  const std::string mlp = absl::AsciiStrToLower(Text(model, "mlp"));
  const bool gated =
      absl::StartsWith(mlp, "swiglu") || (mlp.empty() && IsOfGatedFamily(Text(model, "name")));
  step.model = {.name = Text(model, "name"),
                .layers = Whole(model, "layers"),
                .hidden = Whole(model, "hidden"),
                .heads = Whole(model, "heads"),
                .kv_heads = Whole(model, "kv_heads"),
                .ffn = Whole(model, "ffn"),
                .vocab = Whole(model, "vocab"),
                .seq = Whole(model, "seq"),
                .experts = Whole(model, "experts"),
                .topk = Whole(model, "topk"),
                .expert_ffn = Whole(model, "moe_ffn"),
                .shared_ffn = Whole(model, "shared_expert_ffn"),
                .dense_layers = Whole(model, "dense_layers"),
                .head_dim = std::max(Whole(model, "head_dim"), Whole(model, "qk_head_dim")),
                .latent = Text(model, "attention") == "mla" || Text(model, "attn") == "MLA",
                .q_rank = Whole(model, "q_lora_rank"),
                .kv_rank = Whole(model, "kv_lora_rank"),
                .rope_dim = Whole(model, "qk_rope_head_dim"),
                .v_dim = Whole(model, "v_head_dim"),
                .swiglu = gated || Truth(model, "swiglu")};
  SetPreset(step.model);
  // Where a row does not say, as DeepSeek-V3 has them, and Kimi K2.
  MeasuredStep::Model& m = step.model;
  if (!m.latent || m.kv_rank > 0) return;
  m.head_dim = m.v_dim = 128;
  m.q_rank = 1536;
  m.kv_rank = 512;
  m.rope_dim = 64;
}

// "FSDP2 (ZeRO-3)", "FSDP2 (reshard not stated)"
int64_t ZeroOf(const std::string& text) {
  for (const int64_t stage : {1, 2, 3}) {
    if (absl::StrContains(text, absl::StrCat("ZeRO-", stage))) return stage;
  }
  return absl::StrContains(text, "FSDP") ? 3 : 0;
}

// Of "fp8 attention, CUDA graphs" each, and not of "CUDA graphs on router and preprocess".
bool HasOption(const Json& row, absl::string_view wanted) {
  const std::string options = Text(row, "options");
  for (const absl::string_view option : absl::StrSplit(options, ',')) {
    if (absl::StripAsciiWhitespace(option) == wanted) return true;
  }
  return false;
}

// {"query_proj": "offload", "context": "device", …}
std::vector<std::pair<std::string, std::string>> KeptOf(const Json& options) {
  std::vector<std::pair<std::string, std::string>> kept;
  if (!options.is_object()) return kept;
  for (const auto& [name, value] : options.items()) {
    const bool keeps = value.is_string() && (value == "offload" || value == "device");
    if (keeps) kept.emplace_back(name, value.get<std::string>());
  }
  return kept;
}

// What a file says of all its rows.
struct OfAllRows {
  std::string source;
  bool reserved = false, overlaps = true;
};

// "pair": {"base": ID, "changed": TEXT, "time_ratio" or "throughput_ratio", "memory_change_gb"}.
std::optional<MeasuredStep::Change> ReadChange(const Json& pair) {
  if (Text(pair, "base").empty()) return std::nullopt;
  MeasuredStep::Change change = {.base = Text(pair, "base"), .what = Text(pair, "changed")};
  change.time_ratio = Measured(pair, "time_ratio");
  const double faster = Measured(pair, "throughput_ratio");
  if (change.time_ratio <= 0 && faster > 0) change.time_ratio = 1 / faster;
  if (Field(pair, "memory_change_gb").is_number()) {
    change.memory_bytes = kGigabyte * Number(pair, "memory_change_gb");
  }
  return change;
}

// Rows that a change is between: they count though nothing else may be said of them.
void MarkCompared(std::vector<MeasuredStep>& steps) {
  std::set<std::string> compared;
  for (const MeasuredStep& step : steps) {
    if (!step.change.has_value()) continue;
    compared.insert(step.id);
    compared.insert(step.change->base);
  }
  for (MeasuredStep& step : steps) step.compared = compared.contains(step.id);
}

// The first part of BLOOM's sweep has one width, 14,400, and as many layers as its stages divide;
// rows print the size that came of it. The model that it starts from has 96 heads.
void SetLayersBySize(MeasuredStep& step) {
  MeasuredStep::Model& m = step.model;
  double billions = 0;
  const bool of_sweep = absl::StrContains(step.source, "bloom") && m.hidden == 14400 && step.pp > 0;
  if (m.layers > 0 || !of_sweep || !absl::SimpleAtod(absl::StripSuffix(m.name, "B"), &billions)) {
    return;
  }
  const auto hidden = static_cast<double>(m.hidden);
  const double layers =
      (1e9 * billions - static_cast<double>(m.vocab) * hidden) / (12 * hidden * hidden);
  m.layers = step.pp * std::llround(layers / static_cast<double>(step.pp));
  if (m.heads == 0) m.heads = 96;
}

MeasuredStep ReadRow(const Json& row, const OfAllRows& all) {
  MeasuredStep step;
  step.change = ReadChange(Field(row, "pair"));
  step.overlaps = all.overlaps;
  step.id = Text(row, "id");
  step.split = Text(row, "split");
  step.source = all.source;
  ReadModel(Field(row, "model"), step);
  const Json &hw = Field(row, "hw"), &par = Field(row, "par"), &batch = Field(row, "batch");
  if (step.model.shared_ffn == 0) {
    step.model.shared_ffn = Whole(Field(row, "model"), "shared_experts") * step.model.expert_ffn;
  }
  step.device = Text(hw, "gpu");
  // Of chips with several cores degrees count cores.
  step.devices = std::max(Whole(hw, "gpus"), Whole(hw, "cores"));
  step.fabric = Text(hw, "inter");
  step.links = Text(hw, "intra");
  step.tp = Whole(par, "tp");
  step.pp = Whole(par, "pp");
  step.dp = Whole(par, "dp");
  step.cp = Whole(par, "cp");
  // MaxText's fully sharded axis beside its replicas, where "dp" counts these alone.
  const int64_t sharded = Whole(par, "fsdp");
  if (sharded > step.dp) step.dp = sharded * std::max<int64_t>(1, step.dp);
  step.ep = Whole(par, "ep");
  step.chunks = Whole(par, "vp");
  step.zero = Field(par, "zero").is_string() ? ZeroOf(Text(par, "zero")) : Whole(par, "zero");
  SetLayersBySize(step);
  step.context = Text(par, "cp_comm");
  if (Field(par, "sequence_parallel").is_boolean()) {
    step.sequence_parallel = Truth(par, "sequence_parallel");
  }
  step.task = Text(row, "task");
  step.global_batch = Whole(batch, "global_batch");
  step.micro_batch = Whole(batch, "micro_batch");
  step.microbatches = Whole(batch, "num_microbatches");
  step.schedule = Text(row, "schedule");
  step.recompute = Text(row, "recompute");
  step.precision = absl::AsciiStrToLower(Text(row, "precision"));
  step.flags = absl::AsciiStrToLower(Text(row, "flags"));
  step.lora_targets = Text(Field(row, "options"), "lora_targets");
  if (!absl::SimpleAtoi(Text(Field(row, "options"), "lora_rank"), &step.lora_rank)) {
    step.lora_rank = 0;
  }
  const Json& options = Field(row, "options");
  step.options = absl::AsciiStrToLower(options.is_string() ? Text(row, "options") : options.dump());
  step.overlap = absl::AsciiStrToLower(Text(row, "overlap"));
  step.graphs = HasOption(row, "CUDA graphs");
  step.attention_in_8_bits = HasOption(row, "fp8 attention");
  step.kept = KeptOf(Field(row, "options"));
  ReadMeasured(row, all.reserved, step);
  return step;
}

}  // namespace
}  // namespace measured_steps_cc

absl::StatusOr<std::vector<MeasuredStep>> ParseMeasuredSteps(absl::string_view text,
                                                             const std::string& name) {
  const measured_steps_cc::Json file =
      measured_steps_cc::Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (file.is_discarded()) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": is not JSON; wanted {\"rows\": [...]}"));
  }
  const measured_steps_cc::Json& rows = measured_steps_cc::Field(file, "rows");
  if (!rows.is_array()) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": has no list \"rows\"; wanted {\"rows\": [{\"id\": ...}, ...]}"));
  }
  const std::string how = measured_steps_cc::Text(file, "how_measured");
  const measured_steps_cc::OfAllRows all = {.source = std::filesystem::path(name).stem().string(),
                                            .reserved = absl::StrContains(how, "reserved"),
                                            .overlaps = !absl::StrContains(how, "no overlap")};
  std::vector<MeasuredStep> steps;
  for (const measured_steps_cc::Json& row : rows) {
    const bool of_a_part = row.is_object() && (row.contains("op") || row.contains("collective"));
    if (of_a_part || measured_steps_cc::Text(row, "id").empty()) continue;
    steps.push_back(measured_steps_cc::ReadRow(row, all));
  }
  measured_steps_cc::MarkCompared(steps);
  return steps;
}

std::vector<std::string> StepFiles(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return {path};
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(path, error)) {
    if (entry.path().extension() == ".json") files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

absl::StatusOr<std::vector<MeasuredStep>> ReadMeasuredSteps(const std::string& path) {
  const std::vector<std::string> files = StepFiles(path);
  if (files.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": holds no files *.json"));
  }
  std::vector<MeasuredStep> steps;
  for (const std::string& file : files) {
    ORRERY_ASSIGN_OR_RETURN(const std::string text, ReadFile(file));
    // A folder may hold other files, too.
    absl::StatusOr<std::vector<MeasuredStep>> more = ParseMeasuredSteps(text, file);
    if (!more.ok() && files.size() > 1) continue;
    ORRERY_RETURN_IF_ERROR(more.status());
    std::move(more->begin(), more->end(), std::back_inserter(steps));
  }
  return steps;
}

}  // namespace orrery::tools
