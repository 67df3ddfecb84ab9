#include "tools/validation/rows/row_recompute.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "support/status.h"

namespace orrery::tools {
namespace row_recompute_cc {
namespace {

using Kept = std::vector<std::pair<std::string, std::string>>;

// torchtitan's choice by op keeps every second product, attention, and the input of a layer.
constexpr absl::string_view kByOp =
    "match:(ln_1|ln_2|attn\\.k|_rot|attn\\.proj|mlp\\.up|mlp\\.act|mlp\\.down)$";

// MaxText's names of what a layer of a Llama makes, and the values here. What the projection makes
// is kept as the sum that it goes into.
constexpr std::pair<absl::string_view, absl::string_view> kNames[] = {
    {"decoder_layer_input", "mlp.residual"},
    {"query_proj", "attn.q"},
    {"key_proj", "attn.k"},
    {"value_proj", "attn.v"},
    {"context", "attn.core"},
    {"out_proj", "attn.residual"},
    {"mlpwi_0", "mlp.gate"},
    {"mlpwi_1", "mlp.up"},
    {"mlpwo", "mlp.down"}};
// Values of a layer, of which there are no others.
constexpr absl::string_view kOfLayer[] = {"ln_1",      "ln_2",          "attn.q",      "attn.k",
                                          "attn.v",    "attn.q_rot",    "attn.k_rot",  "attn.core",
                                          "attn.proj", "attn.residual", "mlp.gate",    "mlp.up",
                                          "mlp.act",   "mlp.down",      "mlp.residual"};

absl::string_view ValueOf(absl::string_view name) {
  const auto* const found = std::ranges::find(kNames, name, [](const auto& n) { return n.first; });
  return found == std::end(kNames) ? "" : found->second;
}

// "^h\.[0-9]+\.(attn\.q|mlp\.up)$", and all that experts make.
std::string Pattern(const std::vector<absl::string_view>& values, absl::string_view more) {
  std::string names = absl::StrJoin(values, "|");
  names = absl::StrReplaceAll(names, {{".", "\\."}});
  return absl::StrCat("^h\\.[0-9]+\\.((", names, ")$", more, ")");
}

absl::Status SetKept(const Kept& kept, transforms::ParallelPlan& plan) {
  std::vector<absl::string_view> dropped, offloaded;
  for (const absl::string_view value : kOfLayer) {
    const auto is = [&](const auto& name) { return ValueOf(name.first) == value; };
    const auto found = std::ranges::find_if(kept, is);
    if (found == kept.end()) {
      dropped.push_back(value);
    } else if (found->second == "offload") {
      offloaded.push_back(value);
    }
  }
  ORRERY_ASSIGN_OR_RETURN(plan.recompute, transforms::ParseRecomputePolicy(
                                              absl::StrCat("match:", Pattern(dropped, "|moe\\."))));
  if (offloaded.empty()) return absl::OkStatus();
  ORRERY_ASSIGN_OR_RETURN(plan.offload, transforms::ParseOffloadPolicy(
                                            absl::StrCat("activations:", Pattern(offloaded, ""))));
  return absl::OkStatus();
}

// What follows the colon of "selective: core_attn, mlp"; empty: nothing does.
std::string ModulesOf(absl::string_view text) {
  if (!absl::ConsumePrefix(&text, "selective:")) return "";
  std::vector<absl::string_view> names =
      absl::StrSplit(text, absl::ByAnyChar(" ,+"), absl::SkipEmpty());
  return absl::StrJoin(names, ",");
}

absl::StatusOr<transforms::RecomputePolicy> PolicyOf(const MeasuredStep& step) {
  const std::string text = absl::AsciiStrToLower(step.recompute);
  if (text.empty() || text == "none" || text == "off") return transforms::RecomputePolicy{};
  if (absl::StrContains(text, "per-op") || absl::StrContains(text, "per op"))
    return transforms::ParseRecomputePolicy(kByOp);
  if (absl::StartsWith(text, "full")) return transforms::ParseRecomputePolicy("full");
  if (const std::string modules = ModulesOf(text); !modules.empty()) {
    return transforms::ParseRecomputePolicy(absl::StrCat("modules:", modules));
  }
  if (absl::StartsWith(text, "selective")) return transforms::ParseRecomputePolicy("selective");
  return absl::FailedPreconditionError(absl::StrCat("recompute '", step.recompute, "'"));
}

}  // namespace
}  // namespace row_recompute_cc

absl::Status SetRecompute(const MeasuredStep& step, transforms::ParallelPlan& plan) {
  using row_recompute_cc::Kept;
  if (step.recompute == "qkv_proj_offloaded") {
    const Kept kept = {{"decoder_layer_input", "device"},
                       {"query_proj", "offload"},
                       {"key_proj", "offload"},
                       {"value_proj", "offload"}};
    return row_recompute_cc::SetKept(kept, plan);
  }
  // maxtext/configure.sh of NVIDIA/dgxc-benchmarking has POLICY="save_qkv_proj" for these rows.
  if (absl::StartsWith(step.recompute, "MaxText remat") && absl::StartsWith(step.id, "dgxc")) {
    const Kept kept = {{"decoder_layer_input", "device"},
                       {"query_proj", "device"},
                       {"key_proj", "device"},
                       {"value_proj", "device"}};
    return row_recompute_cc::SetKept(kept, plan);
  }
  if (step.recompute == "custom" && !step.kept.empty()) {
    return row_recompute_cc::SetKept(step.kept, plan);
  }
  ORRERY_ASSIGN_OR_RETURN(plan.recompute, row_recompute_cc::PolicyOf(step));
  return absl::OkStatus();
}

}  // namespace orrery::tools
