#include <iostream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cost_models/summary.h"
#include "importer/builtin_models.h"
#include "ir/text.h"
#include "ir/verifier.h"
#include "support/status.h"
#include "tools/flags.h"
#include "transforms/fp8_mixed.h"
#include "transforms/parallel.h"
#include "transforms/pass.h"

// Runs passes over the IR and prints it.

namespace orrery::tools {
namespace {

namespace po = boost::program_options;

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
  transforms::ParallelDegrees degrees;
  transforms::ZeroOptions zero;
  bool stages = false;
  std::string recompute = "none", offload = "none";
  int64_t offload_prefetch = 1;
};

void ListPasses() {
  for (const transforms::PassInfo* pass : transforms::AllPasses()) {
    const std::string options = pass->options.empty() ? "" : absl::StrCat("{", pass->options, "}");
    std::cout << absl::StrFormat("%-36s %s\n", absl::StrCat(pass->name, options), pass->summary);
  }
}

absl::Status PrintStages(const Flags& flags, const ir::Function& function) {
  transforms::SpreadOptions options = {.zero = flags.zero, .fp8_mixed = flags.model.fp8_mixed()};
  ORRERY_ASSIGN_OR_RETURN(
      options.recompute,
      Annotated(transforms::ParseRecomputePolicy(flags.recompute), "--recompute"));
  ORRERY_ASSIGN_OR_RETURN(options.stages.choice,
                          MakeStageChoice(flags.model.stages, transforms::StagesBy::kFlops));
  ORRERY_ASSIGN_OR_RETURN(options.offload,
                          Annotated(transforms::ParseOffloadPolicy(flags.offload), "--offload"));
  options.offload.prefetch = std::max<int64_t>(0, flags.offload_prefetch);
  ORRERY_ASSIGN_OR_RETURN(const transforms::PipelinedStep step,
                          transforms::ParallelTransform3d(function, flags.degrees, options));
  for (const ir::Function& stage : step.Functions()) {
    if (flags.verify_each) ORRERY_RETURN_IF_ERROR(ir::Verify(stage));
  }
  std::cout << ir::Print(step.Functions());
  return absl::OkStatus();
}

bool Spreads(const Flags& flags) {
  return flags.stages || flags.degrees.ranks() > 1 || flags.degrees.microbatches > 1 ||
         flags.recompute != "none" || flags.offload != "none";
}

// Whether the training step is asked for, not the function as it stands in the file. Passes say
// themselves what they want, and IR text is taken as it is where it is spread.
bool WantsStep(const Flags& flags) {
  const ModelFlags& model = flags.model;
  const bool asks = flags.step || flags.summary || !model.loss.kind.empty() ||
                    !model.loss.output.empty() || !model.optimizer.empty() || model.no_simplify;
  const bool is_text = absl::EndsWith(model.model, ".orr");
  return flags.passes.empty() && (asks || (Spreads(flags) && !is_text));
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
  if (flags.list_models) {
    std::cout << importer::DescribeBuiltinModels();
    return absl::OkStatus();
  }
  if (flags.model.model.empty()) {
    return absl::InvalidArgumentError("no input; wanted FILE.onnx, FILE.orr or a built-in model");
  }
  ORRERY_RETURN_IF_ERROR(transforms::MakeMesh(flags.degrees).status());
  if (flags.degrees.microbatches < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("--micro-batches ", flags.degrees.microbatches, ": wanted at least 1"));
  }
  ORRERY_ASSIGN_OR_RETURN(const std::vector<transforms::PassCall> passes,
                          transforms::ParsePasses(flags.passes));
  ORRERY_ASSIGN_OR_RETURN(ir::Function function, LoadModel(flags.model));
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
  if (WantsStep(flags)) ORRERY_RETURN_IF_ERROR(MakeTrainingStep(flags.model, function));
  if (flags.summary) return PrintSummary(flags, function);
  if (Spreads(flags)) return PrintStages(flags, function);
  if (WantsStep(flags) && flags.model.fp8_mixed()) {
    ORRERY_RETURN_IF_ERROR(transforms::Fp8Mixed(function).status());
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
  AddStageFlags(spec.options, flags.model.stages);
  spec.options.add_options()("input", po::value(&flags.model.model),
                             "FILE.onnx, FILE.orr or a built-in model")(
      "passes", po::value(&flags.passes), "passes in the order in which to run them")(
      "list-passes", po::bool_switch(&flags.list_passes), "names all passes with their options")(
      "list-models", po::bool_switch(&flags.list_models),
      "names all built-in models with their keys and sources")(
      "summary", po::bool_switch(&flags.summary),
      "print parameters, flops, bytes and kernels of the training step, or of what --passes leave")(
      "step", po::bool_switch(&flags.step),
      "print the training step that simulate plays; --loss, --output, --optimizer and "
      "--no-simplify "
      "imply it")("json", po::bool_switch(&flags.json), "print the summary as JSON")(
      "verify-each", po::bool_switch(&flags.verify_each), "check the IR after each pass")(
      "print-after-all", po::bool_switch(&flags.print_after_all), "print the IR after each pass")(
      "batch-size", po::value(&flags.model.batch_size), "samples in one global batch")(
      "stages", po::bool_switch(&flags.stages),
      "print the functions of each stage, spread by the degrees below; any degree implies it")(
      "dp", po::value(&flags.degrees.dp), "data-parallel degree [1]")(
      "hp", po::value(&flags.degrees.hp), "horizontal (tensor) parallel degree [1]")(
      "pp", po::value(&flags.degrees.pp), "pipeline stages [1]")(
      "micro-batches", po::value(&flags.degrees.microbatches), "microbatches [1]")(
      "recompute", po::value(&flags.recompute),
      "what backward computes again, as simulate has it [none]")(
      "offload", po::value(&flags.offload), "what the host keeps, as simulate has it [none]")(
      "offload-prefetch", po::value(&flags.offload_prefetch), "layers copied back ahead [1]")(
      "zero", po::value(&flags.zero.stage), "stage of ZeRO: what dp ranks share out, 0 to 3 [0]")(
      "zero-group", po::value(&flags.zero.group), "neighbouring dp ranks that share it [all]")(
      "prefetch", po::value(&flags.zero.prefetch), "units gathered ahead, of stage 3 [1]");
  spec.positional.add("input", 1);
  return RunProgram(argc, argv, spec, [&] { return Optimize(flags); });
}

}  // namespace
}  // namespace orrery::tools

int main(int argc, char** argv) { return orrery::tools::Main(argc, argv); }
