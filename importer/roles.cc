#include "importer/roles.h"

#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ir/batch.h"
#include "ir/copy.h"
#include "ir/dead_code.h"
#include "ir/op_info.h"
#include "ir/optimizer_operands.h"
#include "re2/re2.h"
#include "support/printable.h"
#include "support/status.h"

namespace orrery::importer {
namespace roles_cc {
namespace {

using ir::Function;
using ir::InputRole;
using ir::OpId;
using ir::OutputRole;
using ir::ValueId;

constexpr size_t kLongestPattern = 256;
constexpr size_t kLongestName = 1024;

// Of the pattern once it is compiled: some 4,000 steps, where all of a pattern that people write
// takes less than 100. The time of a search is at most this, times the length of a name.
constexpr int64_t kPatternBytes = 256 << 10;

// `option`: what the pattern is for, "freeze".
absl::StatusOr<std::unique_ptr<RE2>> PatternOf(absl::string_view option, const std::string& text) {
  const auto bad = [&](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat(option, " ", Show(text), ": ", what));
  };
  if (text.size() > kLongestPattern) {
    return bad(absl::StrCat("is longer than ", kLongestPattern, " characters"));
  }
  RE2::Options options;
  options.set_log_errors(false);
  options.set_never_capture(true);
  options.set_max_mem(kPatternBytes);
  auto pattern = std::make_unique<RE2>(text, options);
  if (pattern->ok()) return pattern;
  const bool large = pattern->error_code() == RE2::ErrorPatternTooLarge ||
                     pattern->error_code() == RE2::ErrorRepeatSize;
  return bad(large ? "repeats too much; wanted a pattern such as 'embed.*weight'"
                   : "is no regular expression; wanted one such as 'embed.*weight'");
}

bool Matches(const RE2& pattern, absl::string_view name) {
  const absl::string_view part = name.substr(0, kLongestName);
  return RE2::PartialMatch(re2::StringPiece(part.data(), part.size()), pattern);
}

// Of a function without dead ops.
class RoleAssigner {
 public:
  RoleAssigner(const Function& from, const RoleOptions& options)
      : from_(from),
        options_(options),
        roles_(from.value_limit(), InputRole::kBuffer),
        reached_(from.value_limit(), 0),
        weight_(from.value_limit(), 0),
        uses_(ir::CountUses(from)),
        to_(from.name(), from.mesh()),
        copy_{.from = from, .to = to_} {}

  absl::StatusOr<Function> Run() && {
    FindOutputRoles();
    Reach();
    FindWeights();
    for (const ir::Input& input : from_.inputs()) {
      if (roles_[input.value] != InputRole::kBuffer) continue;
      const bool weight = input.role == InputRole::kParameter || weight_[input.value] != 0;
      roles_[input.value] = reached_[input.value] != 0 ? InputRole::kParameter : InputRole::kBuffer;
      if (!weight) roles_[input.value] = input.role;
    }
    ORRERY_RETURN_IF_ERROR(
        Choose("parameters", options_.patterns.parameters, InputRole::kParameter));
    ORRERY_RETURN_IF_ERROR(Choose("data", options_.patterns.data, InputRole::kData));
    for (const ValueId weight : options_.weights) {
      if (reached_[weight] != 0) roles_[weight] = InputRole::kParameter;
    }
    ORRERY_RETURN_IF_ERROR(Freeze());
    Copy();
    return std::move(to_);
  }

 private:
  // The inputs by the names that gradients of them have.
  absl::flat_hash_map<std::string, ValueId> GradientNames() const {
    absl::flat_hash_map<std::string, ValueId> names;
    bool first = true;
    for (const ir::Input& input : from_.inputs()) {
      const bool data = std::exchange(first, false);  // the first input has the batch
      if (data || !ir::IsFloat(from_.type(input.value).dtype)) continue;
      const absl::string_view name = from_.value_name(input.value);
      for (const std::string& gradient :
           {absl::StrCat("d", name), absl::StrCat(name, "_grad"), absl::StrCat(name, ".grad"),
            absl::StrCat("grad_", name), absl::StrCat("gradient_", name)}) {
        names.emplace(gradient, input.value);
      }
    }
    return names;
  }

