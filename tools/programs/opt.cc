#include <algorithm>
#include <iostream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cost_models/summary.h"
#include "importer/builtin_models.h"
#include "ir/text/text.h"
#include "ir/verifier.h"
#include "support/status.h"
#include "tools/flags.h"
#include "transforms/parallel.h"
#include "transforms/pass_registry.h"
#include "transforms/plan/axis_page.h"
#include "transforms/training/fp8_mixed.h"

// Runs passes over the IR and prints it.

namespace orrery::tools {
namespace {

namespace po = boost::program_options;

// So many fields: a flag each.
struct Flags {
  ModelFlags model;
  std::string passes;
  bool verify_each = false;
  bool print_after_all = false;
  bool list_passes = false;
  bool list_models = false;
  bool summary = false;
  bool json = false;
  bool step = false;
  PlanFlags axes;
  bool stages = false;
  bool list_stages = false;
  bool list_axes = false;
};

void ListPasses() {
  for (const transforms::PassInfo* pass : transforms::AllPasses()) {
    const std::string options = pass->options.empty() ? "" : absl::StrCat("{", pass->options, "}");
    std::cout << absl::StrFormat("%-36s %s\n", absl::StrCat(pass->name, options), pass->summary);
  }
}

// Without a cluster there are no prices: layers are divided by their flops.
transforms::ParallelPlan Unpriced() {
  transforms::ParallelPlan plan;
  plan.stages_by = transforms::StagesBy::kFlops;
  return plan;
}

void ListStages() {
  for (const transforms::StepStage* stage : transforms::AllStepStages()) {
    std::cout << absl::StrFormat("%-20s %s\n", stage->name, stage->summary);
  }
}

absl::Status PrintStages(const Flags& flags, const transforms::ParallelPlan& plan,
                         const ir::Function& function, const std::string& batch_lost) {
  absl::Status verified;
  const auto observe = [&](const transforms::StepStage& stage, const transforms::StepWork& work) {
    const std::vector<ir::Function> functions = work.Functions();
    for (const ir::Function& each : functions) {
      if (flags.verify_each && verified.ok()) {
        verified = Annotate(ir::Verify(each), absl::StrCat("after ", stage.name));
      }
    }
    if (!flags.print_after_all) return;
    std::cout << "// after " << stage.name << "\n" << ir::Print(functions) << "\n";
  };
  ORRERY_ASSIGN_OR_RETURN(
      const transforms::PipelinedStep step,
      transforms::ParallelTransform3d(function, plan, {.batch_lost = batch_lost}, observe));
  ORRERY_RETURN_IF_ERROR(verified);
  if (!flags.print_after_all) std::cout << ir::Print(step.Functions());
  return absl::OkStatus();
}

// Whether the plan asks for more than LoadModel does.
bool NeedsSharding(const Flags& flags, const transforms::ParallelPlan& plan) {
  return flags.stages ||
         std::ranges::any_of(transforms::AllAxes(), [&](const transforms::AxisInfo* axis) {
           return axis->scope == transforms::AxisScope::kStep && !axis->remakes_step &&
                  axis->print(plan) != axis->print(Unpriced());
         });
}

// Whether the training step is asked for, not the function as it stands in the file. Passes say
// themselves what they want, and IR text is taken as it is where it is sharded.
bool WantsStep(const Flags& flags, const transforms::ParallelPlan& plan) {
  const ModelFlags& model = flags.model;
  const bool asks = flags.step || flags.summary || !model.loss.kind.empty() ||
                    !model.loss.output.empty() || !model.optimizer.empty() || model.no_simplify;
  const bool is_text = absl::EndsWith(model.model, ".orr");
  return flags.passes.empty() && (asks || (NeedsSharding(flags, plan) && !is_text));
}

absl::Status PrintSummary(const Flags& flags, const ir::Function& function) {
  const cost_models::Summary summary = cost_models::Summarize(function);
  std::cout << (flags.json ? cost_models::SummaryJson(summary, flags.model.model)
                           : cost_models::SummaryText(summary, flags.model.model));
  return absl::OkStatus();
}

absl::Status Optimize(const Flags& flags) {
  if (flags.list_passes) {
    ListPasses();
    return absl::OkStatus();
  }
  if (flags.list_stages) {
    ListStages();
    return absl::OkStatus();
  }
  if (flags.list_axes) {
    std::cout << transforms::AxisTable();
    return absl::OkStatus();
  }
  if (flags.list_models) {
    std::cout << importer::DescribeBuiltinModels();
    return absl::OkStatus();
  }
  if (flags.model.model.empty()) {
    return absl::InvalidArgumentError("no input; wanted FILE.onnx, FILE.orr or a built-in model");
  }
  ORRERY_ASSIGN_OR_RETURN(const transforms::ParallelPlan plan, ReadPlan(flags.axes, Unpriced()));
  ORRERY_RETURN_IF_ERROR(transforms::MakeMesh(plan).status());
  ORRERY_RETURN_IF_ERROR(CheckFlags(flags.axes, plan, Unpriced()));
  ORRERY_ASSIGN_OR_RETURN(const std::vector<transforms::PassCall> passes,
                          transforms::ParsePasses(flags.passes));
  importer::ImportNotes notes;
  ORRERY_ASSIGN_OR_RETURN(ir::Function function, LoadModel(flags.model, plan, &notes));
  for (const transforms::PassCall& call : passes) {
    ORRERY_RETURN_IF_ERROR(transforms::RunPass(call, function).status());
    if (flags.verify_each) {
      ORRERY_RETURN_IF_ERROR(
          Annotate(ir::Verify(function), absl::StrCat("after ", call.pass->name)));
    }
    if (flags.print_after_all) {
      std::cout << "// after " << call.pass->name << "\n" << ir::Print(function) << "\n";
    }
  }
  if (WantsStep(flags, plan)) {
    PrintWarnings(WarningsOf(flags.model, notes));
    ORRERY_RETURN_IF_ERROR(MakeTrainingStep(flags.model, function));
  }
  if (flags.summary) return PrintSummary(flags, function);
  if (NeedsSharding(flags, plan)) return PrintStages(flags, plan, function, notes.batch_lost);
  if (WantsStep(flags, plan) && plan.copies().has_value()) {
    ORRERY_RETURN_IF_ERROR(transforms::MixProducts(function, *plan.copies()).status());
  }
  if (!flags.print_after_all || passes.empty()) std::cout << ir::Print(function);
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  Flags flags;
  ProgramSpec spec{.usage = "opt INPUT [--passes PASS,PASS{option=value},…] [flags]",
                   .about = "Prints a model as IR text, after the passes that are asked for.",
                   .example =
                       "build/bin/opt examples/models/mlp_64x512.onnx --passes "
                       "attach-loss,build-backward,append-optimizer{optimizer=adam}",
                   .options = po::options_description("Flags")};
  AddStepFlags(spec.options, flags.model);
  spec.options.add_options()("input", po::value(&flags.model.model),
                             "FILE.onnx, FILE.orr or a built-in model")(
      "passes", po::value(&flags.passes), "passes in the order in which to run them")(
      "list-passes", po::bool_switch(&flags.list_passes), "names all passes with their options")(
      "list-stages", po::bool_switch(&flags.list_stages),
      "names the stages of work that make a pipelined step, in their order")(
      "list-axes", po::bool_switch(&flags.list_axes),
      "prints what a plan chooses, as a table: flags, values and defaults")(
      "list-models", po::bool_switch(&flags.list_models),
      "names all built-in models with their keys and sources")(
      "summary", po::bool_switch(&flags.summary),
      "print parameters, flops, bytes and kernels of the training step, or of what --passes leave")(
      "step", po::bool_switch(&flags.step),
      "print the training step that simulate plays; --loss, --output, --optimizer and "
      "--no-simplify "
      "imply it")("json", po::bool_switch(&flags.json), "print the summary as JSON")(
      "verify-each", po::bool_switch(&flags.verify_each), "check the IR after each of these")(
      "print-after-all", po::bool_switch(&flags.print_after_all),
      "print the IR after each pass, and after each stage of work that parallelizes a step")(
      "batch-size", po::value(&flags.model.batch_size), "samples in one global batch")(
      "stages", po::bool_switch(&flags.stages),
      "print the functions of each stage, parallelized by the flags below; any of them but --dtype "
      "implies it");
  AddPlanFlags(spec.options, PlanForm::kStep, Unpriced(), flags.axes);
  spec.positional.add("input", 1);
  return RunProgram(argc, argv, spec, [&] { return Optimize(flags); });
}

}  // namespace
}  // namespace orrery::tools

int main(int argc, char** argv) { return orrery::tools::Main(argc, argv); }
