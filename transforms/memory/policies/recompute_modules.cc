#include <re2/re2.h>

#include <algorithm>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "ir/op_info.h"
#include "transforms/memory/recompute_policy.h"

// All but what modules of Megatron make (`--recompute-modules`), which are known by the names that
// values of built-in models have.

namespace orrery::transforms {
namespace recompute_modules_cc {
namespace {

using ir::Function;
using ir::OpId;
using ir::ValueId;

struct Module {
  absl::string_view name;
  const char* present;  // RE2 of a name that only models with the module have
  const char* dropped;  // of what is rematerialized; in parentheses what a layer's have in common
  bool as_a_whole = false;   // Megatron runs it again to its end, also what nothing reads
  bool keeps_first = false;  // its first result, which what comes next keeps anyway
};

constexpr char kCore[] = "^(.*\\.attn\\.)core$", kMlp[] = "^(.*\\.mlp\\.)(?:gate|up|act|down)$",
               kNorms[] = "^(.*)\\.ln_[12]$", kExperts[] = "^(.*\\.moe\\.)",
               kActivations[] = "^(.*\\.moe\\.)act$", kShared[] = "^(.*\\.moe\\.shared\\.)";

// In Megatron feed-forwards and experts are checkpoints; of norms, activations of experts and
// projections the output alone is discarded.
constexpr Module kModules[] = {
    {"core_attn", kCore, kCore, /*as_a_whole=*/false, /*keeps_first=*/true},
    {"mlp", kMlp, kMlp, /*as_a_whole=*/true},
    {"layernorm", kNorms, kNorms},
    {"moe", kExperts, kExperts, /*as_a_whole=*/true},
    {"moe_act", kActivations, kActivations},
    {"shared_experts", kShared, kShared, /*as_a_whole=*/true},
    {"mla_up_proj", "^(.*\\.attn\\.)k_plain$",
     "^(.*\\.attn\\.)(?:q_plain|k_plain|q_rot|k_rot|q|k)$"},
};

std::vector<const Module*> ModulesOf(absl::string_view names) {
  std::vector<const Module*> modules;
  const std::vector<absl::string_view> wanted = absl::StrSplit(names, ',');
  for (const Module& module : kModules) {
    if (std::ranges::count(wanted, module.name) > 0) modules.push_back(&module);
  }
  return modules;
}

std::string NamesOf(std::span<const Module* const> modules, absl::string_view between) {
  return absl::StrJoin(modules, between, [](std::string* out, const Module* module) {
    absl::StrAppend(out, module->name);
  });
}

std::string AllNames() {
  std::vector<const Module*> all;
  for (const Module& module : kModules) all.push_back(&module);
  return NamesOf(all, ", ");
}

absl::StatusOr<std::optional<RecomputePolicy>> Parse(absl::string_view text) {
  if (!absl::ConsumePrefix(&text, "modules:")) return std::nullopt;
  for (const absl::string_view name : absl::StrSplit(text, ',')) {
    const bool known =
        std::ranges::any_of(kModules, [&](const Module& module) { return module.name == name; });
    if (known) continue;
    return absl::InvalidArgumentError(absl::StrCat("'modules:", text.substr(0, 80), "': '",
                                                   name.substr(0, 80), "' is no module; wanted ",
                                                   AllNames(), " with commas between"));
  }
  // In one order, so that each choice has one text.
  return RecomputePolicy{.record = &kModulesRecompute, .pattern = NamesOf(ModulesOf(text), ",")};
}

std::string Print(const RecomputePolicy& policy) {
  return absl::StrCat("modules:", policy.pattern);
}

// Names that an expression finds.
class Names {
 public:
  explicit Names(const char* pattern) : pattern_(pattern) {}

  bool Find(const Function& function, ValueId value) const {
    return !Prefix(function, value).empty();
  }

  // What the expression has in its parentheses; empty: it finds nothing.
  std::string Prefix(const Function& function, ValueId value) const {
    const absl::string_view name = function.value_name(value);
    std::string prefix;
    const bool found =
        !name.empty() && RE2::PartialMatch({name.data(), name.size()}, pattern_, &prefix);
    return found ? prefix : "";
  }