  void FindOutputRoles() {
    const absl::flat_hash_map<std::string, ValueId> gradients = GradientNames();
    for (ir::Output output : from_.outputs()) {
      const OpId op = from_.producer(output.value);
      const auto named = gradients.find(from_.value_name(output.value));
      if (op.valid() && from_.info(op).op_class == ir::OpClass::kOptimizer) {
        FindUpdated(op, output);
      } else if (op.valid() && from_.info(op).is_loss) {
        output.role = OutputRole::kLoss;
      } else if (op.valid() && named != gradients.end() &&
                 from_.type(named->second).dims == from_.type(output.value).dims) {
        output = {.value = output.value, .role = OutputRole::kGradient, .of = named->second};
        roles_[named->second] = InputRole::kParameter;
      }
      outputs_.push_back(output);
    }
  }

  // Result i of an optimizer is operand i, some time later; the first of them are parameters.
  void FindUpdated(OpId op, ir::Output& output) {
    const auto i = static_cast<size_t>(output.value.index() - from_.result(op).index());
    const ValueId updated = from_.operands(op)[i];
    if (from_.producer(updated).valid()) return;
    output.role = OutputRole::kUpdated;
    output.of = updated;
    const bool parameter = i < ir::ParameterCount(from_.attributes(op));
    roles_[updated] = parameter ? InputRole::kParameter : InputRole::kState;
  }

  void Mark(ValueId value) {
    if (ir::IsFloat(from_.type(value).dtype)) reached_[value] = 1;
  }

  // Marks what gradients flow into: from outputs, and from where a backward pass starts.
  void Reach() {
    for (const ir::Output& output : outputs_) {
      if (output.role == OutputRole::kResult || output.role == OutputRole::kLoss) {
        Mark(output.value);
      }
    }
    for (size_t i = from_.order().size(); i-- > 0;) {
      const OpId op = from_.order()[i];
      const ir::OpInfo& info = from_.info(op);
      bool flows = info.seeds_backward;
      for (int32_t r = 0; r < from_.result_count(op); ++r) {
        flows |= info.gradient != nullptr && reached_[from_.result(op, r)] != 0;
      }
      if (!flows) continue;
      const auto operands = from_.operands(op);
      for (size_t k = 0; k < operands.size(); ++k) {
        if (k >= 32 || (info.no_gradient >> k & 1) == 0) Mark(operands[k]);
      }
    }
  }

  // Weights among the inputs that the file calls data: what is read as one, and what stands behind
  // the first of those. Inputs of the batch, which comes first, are none unless they are read so,
  // or the batch is a single sample: then weights have its size, too. A file that holds weights
  // holds all of them.
  void FindWeights() {
    for (const ir::Input& input : from_.inputs()) {
      const bool held = input.role == InputRole::kParameter && reached_[input.value] != 0;
      if (held && from_.type(input.value).dims.size() > 1) return;
    }
    if (std::ranges::any_of(options_.weights, [&](ValueId w) { return reached_[w] != 0; })) return;
    IdTable<ValueId, char> read(from_.value_limit(), 0);
    for (const ValueId value : options_.weight_inputs) read[value] = 1;
    const int64_t batch = ir::BatchOf(from_);
    bool any = false, dotted = false, first = true;
    for (const ir::Input& input : from_.inputs()) {
      const ir::TensorType& type = from_.type(input.value);
      if (std::exchange(first, false) || !ir::IsFloat(type.dtype) || type.dims.empty()) continue;
      const bool fixed = input.role == InputRole::kBuffer || type.dims[0] != batch;
      any = any || (fixed && type.dims.size() > 1 && read[input.value] != 0);
      if (any && (fixed || batch == 1 || read[input.value] != 0)) weight_[input.value] = 1;
      dotted = dotted || (weight_[input.value] != 0 && IsDotted(input.value));
    }
    if (any) FindWeightsBefore(dotted);
  }

