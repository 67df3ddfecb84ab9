#ifndef ORRERY_TESTS_GOLDEN_CALCULON_H_
#define ORRERY_TESTS_GOLDEN_CALCULON_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"

// Calculon's memory of a rank: the cases of golden/calculon.json, and the closed forms that it
// makes its figures from (Isaev et al., SC 2023; calculon/llm at caa4b11), which all of them are
// held to.

namespace orrery::golden {

/// What a case asks for: a model of equal layers, and how it is parallelized.
/// So many fields: those of the golden file.
struct CalculonCase {
  std::string model, recompute;
  int64_t layers = 0, hidden = 0, heads = 0, seq = 0;
  int64_t hp = 0, pp = 0, dp = 0, chunks = 0, microbatch_size = 0, microbatches = 0;
  bool sequence_parallel = false;
  bool gather_again = false;  // backward gathers along the sequence what forward had gathered
  bool fused_activation = false, optimizer_sharding = false, training = false;
  bool weight_offload = false, activation_offload = false, optimizer_offload = false;
  int64_t cases = 0;   // of the golden file with this memory
  nlohmann::json row;  // all of it

  bool full() const { return recompute == "full"; }
  bool attention_only() const { return recompute == "attn_only"; }
};

/// Those of tests/data/calculon_memory.json, each distinct memory once.
std::vector<CalculonCase> CalculonCases();

/// Sizes that all figures of a case are made of, in bytes, and counts.
struct CalculonUnits {
  double stream = 0;       // a byte for each value of the residual stream: s b h
  double stream_part = 0;  // of it what a rank keeps between products: a t-th if sequence parallel
  double split = 0;        // a t-th of it
  double scores = 0;       // a byte for each score of attention that the rank has: a s² b/t
  double layer = 0;        // parameters of a layer, two bytes each
  double layers = 0;       // of a rank
  double in_flight = 0;    // microbatches whose activations a rank keeps, by whole ranks
  double shards = 1;       // ranks that shard the optimizer
};
CalculonUnits UnitsOf(const CalculonCase& c);

/// Calculon's figures of one rank, in bytes.
struct CalculonMemory {
  double weights = 0, gradients = 0, optimizer = 0;
  double saved = 0;             // of a layer and a microbatch; with full recomputation its input
  double working = 0;           // what all ops of a layer read
  double output_gradients = 0;  // act_grad_space: of what all ops of a layer make
  double activations = 0, checkpoints = 0;
  double device = 0, host = 0;
};
CalculonMemory CalculonMemoryOf(const CalculonCase& c);

}  // namespace orrery::golden

#endif  // ORRERY_TESTS_GOLDEN_CALCULON_H_
