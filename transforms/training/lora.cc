#include "transforms/training/lora.h"

#include <re2/re2.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "ir/builder.h"
#include "ir/copy.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "support/printable.h"
#include "support/status.h"
#include "transforms/pass/pass.h"
#include "transforms/training/hidden_matrices.h"
#include "transforms/training/step_phases.h"

namespace orrery::transforms {
namespace lora_cc {
namespace {

using ir::Function;
using ir::InputRole;
using ir::OpId;
using ir::OpKind;
using ir::ValueId;

// One product of an op: which result, of which weight.
struct Branch {
  int32_t result = 0;
  size_t weight = 1;
};

std::vector<Branch> BranchesOf(const Function& function, OpId op) {
  const ir::AttributeSet& attributes = function.attributes(op);
  switch (function.kind(op)) {
    case OpKind::kMatMul:
      if (attributes.Int("transpose_x", 0) != 0) return {};
      return {{}};
    case OpKind::kLinear:
      return {{}};
    case OpKind::kLinearGroup: {
      std::vector<Branch> branches;
      for (int64_t i = 0; i < attributes.Int("count", 0); ++i) {
        branches.push_back(
            {.result = static_cast<int32_t>(i), .weight = static_cast<size_t>(i) + 1});
      }
      return branches;
    }
    default:
      return {};
  }
}

class Adapting {
 public:
  Adapting(const Function& function, const LoraOptions& options, const RE2* pattern)
      : from_(function),
        options_(options),
        pattern_(pattern),
        heads_(FindHeads(function)),
        is_weight_(function.value_limit(), 0),
        builder_(function.name(), function.mesh()),
        copy_{.from = function, .to = builder_.function()} {
    for (const ir::Input& input : function.inputs()) {
      is_weight_[input.value] = ir::IsWeight(input.role) ? 1 : 0;
    }
  }

  absl::StatusOr<Function> Run() {
    for (const ir::Input& input : from_.inputs()) {
      const bool trained = input.role == InputRole::kParameter;
      ir::CopyInput(input, trained ? InputRole::kFrozen : input.role, copy_);
    }
    for (const OpId op : from_.order()) {
      Copy(op);
      if (!builder_.status().ok()) return builder_.status();
    }
    ir::CopyOutputs(from_.outputs(), copy_);
    if (pairs_.empty()) return NothingMatches();
    return std::move(builder_).Finalize();
  }

 private:
  struct Pair {
    ValueId a, b;
  };

  absl::Status NothingMatches() const {
    if (pattern_ != nullptr) {
      return absl::InvalidArgumentError(absl::StrCat(
          from_.name(), ": `lora` match=", Show(options_.match),
          " is the name of no product with a weight; wanted one such as attn; opt prints names"));
    }
    return absl::InvalidArgumentError(
        absl::StrCat(from_.name(),
                     ": has no product with a weight for `lora` but the last one; "
                     "try match=. for that, too"));
  }

  bool Matches(ValueId value) const {
    const absl::string_view name = from_.value_name(value);
    return RE2::PartialMatch(re2::StringPiece(name.data(), name.size()), *pattern_);
  }

  bool IsAdapted(OpId op, const Branch& branch) const {
    const ValueId weight = from_.operands(op)[branch.weight];
    if (is_weight_[weight] == 0 || from_.type(weight).dims.size() < 2) return false;
    if (pattern_ == nullptr) return heads_[op] == 0;
    return Matches(weight) || Matches(from_.result(op, branch.result));
  }

