#include "transforms/substitutions/substitute.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cluster/part_file.h"
#include "ir/op_info.h"
#include "ir/text/text.h"
#include "support/status.h"
#include "transforms/pass/pass.h"
#include "transforms/substitutions/dataflow.h"
#include "transforms/substitutions/fold_weights.h"
#include "transforms/substitutions/standard_rules.h"

namespace orrery::transforms {
namespace substitutions {
namespace substitute_cc {
namespace {

bool IsTrained(const ir::Function& function) {
  return std::ranges::any_of(function.outputs(), [](const ir::Output& output) {
    return output.role == ir::OutputRole::kGradient || output.role == ir::OutputRole::kUpdated;
  });
}

int32_t KernelsOf(const WorkTable& works, const Dataflow& flow) {
  int32_t kernels = 0;
  for (size_t i = static_cast<size_t>(flow.inputs); i < flow.nodes.size(); ++i) {
    const ir::OpInfo& info = ir::GetOpInfo(works[flow.nodes[i].work].kind);
    if (!flow.nodes[i].fixed && info.op_class != ir::OpClass::kView) kernels += info.kernels;
  }
  return kernels;
}

WorkTable::Price PriceOn(const SubstituteOptions& options) {
  return [&options](ir::OpKind kind, const ir::AttributeSet& attributes,
                    std::span<const ir::TensorType* const> operands,
                    std::span<const ir::TensorType* const> results) {
    const ir::OpClass op_class = ir::GetOpInfo(kind).op_class;
    if (op_class != ir::OpClass::kCompute && op_class != ir::OpClass::kOptimizer)
      return Duration(0);
    return options.cost_model->Compute(
        {.kind = kind, .attributes = attributes, .operands = operands, .results = results},
        options.device);
  };
}

absl::StatusOr<double> NumberOption(const PassOptions& options, absl::string_view name,
                                    double least) {
  double value = 0;
  const std::string& text = options.find(std::string(name))->second;
  if (absl::SimpleAtod(text, &value) && value >= least && value < 1e9) return value;
  return absl::InvalidArgumentError(
      absl::StrCat("option ", name, " is '", text, "'; wanted a number of at least ", least));
}

absl::StatusOr<bool> Run(ir::Function& function, const PassOptions& options, std::string& story) {
  const auto text = [&](absl::string_view name) { return options.find(std::string(name))->second; };
  ORRERY_ASSIGN_OR_RETURN(const std::unique_ptr<const cost_models::CostModel> cost_model,
                          cost_models::MakeCostModel(text("cost-model")));
  SubstituteOptions how;
  how.cost_model = cost_model.get();
  ORRERY_ASSIGN_OR_RETURN(how.device, cluster::FindDeviceOrFile(text("device")));
  ORRERY_ASSIGN_OR_RETURN(how.limits.alpha, NumberOption(options, "alpha", 1));
  ORRERY_ASSIGN_OR_RETURN(how.limits.steps, PositiveOption(options, "steps"));
  ORRERY_ASSIGN_OR_RETURN(how.limits.seconds, NumberOption(options, "seconds", 0));
  const std::string weights = text("weights");
  if (weights != "fixed" && weights != "folded" && weights != "trained") {
    return absl::InvalidArgumentError(
        absl::StrCat("option weights is '", weights, "'; wanted fixed, folded or trained"));
  }
  how.fixed_weights = weights != "trained";
  const bool folds = weights == "folded";
  if (folds && IsTrained(function)) {
    return absl::InvalidArgumentError(
        "option weights is 'folded', and the function has gradients of its weights; wanted fixed, "
        "which is trained there");
  }
  ORRERY_ASSIGN_OR_RETURN(const std::vector<Rule> rules, LoadRules(text("rules")));
  ORRERY_ASSIGN_OR_RETURN(Substitution substitution, Substitute(function, rules, how));
  absl::StrAppend(&story, Tell(substitution));
  if (!folds && substitution.rules.empty() && substitution.merged == 0) return false;
  const std::string before = folds ? ir::Print(function) : "";
  function = std::move(substitution.function);
  if (folds) function = FoldWeights(function);
  return !folds || ir::Print(function) != before;
}

}  // namespace
}  // namespace substitute_cc

absl::StatusOr<Substitution> Substitute(const ir::Function& function, std::span<const Rule> rules,
                                        const SubstituteOptions& options) {
  WorkTable works(substitute_cc::PriceOn(options));
  const bool fixed = options.fixed_weights && !substitute_cc::IsTrained(function);
  ORRERY_ASSIGN_OR_RETURN(const Dataflow given, OpByOp(function, fixed, works));
  ORRERY_ASSIGN_OR_RETURN(const Dataflow start, ToDataflow(function, fixed, works));
  const Rewriting found = SearchRewrites(start, rules, options.limits, works);
  Substitution substitution;
  substitution.function = ToFunction(works, found.best, function);
  substitution.before = given.price;
  substitution.after = found.best.price;
  substitution.kernels_before = substitute_cc::KernelsOf(works, given);
  substitution.kernels_after = substitute_cc::KernelsOf(works, found.best);
  substitution.merged = given.op_count() - start.op_count();
  substitution.expanded = found.expanded;
  substitution.graphs = found.graphs;
  substitution.all = found.all;
  for (const RewriteStep& step : found.steps) {
    substitution.rules.push_back(
        absl::StrCat(step.direction.rule->name, step.direction.backward ? ", backward" : ""));
    substitution.prices.push_back(step.price);
  }
  return substitution;
}

std::string Tell(const Substitution& substitution) {
  const double before = substitution.before.microseconds();
  const double after = substitution.after.microseconds();
  std::string text = absl::StrFormat(
      "kernels   %d -> %d\ntime      %.1f us -> %.1f us, one after another (%.2fx)\nsearch    %d "
      "graphs, "
      "rules applied to %d%s\n",
      substitution.kernels_before, substitution.kernels_after, before, after,
      after > 0 ? before / after : 1.0, substitution.graphs, substitution.expanded,
      substitution.all ? ": all within alpha" : "");
  if (substitution.merged > 0) {
    absl::StrAppend(&text,
                    absl::StrFormat("merged %2dx what another op computes\n", substitution.merged));
  }
  std::vector<std::pair<std::string, int>> counts;
  for (const std::string& rule : substitution.rules) {
    const auto found = std::ranges::find(counts, rule, &std::pair<std::string, int>::first);
    if (found == counts.end()) {
      counts.emplace_back(rule, 1);
    } else {
      ++found->second;
    }
  }
  for (const auto& [rule, count] : counts) {
    absl::StrAppend(&text, absl::StrFormat("rule %4dx %s\n", count, rule));
  }
  return text;
}

}  // namespace substitutions

extern const PassInfo kSubstitutePass = {
    .name = "substitute",
    .summary = "searches rules of equal graphs for the least time of kernels on a device",
    .options =
        "device=a100-80gb,cost-model=kernels,weights=fixed,rules=standard,alpha=1.05,steps=100,"
        "seconds=0",
    .run_and_tell = substitutions::substitute_cc::Run,
};

}  // namespace orrery::transforms
