#include "tests/golden/calculon.h"

#include <algorithm>
#include <string>
#include <vector>

#include "support/file.h"
#include "support/paths_test_util.h"

namespace orrery::golden {
namespace calculon_cc {
namespace {

using nlohmann::json;

CalculonCase CaseOf(const json& row) {
  const auto number = [&](const char* key) { return row[key].get<int64_t>(); };
  const auto flag = [&](const char* key) { return row[key].get<bool>(); };
  return {.model = row["model"].get<std::string>(),
          .recompute = row["recompute"].get<std::string>(),
          .layers = number("layers"),
          .hidden = number("hidden"),
          .heads = number("heads"),
          .seq = number("seq"),
          .hp = number("hp"),
          .pp = number("pp"),
          .dp = number("dp"),
          .chunks = number("chunks"),
          .microbatch_size = number("microbatch_size"),
          .microbatches = number("microbatches"),
          .sequence_parallel = row["communication"] == "rs_ag",
          .gather_again = flag("gather_again"),
          .fused_activation = flag("fused_activation"),
          .optimizer_sharding = flag("optimizer_sharding"),
          .training = flag("training"),
          .weight_offload = flag("weight_offload"),
          .activation_offload = flag("activation_offload"),
          .optimizer_offload = flag("optimizer_offload"),
          .cases = number("cases"),
          .row = row};
}

// What forward leaves of a layer for backward. Of the residual stream: what each norm and product
// reads and masks of two dropouts, 34 bytes with the GeLU's operand, which a fused one does not
// keep; what sequence parallelism gathers, unless it is gathered again; and five bytes a score.
// attn_only leaves out the scores, and the operand of the products for q, k and v as well.
double SavedOf(const CalculonCase& c, const CalculonUnits& u) {
  if (c.full()) return 2 * u.stream;
  const bool attention_rematerialized = c.attention_only() || c.gather_again;
  double saved = (c.sequence_parallel ? 10 : 6) * u.stream_part;
  saved += (c.fused_activation ? 16 : 24) * u.split;
  if (!attention_rematerialized) saved += 2 * u.stream;
  if (!c.gather_again) saved += 2 * u.stream;
  return saved + (c.attention_only() ? 0 : 5 * u.scores);
}

// As if nothing of a layer were ever freed: operands of all ops, each once, and results of all ops.
void SetWork(const CalculonCase& c, const CalculonUnits& u, CalculonMemory& memory) {
  const double sent = (c.sequence_parallel ? 4 : 2) * 2 * u.stream_part;
  memory.working = 6 * u.stream_part + sent + 4 * u.stream +
                   (c.fused_activation ? 16 : 24) * u.split + 5 * u.scores;
  if (!c.training) return;
  memory.output_gradients = 10 * u.stream_part + sent + 4 * u.stream +
                            (c.fused_activation ? 16 : 24) * u.split + 5 * u.scores;
}

void SetActivations(const CalculonCase& c, const CalculonUnits& u, CalculonMemory& memory) {
  memory.saved = SavedOf(c, u);
  SetWork(c, u, memory);
  if (!c.training) {
    memory.activations = memory.working;
  } else if (c.full()) {
    memory.activations = memory.working;
    memory.checkpoints = memory.saved * u.layers * u.in_flight;
  } else {
    memory.activations = memory.working + memory.saved * (u.layers * u.in_flight - 1);
  }
}

// Of what is offloaded, the device keeps two layers.
void SetTiers(const CalculonCase& c, const CalculonUnits& u, CalculonMemory& memory) {
  memory.device = memory.output_gradients;
  memory.device += c.weight_offload ? 2 * u.layer : memory.weights;
  if (c.weight_offload) memory.host += memory.weights;
  if (c.activation_offload) {
    memory.device += memory.working + (c.full() ? 2 : 1) * memory.saved;
    memory.host += c.full() ? memory.checkpoints : memory.activations;
  } else {
    memory.device += memory.activations + memory.checkpoints;
  }
  if (c.optimizer_offload) {
    memory.device += (2 + 1 / u.shards) * u.layer + 2 * 6 * u.layer / u.shards;
    memory.host += u.layers * u.layer / u.shards + memory.optimizer;
  } else {
    memory.device += memory.gradients + memory.optimizer;
  }
}

}  // namespace
}  // namespace calculon_cc

std::vector<CalculonCase> CalculonCases() {
  std::vector<CalculonCase> cases;
  const std::string text = ReadFile(SourceDir() + "/tests/data/calculon_memory.json").value();
  for (const nlohmann::json& row : nlohmann::json::parse(text))
    cases.push_back(calculon_cc::CaseOf(row));
  return cases;
}

CalculonUnits UnitsOf(const CalculonCase& c) {
  const auto t = static_cast<double>(c.hp), p = static_cast<double>(c.pp);
  const auto v = static_cast<double>(c.chunks), h = static_cast<double>(c.hidden);
  const double tokens = static_cast<double>(c.seq) * static_cast<double>(c.microbatch_size);
  CalculonUnits u;
  u.stream = tokens * h;
  u.split = u.stream / t;
  u.stream_part = c.sequence_parallel ? u.split : u.stream;
  u.scores = tokens * static_cast<double>(c.seq) * static_cast<double>(c.heads) / t;
  u.layer = 2 * (12 * h * h / t + 4 * h);
  const int64_t layers = (c.layers + c.pp - 1) / c.pp;
  u.layers = static_cast<double>(layers);
  u.in_flight = static_cast<double>(std::min(c.microbatches, c.pp));
  if (c.chunks > 1) u.in_flight *= 1 + (p - 1) / (v * p);
  u.shards = c.optimizer_sharding ? static_cast<double>(c.dp) : 1;
  return u;
}

CalculonMemory CalculonMemoryOf(const CalculonCase& c) {
  const CalculonUnits u = UnitsOf(c);
  CalculonMemory memory;
  memory.weights = u.layers * u.layer;
  if (c.training) {
    memory.optimizer = 6 * u.layers * u.layer / u.shards;
    memory.gradients = 2 * u.layer + (u.layers - 1) * u.layer / u.shards;
  }
  calculon_cc::SetActivations(c, u, memory);
  calculon_cc::SetTiers(c, u, memory);
  return memory;
}

}  // namespace orrery::golden