  // The op, and behind it the sums of what is adapted.
  void Copy(OpId op) {
    std::vector<Branch> adapted;
    for (const Branch& branch : BranchesOf(from_, op)) {
      if (IsAdapted(op, branch)) adapted.push_back(branch);
    }
    if (adapted.empty()) return ir::CopyOp(op, copy_);
    const std::string activation = from_.attributes(op).String("activation", "");
    std::vector<ValueId> operands;
    for (const ValueId operand : from_.operands(op)) operands.push_back(copy_.values[operand]);
    std::vector<std::string> names;
    for (int32_t i = 0; i < from_.result_count(op); ++i)
      names.push_back(NameOfBase(op, i, adapted));
    if (!activation.empty()) names.resize(1);
    const std::vector<absl::string_view> views(names.begin(), names.end());
    const OpId base = builder_.Ops(from_.kind(op), operands, views, WithoutActivation(op));
    if (!base.valid()) return;
    for (int32_t i = 0; i < static_cast<int32_t>(names.size()); ++i) {
      copy_.values[from_.result(op, i)] = builder_.function().result(base, i);
    }
    for (const Branch& branch : adapted) AddPair(op, branch);
    if (!activation.empty()) Activate(op, activation);
  }

  std::string NameOfBase(OpId op, int32_t i, const std::vector<Branch>& adapted) {
    const std::string name(from_.value_name(from_.result(op, i)));
    const bool sums = std::ranges::any_of(adapted, [i](const Branch& b) { return b.result == i; });
    if (!sums || name.empty()) return name;
    return builder_.FreeName(absl::StrCat(name, ".base"));
  }

  ir::AttributeSet WithoutActivation(OpId op) const {
    ir::AttributeSet kept;
    for (const auto& [name, value] : from_.attributes(op).attributes()) {
      if (name != "activation") kept.Set(name, value);
    }
    return kept;
  }

  void AddPair(OpId op, const Branch& branch) {
    const ValueId result = from_.result(op, branch.result);
    const ValueId x = copy_.values[from_.operands(op)[0]];
    const Pair pair = PairOf(op, branch);
    if (!builder_.status().ok()) return;
    const std::string name(from_.value_name(result));
    const auto named = [&](absl::string_view suffix) {
      return name.empty() ? "" : builder_.FreeName(absl::StrCat(name, suffix));
    };
    ValueId narrow = builder_.Op(OpKind::kMatMul, {x, pair.a}, named(".lora_a"));
    const double scale =
        options_.alpha == 0 ? 1 : options_.alpha / static_cast<double>(options_.rank);
    if (scale != 1) narrow = builder_.Op(OpKind::kScale, {narrow}, "", {{"factor", scale}});
    ir::AttributeSet out;
    if (const ir::Attribute* type = from_.attributes(op).Find("out")) out.Set("out", *type);
    const ValueId sum = builder_.Op(OpKind::kMatMul, {narrow, pair.b}, named(".lora_b"), out);
    const bool activated = !from_.attributes(op).String("activation", "").empty();
    copy_.values[result] =
        builder_.Op(OpKind::kAdd, {copy_.values[result], sum}, activated ? named(".sum") : name);
  }

  // A of as many rows as the weight has, B of as many columns, for each of its matrices.
  Pair PairOf(OpId op, const Branch& branch) {
    const ValueId weight = from_.operands(op)[branch.weight];
    const auto known = pairs_.find(weight);
    if (known != pairs_.end()) return known->second;
    const bool flips = from_.attributes(op).Int("transpose_w", 0) != 0;
    ir::TensorType type = from_.type(weight);
    const size_t rank = type.dims.size();
    const int64_t rows = type.dims[flips ? rank - 1 : rank - 2];
    const int64_t columns = type.dims[flips ? rank - 2 : rank - 1];
    absl::string_view name = from_.value_name(weight);
    absl::ConsumeSuffix(&name, ".weight");
    const auto add = [&](int64_t m, int64_t n, absl::string_view suffix) {
      type.dims[rank - 2] = m;
      type.dims[rank - 1] = n;
      const absl::string_view of = name.empty() ? "weight" : name;
      return builder_.Parameter(builder_.FreeName(absl::StrCat(of, suffix)), type);
    };
    const ValueId a = add(rows, options_.rank, ".lora_a.weight");
    const ValueId b = add(options_.rank, columns, ".lora_b.weight");
    return pairs_[weight] = {a, b};
  }

