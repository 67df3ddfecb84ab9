#ifndef ORRERY_TRANSFORMS_MEMORY_RECOMPUTE_POLICY_H_
#define ORRERY_TRANSFORMS_MEMORY_RECOMPUTE_POLICY_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ir/function.h"
#include "transforms/stages/forward_layers.h"

// What forward keeps for backward: a record for each way to choose it, and the choice of a user as
// a value.

namespace orrery::transforms {

struct RecomputeRecord;

#define ORRERY_RECOMPUTE_POLICY(Name, file) extern const RecomputeRecord k##Name##Recompute;
#include "transforms/memory/recompute_policies.def"
#undef ORRERY_RECOMPUTE_POLICY

/// What the forward of a microbatch keeps for its backward: one of the records, and what it is
/// told.
struct RecomputePolicy {
  const RecomputeRecord* record = &kNoneRecompute;  // one of AllRecomputePolicies; never null
  int64_t every = 1;                                // of records by layers: in groups of so many
  std::string pattern = {};                         // RE2 or names, of records that look for names

  friend bool operator==(const RecomputePolicy&, const RecomputePolicy&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const RecomputePolicy& p) {
    return H::combine(std::move(h), p.record, p.every, p.pattern);
  }
};

/// What forward keeps in the step of a plan: the policy, and what follows from how it is sharded.
struct KeepRule {
  RecomputePolicy policy = {};
  /// Whether an activation that forward puts together of parts on several ranks is kept in parts,
  /// and put together again, as Megatron's sequence parallelism has it.
  bool gathers = false;
  /// Whether a compiler makes one kernel of element-wise ops, and backward computes them anew
  /// where that keeps less (KeepLess).
  bool fuses = false;
  /// Whether a group of layers is run again as a whole where backward reads something of it, also
  /// what nothing reads, as checkpoints of Megatron and DeepSpeed do; else only what is read
  /// (PyTorch's since 2.1, `set_checkpoint_early_stop`).
  bool whole = false;
};

/// A forward function, as a policy sees it.
struct ForwardValues {
  const ir::Function& function;
  std::span<const LayerRange> layers;           // of records by layers; else none
  const IdTable<ir::ValueId, char>& saved;      // what later phases read
  const IdTable<ir::ValueId, char>& from_data;  // what is not made from parameters alone
};

/// What a record has for a plan that is short of memory.
struct RecomputeSuggestion {
  absl::string_view text = "";  // a policy of the record that is worth a try; empty: none
  double share = 1;             // of the activations, what it leaves, roughly
  int rank = 0;                 // how soon it is tried: Suggestion::rank
};

/// One way to choose what forward keeps. So many fields: what others ask of a way, each.
struct RecomputeRecord {
  absl::string_view name;
  absl::string_view values;   // what it is written as, and what that means, for --help
  absl::string_view wanted;   // what it is written as, for errors
  absl::string_view example;  // one that finds something in most models
  /// The policy that the text says; nullopt: the text is of another record. InvalidArgument for one
  /// of this record that is wrong.
  absl::StatusOr<std::optional<RecomputePolicy>> (*parse)(absl::string_view text) = nullptr;
  /// What `parse` reads.
  std::string (*print)(const RecomputePolicy& policy) = nullptr;
  /// Of a text that may have commas in it, what it begins with: what follows a comma in a list of
  /// policies and is none itself belongs to it. Empty: there are no commas.
  absl::string_view open_prefix = "";
  bool by_layers = false;  // whether it wants to know the layers of the model
  bool finds = false;      // whether it is an error where no stage keeps less
  /// What the policy looks for and the forward functions of all stages lack: "the model has no
  /// …"; empty: nothing. Null: what is never wrong.
  std::string (*lacks)(std::span<const ir::Function* const> forwards,
                       const RecomputePolicy& policy) = nullptr;
  /// Sets in `rematerialized` which values are rematerialized where a later phase wants them; the
  /// others are kept for it. What must not happen twice is taken out behind it. Null: everything
  /// that backward reads is kept.
  void (*mark)(const ForwardValues& forward, const RecomputePolicy& policy,
               IdTable<ir::ValueId, char>& rematerialized) = nullptr;
  /// Of records by layers: for each position in the order, which group of layers it is in, a number
  /// of its own; -1 outside of them.
  std::vector<int32_t> (*groups)(const ForwardValues& forward,
                                 const RecomputePolicy& policy) = nullptr;
  RecomputeSuggestion suggested = {};
};

/// All records, in the order of recompute_policies.def.
std::span<const RecomputeRecord* const> AllRecomputePolicies();

/// "none", "selective", "full" (every layer), "every:4", "match:gelu|norm", "modules:mlp"; an error
/// for another text, a number below 1, or a pattern that is no regular expression.
absl::StatusOr<RecomputePolicy> ParseRecomputePolicy(absl::string_view text);
std::string ToString(const RecomputePolicy& policy);

/// The texts of a list with commas between, each of which is a policy. What follows the comma of a
/// pattern and is no policy belongs to the pattern.
absl::StatusOr<std::vector<std::string>> ParseRecomputeList(absl::string_view text);

/// What all records are written as, for --help: "none, selective (…), … or match:REGEX (…)".
std::string RecomputeValues();

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_MEMORY_RECOMPUTE_POLICY_H_
