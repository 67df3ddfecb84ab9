#ifndef ORRERY_IR_EXECUTION_EXECUTE_H_
#define ORRERY_IR_EXECUTION_EXECUTE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ir/function.h"
#include "ir/tensor.h"
#include "support/id_table.h"

// The reference executor: what a function computes, op by op as its records say it, on one device
// or on the virtual ranks of its mesh. Plain and slow; for tests of what transforms must not
// change.

namespace orrery::ir {

/// Whole tensors by the names of their values; a value without a name goes by its number, "7".
using NamedTensors = std::map<std::string, Tensor>;

struct ExecuteOptions {
  /// Rounds floats to their dtype after each op, as a device does. Without it they stay doubles:
  /// two ways to compute one thing then differ by next to nothing.
  bool round = true;
};

struct Execution {
  std::vector<Tensor> outputs;  // whole, one for each output of the function
  double disagreement = 0;      // the most by which ranks differ that should hold the same
};

/// Runs `function`, which verifies, from whole inputs to whole outputs: on one device, or when it
/// has a mesh on every rank of it, each with its own part. `inputs` has each input, and may have
/// constants that have not kept their values; others are not looked at. Errors: an input that is
/// missing or of another type, an op that cannot be evaluated, a mesh of more than 4096 ranks.
absl::StatusOr<Execution> Execute(const Function& function, const NamedTensors& inputs,
                                  const ExecuteOptions& options = {});

/// The name under which Execute wants a value.
std::string ExecutionName(const Function& function, ValueId value);

// Ranks in step: for who runs functions of pipeline stages.

/// One rank's tensors.
using RankValues = IdTable<ValueId, Tensor>;

/// What the ranks of a stage are handed from outside: messages, which microbatch it is, and what
/// other slices of the sequence leave.
struct Surroundings {
  int64_t microbatch = 0;
  std::function<void(OpId send, size_t position, const Tensor& value)> send = {};
  std::function<absl::StatusOr<Tensor>(OpId receive, size_t position)> receive = {};
  /// The result of an ExtendRows or ExtendRowsGrad.
  std::function<absl::StatusOr<Tensor>(OpId op, size_t position, const Tensor& x)> extend = {};
};

/// Runs the ops of `function` on all `ranks` in step. `values[i]` are the tensors of `ranks[i]`:
/// the inputs' before, the inputs' and outputs' after; all others go when nothing needs them.
absl::Status ExecuteRanks(const Function& function, std::span<const int64_t> ranks,
                          const Surroundings& around, const ExecuteOptions& options,
                          std::vector<RankValues>& values);

}  // namespace orrery::ir

#endif  // ORRERY_IR_EXECUTION_EXECUTE_H_