  void Activate(OpId op, const std::string& activation) {
    const ValueId result = from_.result(op), sum = copy_.values[result];
    // What the gradient of the Linear would read.
    if (from_.result_count(op) > 1) copy_.values[from_.result(op, 1)] = sum;
    ir::AttributeSet attributes;
    if (activation == "gelu_tanh") attributes.Set("approximate", std::string("tanh"));
    const OpKind kind = activation == "relu"   ? OpKind::kRelu
                        : activation == "silu" ? OpKind::kSilu
                                               : OpKind::kGelu;
    copy_.values[result] = builder_.Op(kind, {sum}, from_.value_name(result), attributes);
  }

  const Function& from_;
  const LoraOptions& options_;
  const RE2* pattern_;  // null: all but heads
  IdTable<OpId, char> heads_;
  IdTable<ValueId, char> is_weight_;
  ir::Builder builder_;
  ir::FunctionCopy copy_;
  absl::flat_hash_map<ValueId, Pair> pairs_;
};

}  // namespace
}  // namespace lora_cc

absl::StatusOr<LoraOptions> ParseLora(absl::string_view text) {
  LoraOptions options;
  const auto bad = [&](absl::string_view what) {
    return absl::InvalidArgumentError(
        absl::StrCat("`lora` ", Show(text), ": ", what,
                     "; wanted rank=16, or as in rank=16,alpha=32,match=attn"));
  };
  absl::string_view rest = text;
  while (!rest.empty()) {
    if (absl::ConsumePrefix(&rest, "match=")) {
      options.match = std::string(rest);
      if (options.match.empty()) return bad("match is empty");
      break;
    }
    const absl::string_view item = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(item.size() + 1, rest.size()));
    absl::string_view value = item;
    if (absl::ConsumePrefix(&value, "rank=")) {
      if (options.rank != 0) return bad("rank is there twice");
      if (!absl::SimpleAtoi(value, &options.rank) || options.rank < 1 || options.rank > 1 << 20) {
        return bad(absl::StrCat("rank is ", Show(value), ", no number from 1 to 1048576"));
      }
    } else if (absl::ConsumePrefix(&value, "alpha=")) {
      if (options.alpha != 0) return bad("alpha is there twice");
      if (!absl::SimpleAtod(value, &options.alpha) ||
          !(options.alpha > 0 && options.alpha <= 1e9)) {
        return bad(absl::StrCat("alpha is ", Show(value), ", no number above 0, at most 1e9"));
      }
    } else {
      return bad(absl::StrCat(Show(item), " is no key with a value"));
    }
  }
  if (options.rank == 0) return bad("says no rank");
  return options;
}

absl::StatusOr<bool> AddLora(ir::Function& function, const LoraOptions& options) {
  if (options.rank == 0) return false;
  if (HasBackward(function)) {
    return absl::InvalidArgumentError(absl::StrCat(
        function.name(), ": has a backward pass already; wanted a forward one for `lora`"));
  }
  std::unique_ptr<RE2> pattern;
  if (!options.match.empty()) {
    RE2::Options quiet;
    quiet.set_log_errors(false);
    quiet.set_max_mem(256 << 10);
    pattern = std::make_unique<RE2>(options.match, quiet);
    if (!pattern->ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("`lora` match=", Show(options.match),
                       ": is no regular expression; wanted one such as attn.*weight"));
    }
  }
  ORRERY_ASSIGN_OR_RETURN(function, lora_cc::Adapting(function, options, pattern.get()).Run());
  return true;
}

extern const PassInfo kLoraPass = {
    .name = "lora",
    .summary = "puts low-rank adapters beside products with weights, and freezes all else",
    .options = "rank=8,alpha=,match=",
    .run = [](ir::Function& function, const PassOptions& options) -> absl::StatusOr<bool> {
      // Values of options hold no commas: as text they are what the flag takes.
      std::string text = absl::StrCat("rank=", options.at("rank"));
      for (const absl::string_view key : {"alpha", "match"}) {
        const std::string& value = options.find(key)->second;
        if (!value.empty()) absl::StrAppend(&text, ",", key, "=", value);
      }
      ORRERY_ASSIGN_OR_RETURN(const LoraOptions lora, ParseLora(text));
      return AddLora(function, lora);
    },
};

}  // namespace orrery::transforms