  // Before the first of them, where that is certain: what lacks a batch that others have, what is
  // repeated for each sample, and what is named as a part of a module where weights are.
  void FindWeightsBefore(bool dotted) {
    IdTable<ValueId, char> shared(from_.value_limit(), 0);
    for (const ValueId value : options_.shared_inputs) shared[value] = 1;
    bool first = true;
    for (const ir::Input& input : from_.inputs()) {
      const bool data = std::exchange(first, false) || !ir::IsFloat(from_.type(input.value).dtype);
      const bool certain = input.role == InputRole::kBuffer || shared[input.value] != 0 ||
                           (dotted && IsDotted(input.value));
      if (!data && certain) weight_[input.value] = 1;
    }
  }

  // "encoder.pos_embedding".
  bool IsDotted(ValueId value) const { return absl::StrContains(from_.value_name(value), '.'); }

  // Inputs that the user names.
  absl::Status Choose(absl::string_view option, const std::string& text, InputRole role) {
    if (text.empty()) return absl::OkStatus();
    ORRERY_ASSIGN_OR_RETURN(const std::unique_ptr<RE2> pattern, PatternOf(option, text));
    bool any = false;
    for (const ir::Input& input : from_.inputs()) {
      if (!Matches(*pattern, from_.value_name(input.value))) continue;
      any = true;
      const bool trained = role != InputRole::kParameter || reached_[input.value] != 0;
      roles_[input.value] = trained ? role : InputRole::kBuffer;
    }
    if (any) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(option, " ", Show(text), ": matches the name of no input"));
  }

  absl::Status Freeze() {
    if (options_.patterns.freeze.empty()) return absl::OkStatus();
    ORRERY_ASSIGN_OR_RETURN(const std::unique_ptr<RE2> pattern,
                            PatternOf("freeze", options_.patterns.freeze));
    bool any = false;
    const auto freeze = [&](ValueId value) {
      if (roles_[value] != InputRole::kParameter) return;
      if (!Matches(*pattern, from_.value_name(value))) return;
      roles_[value] = InputRole::kBuffer;
      any = true;
    };
    for (const ir::Input& input : from_.inputs()) freeze(input.value);
    for (const ValueId weight : options_.weights) freeze(weight);
    if (any) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("freeze ", Show(options_.patterns.freeze),
                                                   ": matches the name of no parameter"));
  }

  void AddInput(ValueId value) {
    ir::CopyInput({.value = value, .role = roles_[value]}, roles_[value], copy_);
  }

  void Copy() {
    for (const ir::Input& input : from_.inputs()) {
      if (input.role != InputRole::kParameter || uses_[input.value] > 0) AddInput(input.value);
    }
    for (const ValueId weight : options_.weights) {
      if (uses_[weight] > 0) AddInput(weight);
    }
    for (const OpId op : from_.order()) {
      if (copy_.values[from_.result(op)].valid()) continue;  // a constant that has become an input
      ir::CopyOp(op, copy_);
    }
    ir::CopyOutputs(outputs_, copy_);
  }

  const Function& from_;
  const RoleOptions& options_;
  IdTable<ValueId, InputRole> roles_;
  IdTable<ValueId, char> reached_;
  IdTable<ValueId, char> weight_;  // inputs that are parameters by what reads them
  std::vector<ir::Output> outputs_;
  IdTable<ValueId, int32_t> uses_;
  Function to_;
  ir::FunctionCopy copy_;
};

}  // namespace
}  // namespace roles_cc

absl::StatusOr<ir::Function> AssignRoles(const ir::Function& function, const RoleOptions& options) {
  ir::Function alive = function;
  ir::RemoveDeadOps(alive);
  return roles_cc::RoleAssigner(alive, options).Run();
}

}  // namespace orrery::importer
