#include "tests/golden/calculon_differences.h"

#include <algorithm>
#include <vector>

namespace orrery::golden {
namespace calculon_differences_cc {
namespace {

// What a layer keeps of a microbatch without its input alone: Korthikanti et al. 2022, table 2.
double LayerOf(const CalculonCase& c, const CalculonUnits& u) {
  return 10 * u.stream_part + 24 * u.split + (c.attention_only() ? 0 : 5 * u.scores);
}

std::vector<Difference> Kept(const CalculonCase& c, const CalculonUnits& u) {
  const double times = u.layers * u.in_flight;
  const auto p = static_cast<double>(c.pp);
  std::vector<Difference> d;
  if (c.full() && c.sequence_parallel) {
    d.push_back(
        {"a part of each layer's input, not all of it", -2 * (u.stream - u.stream_part) * times});
  }
  if (!c.full() && c.fused_activation) {
    d.push_back({"the GeLU's operand, which its gradient reads", 8 * u.split * times});
  }
  if (!c.full() && c.sequence_parallel && !c.gather_again) {
    d.push_back({"parts of what is gathered along the sequence, not the whole as well",
                 -(c.attention_only() ? 2 : 4) * u.stream * times});
  }
  if (c.attention_only() && !c.sequence_parallel) {
    d.push_back({"the operand of the products for q, k and v", 2 * u.stream * times});
  }
  if (!c.full()) {
    d.push_back({"statistics of norms, 16 bytes a token",
                 16 / static_cast<double>(c.hidden) * u.stream_part * times});
  }
  d.push_back({"the mask of the dropout behind the embedding",
               (c.chunks > 1 ? 2 * p - 1 : p) * u.stream_part});
  return d;
}

// Backward at its largest, beside what is kept. At the end of a layer's feed-forward: gradients of
// its output, of the GeLU's operand and of the norm's result, less the dropout's mask, which has
// been read; with sequence parallelism a part of the first, and gathered copies of it and of what
// the first product reads. Or in the core of attention, which has its scores again, the
// feed-forward being done.
double WorkHere(const CalculonCase& c, const CalculonUnits& u) {
  if (!c.training) return 5 * u.scores + 10 * u.split;  // Attention, and the residual stream
  const double layer = c.full() ? LayerOf(c, u) - 2 * u.stream_part : 0;
  if (c.full() && c.sequence_parallel) return layer + 6 * u.stream + 5 * u.split;
  const double feed_forward =
      c.sequence_parallel ? 4 * u.stream + 9 * u.split : 3 * u.stream + 8 * u.split;
  if (!c.attention_only()) return layer + feed_forward;
  const double core = c.sequence_parallel ? 5 * u.scores + 2 * u.stream - 14 * u.split
                                          : 5 * u.scores - 4 * u.stream - 8 * u.split;
  return std::max(feed_forward, core);
}

std::vector<Difference> Gradients(const CalculonCase& c, const CalculonUnits& u) {
  if (!c.training) return {};
  const double product = 8 * u.split / u.stream * static_cast<double>(c.hidden * c.hidden);
  const double shards = c.optimizer_offload ? 1 / u.shards : (u.layers - 1) / u.shards;
  return {{"of the layer at work the largest product's, not all in four bytes", product - u.layer},
          {"sums whole until the step's end, not in shards (or on the host)",
           (u.layers - 1 - shards) * u.layer}};
}

}  // namespace
}  // namespace calculon_differences_cc

double Sum(const std::vector<Difference>& differences) {
  double sum = 0;
  for (const Difference& difference : differences) sum += difference.bytes;
  return sum;
}

double KeptOf(const CalculonCase& c) {
  const CalculonUnits u = UnitsOf(c);
  return c.training ? CalculonMemoryOf(c).saved * u.layers * u.in_flight : 0;
}

double AtWorkOf(const CalculonCase& c) {
  const CalculonMemory theirs = CalculonMemoryOf(c);
  const bool beside = c.training && !c.full();
  return theirs.working - (beside ? theirs.saved : 0) + theirs.output_gradients;
}

Differences DifferencesOf(const CalculonCase& c) {
  const CalculonUnits u = UnitsOf(c);
  Differences d;
  d.gradients = calculon_differences_cc::Gradients(c, u);
  if (c.training) d.kept = calculon_differences_cc::Kept(c, u);
  d.at_work = {
      {"operands and results of all ops of a layer at once", -AtWorkOf(c)},
      {"what has been made and is still to be read", calculon_differences_cc::WorkHere(c, u)}};
  if (c.weight_offload) {
    d.weights = {{"weights stay on the device", (u.layers - 2) * u.layer}};
    d.host = {{"weights stay on the device", -u.layers * u.layer}};
  }
  if (c.optimizer_offload) {
    d.optimizer = {
        {"the host updates: no state of two layers on the device", -2 * 6 * u.layer / u.shards}};
  }
  if (c.activation_offload) {
    const double layer = calculon_differences_cc::LayerOf(c, u), theirs = CalculonMemoryOf(c).saved;
    d.kept = {{"of two layers, not of one beside the working set", 2 * layer - 2 * theirs}};
    d.host.push_back({"of all layers but two that are on the device",
                      layer * (u.layers * u.in_flight - 2) - CalculonMemoryOf(c).activations});
  }
  return d;
}

}  // namespace orrery::golden