 private:
  RE2 pattern_;
};

std::string Lacks(std::span<const Function* const> forwards, const RecomputePolicy& policy) {
  std::vector<const Module*> there;
  for (const Module& module : kModules) {
    const Names names(module.present);
    const bool found = std::ranges::any_of(forwards, [&](const Function* forward) {
      return std::ranges::any_of(forward->order(), [&](OpId op) {
        return forward->result_count(op) > 0 && names.Find(*forward, forward->result(op));
      });
    });
    if (found) there.push_back(&module);
  }
  for (const Module* module : ModulesOf(policy.pattern)) {
    if (std::ranges::count(there, module) > 0) continue;
    return absl::StrCat(
        "the model has no '", module->name, "'; ",
        there.empty() ? "wanted a built-in model: modules are known by its names" : "it has ",
        NamesOf(there, ", "), "; try `recompute` match:REGEX");
  }
  return "";
}

// Not one that stages give to what has none: "v12".
bool HasName(const Function& forward, ValueId value) {
  return absl::StrContains(forward.value_name(value), '.');
}

// What has no name goes by that of a view of it.
void MarkModule(const Function& forward, const Module& module,
                IdTable<ValueId, char>& rematerialized) {
  const Names names(module.dropped);
  IdTable<ValueId, char> viewed(forward.value_limit(), 0);
  const auto& order = forward.order();
  for (auto op = order.rbegin(); op != order.rend(); ++op) {
    if (forward.result_count(*op) == 0) continue;
    const ValueId first = forward.result(*op);
    const bool found =
        names.Find(forward, first) || (viewed[first] != 0 && !HasName(forward, first));
    if (!found) continue;
    for (int32_t i = module.keeps_first ? 1 : 0; i < forward.result_count(*op); ++i) {
      rematerialized[forward.result(*op, i)] = 1;
    }
    const bool view = forward.info(*op).strided_view && !forward.operands(*op).empty();
    if (view) viewed[forward.operands(*op)[0]] = 1;
  }
}

void Mark(const ForwardValues& f, const RecomputePolicy& policy,
          IdTable<ValueId, char>& rematerialized) {
  const Function& forward = f.function;
  for (const OpId op : forward.order()) {
    for (int32_t i = 0; i < forward.result_count(op); ++i) {
      rematerialized[forward.result(op, i)] = f.saved[forward.result(op, i)] == 0 ? 1 : 0;
    }
  }
  for (const Module* module : ModulesOf(policy.pattern))
    MarkModule(forward, *module, rematerialized);
}

// Of each module of each layer, all from its first op to its last.
std::vector<int32_t> Groups(const ForwardValues& f, const RecomputePolicy& policy) {
  const Function& forward = f.function;
  const auto& order = forward.order();
  std::vector<int32_t> groups(order.size(), -1);
  int32_t count = 0;
  for (const Module* module : ModulesOf(policy.pattern)) {
    if (!module->as_a_whole) continue;
    const Names names(module->dropped);
    absl::flat_hash_map<std::string, std::pair<size_t, size_t>> ranges;
    for (size_t i = 0; i < order.size(); ++i) {
      if (forward.result_count(order[i]) == 0) continue;
      const std::string prefix = names.Prefix(forward, forward.result(order[i]));
      if (prefix.empty()) continue;
      ranges.try_emplace(prefix, i, i).first->second.second = i;
    }
    std::vector<std::pair<size_t, size_t>> sorted;
    for (const auto& [prefix, range] : ranges) sorted.push_back(range);
    std::ranges::sort(sorted);
    for (const auto& [first, last] : sorted) {
      std::fill(groups.begin() + static_cast<std::ptrdiff_t>(first),
                groups.begin() + static_cast<std::ptrdiff_t>(last) + 1, count++);
    }
  }
  return groups;
}

}  // namespace
}  // namespace recompute_modules_cc

extern constinit const RecomputeRecord kModulesRecompute = {
    .name = "modules",
    .values =
        "modules:NAME,… (what Megatron's modules make: core_attn, mlp, layernorm, moe, "
        "moe_act, shared_experts, mla_up_proj)",
    .wanted = "modules:NAME,…",
    .example = "modules:core_attn",
    .parse = recompute_modules_cc::Parse,
    .print = recompute_modules_cc::Print,
    .open_prefix = "modules:",
    .lacks = recompute_modules_cc::Lacks,
    .mark = recompute_modules_cc::Mark,
    .groups = recompute_modules_cc::Groups,
};

}  // namespace orrery::transforms
