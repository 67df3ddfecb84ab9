#ifndef ORRERY_TOOLS_VALIDATION_ROWS_MEASURED_STEPS_H_
#define ORRERY_TOOLS_VALIDATION_ROWS_MEASURED_STEPS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

// Published measurements of training steps, as files of rows have them.

namespace orrery::tools {

/// What a published peak of memory counts.
enum class MemoryMeasure : uint8_t {
  kAllocated,  // tensors
  kReserved,   // what the framework's allocator has taken, with what it cannot use
  kDevice,     // all that is taken on the device, also by driver and communication library
};

/// A row. A number of 0, or an empty text: the row does not say. So many fields: a
/// column of the file each.
struct MeasuredStep {
  std::string id, split, source;  // split: "calibration", "holdout", "reference"
  // So many fields: a key of the row each.
  struct Model {
    std::string name = {};
    int64_t layers = 0, hidden = 0, heads = 0, kv_heads = 0, ffn = 0, vocab = 0, seq = 0;
    int64_t experts = 0, topk = 0, expert_ffn = 0, shared_ffn = 0, dense_layers = 0;
    int64_t head_dim = 0;  // of a head; 0: hidden / heads
    bool latent = false;   // attention of compressed keys and values, of these widths
    int64_t q_rank = 0, kv_rank = 0, rope_dim = 0, v_dim = 0;
    bool swiglu = false;
    std::string preset = {};  // of the library, where layers are of several kinds
  } model;
  std::string device;
  int64_t devices = 0;
  std::string fabric;  // between nodes, in words
  std::string links;   // inside of one, likewise
  int64_t tp = 0, pp = 0, dp = 0, cp = 0, ep = 0;
  int64_t chunks = 0;  // of the model, a pipeline rank
  int64_t zero = 0;
  std::optional<bool> sequence_parallel;  // nothing: the row does not say
  int64_t global_batch = 0, micro_batch = 0, microbatches = 0;
  std::string context;  // how attention gets by with cp: "a2a", "p2p"
  std::string schedule, recompute, precision, task;
  int64_t lora_rank = 0;  // of adapters
  std::string lora_targets;
  std::string flags;             // of the software, as "torch.compile"
  std::string options, overlap;  // of the software, too, in words and small letters
  bool attention_in_8_bits = false;
  bool graphs = false;  // forward and backward as CUDA graphs
  /// Of a recomputation that lists what it keeps (MaxText's "custom"), by names: where, "device" or
  /// "offload".
  std::vector<std::pair<std::string, std::string>> kept;
  double seconds = 0;  // of a step, printed or derived from what was printed
  double bytes = 0;    // the peak of the fullest device
  MemoryMeasure measure = MemoryMeasure::kAllocated;
  bool overlaps = true;  // communication and kernels; false where the source says that it did not
  // What is different from another row of the source, and what that changed. 0: not said.
  struct Change {
    std::string base = {};  // the other row's id
    std::string what = {};
    double time_ratio = 0;                    // of the step times, this over the other
    std::optional<double> memory_bytes = {};  // this less the other
  };
  std::optional<Change> change = {};
  bool compared = false;  // it is one of two that a change is between
};

/// Reads {"source": TEXT, "how_measured": TEXT, "rows": [{"id", "model": {...}, "hw": {...},
/// ...}]}; docs/validation_memory.md lists the fields. Those that are not known are ignored, and so
/// are rows without an "id", and those of kernels and collectives (predicted_tables.h). Memory is
/// in the unit that its field's name ends with. Errors name `name`.
absl::StatusOr<std::vector<MeasuredStep>> ParseMeasuredSteps(absl::string_view text,
                                                             const std::string& name);

/// The files that `path` stands for: itself, or of a folder all that end in ".json", sorted.
std::vector<std::string> StepFiles(const std::string& path);

/// The rows of a file, or of all files of a folder that end in ".json", by their names.
absl::StatusOr<std::vector<MeasuredStep>> ReadMeasuredSteps(const std::string& path);

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_VALIDATION_ROWS_MEASURED_STEPS_H_
