#include <algorithm>
#include <initializer_list>
#include <iostream>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "cost_models/summary.h"
#include "importer/builtin_models.h"
#include "ir/text/dead_ops.h"
#include "ir/text/text.h"
#include "ir/verifier.h"
#include "support/file.h"
#include "support/status.h"
#include "tools/flags.h"
#include "tools/kernel_listing_text.h"
#include "tools/kernel_question.h"
#include "tools/validation/software_stack.h"
#include "transforms/parallel.h"
#include "transforms/pass_registry.h"
#include "transforms/plan/axis_page.h"
#include "transforms/plan/step_dtype.h"
#include "transforms/substitutions/generate_rules.h"
#include "transforms/substitutions/standard_rules.h"
#include "transforms/training/fp8_mixed.h"

// Runs passes over the IR and prints it.

namespace orrery::tools {
namespace {

namespace po = boost::program_options;
namespace substitutions = transforms::substitutions;

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
  bool kernels = false;
  std::string stack, device;
  bool generate_substitutions = false;
  bool check_substitutions = false;
  std::optional<int64_t> seed;
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
                    !model.loss.output.empty() || !model.optimizer.empty() || !model.lora.empty() ||
                    !model.frozen_dtype.empty() || model.no_simplify;
  const bool is_text = absl::EndsWith(model.model, ".orr");
  return flags.passes.empty() && (asks || (NeedsSharding(flags, plan) && !is_text));
}

absl::Status PrintSummary(const Flags& flags, const ir::Function& function) {
  const cost_models::Summary summary = cost_models::Summarize(function);
  std::cout << (flags.json ? cost_models::SummaryJson(summary, flags.model.model)
                           : cost_models::SummaryText(summary, flags.model.model));
  return absl::OkStatus();
}

// The model; a text whose first pass removes dead ops may have some, which no other may.
absl::StatusOr<ir::Function> Load(const Flags& flags, const transforms::ParallelPlan& plan,
                                  const std::vector<transforms::PassCall>& passes,
                                  importer::ImportNotes& notes) {
  const ModelFlags& model = flags.model;
  const bool cleans = !passes.empty() && passes[0].pass->name == "dead-code";
  if (!cleans || !absl::EndsWith(model.model, ".orr")) return LoadModel(model, plan, &notes);
  ORRERY_ASSIGN_OR_RETURN(const std::string text, ReadFile(model.model));
  if (ir::ParseFunction(text).ok()) return LoadModel(model, plan, &notes);
  if (model.batch_size > 0 || transforms::TensorDType(plan.dtype).has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat(model.model,
                     ": has dead ops; wanted --passes dead-code without --batch-size and --dtype, "
                     "which then apply to the text that it prints"));
  }
  return Annotated(ir::ParseFunctionDroppingDeadOps(text), model.model);
}

absl::Status PrintKernels(const Flags& flags, const ir::Function& function) {
  ORRERY_ASSIGN_OR_RETURN(const cluster::Device device,
                          DeviceByBeginning(flags.device.empty() ? "a100-80gb" : flags.device));
  const std::string stack = flags.stack.empty() ? "torch-compile" : flags.stack;
  lowering::LoweringOptions options;
  ORRERY_RETURN_IF_ERROR(Annotate(SetStack(stack, StackUseOf(function), options), "--stack"));
  const KernelListingQuestion question = {
      .function = function, .device = device, .stack = stack, .kernels = options.kernels};
  std::cout << (flags.json ? KernelListingJson(question) : KernelListingText(question));
  return absl::OkStatus();
}

// What a pass says it did: above the function, or beside JSON, which has no comments.
void TellStory(const Flags& flags, const transforms::PassInfo& pass, absl::string_view story) {
  for (const absl::string_view line : absl::StrSplit(story, '\n', absl::SkipEmpty())) {
    (flags.json ? std::cerr << "opt: " : std::cout << "// ") << pass.name << ": " << line << "\n";
  }
}

// --kernels and --summary are of one function; what else they want.
absl::Status CheckOneFunction(const Flags& flags, const transforms::ParallelPlan& plan) {
  if (!flags.kernels && (!flags.stack.empty() || !flags.device.empty())) {
    return absl::InvalidArgumentError("--stack, --device: wanted with --kernels alone");
  }
  if ((!flags.kernels && !flags.summary) || !NeedsSharding(flags, plan)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      flags.kernels ? "--kernels" : "--summary",
      ": got --stages or a flag of plans, which make functions of each stage; wanted one function: "
      "leave these flags out",
      flags.kernels ? ", or try --kernels on a file of one of the functions that they print" : ""));
}

// Rules of the alphabets that come with Orrery, or of a file.
absl::Status GenerateSubstitutions(const Flags& flags) {
  std::string alphabets(substitutions::kAlphabets);
  if (!flags.model.model.empty()) {
    ORRERY_ASSIGN_OR_RETURN(alphabets, ReadFile(flags.model.model));
  }
  substitutions::Generation generation;
  if (flags.seed.has_value()) generation.seed = static_cast<uint64_t>(*flags.seed);
  absl::StatusOr<std::string> text =
      substitutions::GenerateText(alphabets, substitutions::kAxioms, generation);
  if (!text.ok() && !flags.model.model.empty()) return Annotate(text.status(), flags.model.model);
  ORRERY_RETURN_IF_ERROR(text.status());
  std::cout << *text;
  return absl::OkStatus();
}

// The rules that come with Orrery, or those of a file.
absl::Status CheckSubstitutions(const Flags& flags) {
  const std::string names = flags.model.model.empty() ? "standard" : flags.model.model;
  ORRERY_ASSIGN_OR_RETURN(
      const std::string text,
      substitutions::CheckRules(names, {.seed = static_cast<uint64_t>(flags.seed.value_or(1))}));
  std::cout << text;
  return absl::OkStatus();
}

// What is asked for, and what goes with it: nothing that is given is left out silently.
absl::Status CheckTogether(const Flags& flags) {
  std::vector<absl::string_view> alone;
  for (const auto& [name, given] : std::initializer_list<std::pair<absl::string_view, bool>>{
           {"--generate-substitutions", flags.generate_substitutions},
           {"--check-substitutions", flags.check_substitutions},
           {"--list-passes", flags.list_passes},
           {"--list-stages", flags.list_stages},
           {"--list-axes", flags.list_axes},
           {"--list-models", flags.list_models},
           {"--summary", flags.summary},
           {"--kernels", flags.kernels}}) {
    if (given) alone.push_back(name);
  }
  if (alone.size() > 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        absl::StrJoin(alone, ", "), ": each prints something else; wanted one of them"));
  }
  const bool tells = flags.summary || flags.kernels;  // of a model, after passes
  const bool rules = flags.generate_substitutions || flags.check_substitutions;
  const bool prints = flags.print_after_all || flags.verify_each;
  if (flags.json && !tells) {
    return absl::InvalidArgumentError("--json: wanted with --summary or --kernels");
  }
  if (flags.json && flags.print_after_all) {
    return absl::InvalidArgumentError("--json, --print-after-all: wanted one of them");
  }
  if (!alone.empty() && !tells && (!flags.passes.empty() || prints || flags.step || flags.stages)) {
    return absl::InvalidArgumentError(
        absl::StrCat(alone[0],
                     ": wanted without --passes, --step, --stages, --verify-each and "
                     "--print-after-all, which are of a model"));
  }
  if (flags.seed.has_value() && !rules) {
    return absl::InvalidArgumentError(
        "--seed: wanted with --check-substitutions or --generate-substitutions");
  }
  if (flags.seed.value_or(0) < 0) {
    return absl::InvalidArgumentError(absl::StrCat("--seed ", *flags.seed, ": wanted at least 0"));
  }
  if (flags.step && !flags.passes.empty()) {
    return absl::InvalidArgumentError(
        "--step, --passes: passes say themselves what they make of the model; wanted one of them");
  }
  return absl::OkStatus();
}

absl::Status Optimize(const Flags& flags) {
  ORRERY_RETURN_IF_ERROR(CheckTogether(flags));
  if (flags.generate_substitutions) return GenerateSubstitutions(flags);
  if (flags.check_substitutions) return CheckSubstitutions(flags);
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
  ORRERY_RETURN_IF_ERROR(CheckOneFunction(flags, plan));
  ORRERY_ASSIGN_OR_RETURN(const std::vector<transforms::PassCall> passes,
                          transforms::ParsePasses(flags.passes));
  importer::ImportNotes notes;
  ORRERY_ASSIGN_OR_RETURN(ir::Function function, Load(flags, plan, passes, notes));
  for (const transforms::PassCall& call : passes) {
    std::string story;
    ORRERY_RETURN_IF_ERROR(transforms::RunPass(call, function, &story).status());
    TellStory(flags, *call.pass, story);
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
  if (flags.kernels) return PrintKernels(flags, function);
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
      "imply it")("json", po::bool_switch(&flags.json),
                  "print the summary, or the kernels, as JSON")(
      "verify-each", po::bool_switch(&flags.verify_each), "check the IR after each of these")(
      "print-after-all", po::bool_switch(&flags.print_after_all),
      "print the IR after each pass, and after each stage of work that parallelizes a step")(
      "generate-substitutions", po::bool_switch(&flags.generate_substitutions),
      "print the rules that come of the alphabets or mutants of a file, or of the alphabets that "
      "substitute uses")(
      "check-substitutions", po::bool_switch(&flags.check_substitutions),
      "execute both sides of the rules of a file, or of those that substitute uses, on random "
      "shapes, and derive those that name axioms")(
      "seed", po::value<int64_t>()->notifier([&](int64_t seed) { flags.seed = seed; }),
      "of those shapes and of all elements [1]")("batch-size", po::value(&flags.model.batch_size),
                                                 "samples in one global batch")(
      "stages", po::bool_switch(&flags.stages),
      "print the functions of each stage, parallelized by the flags below; any of them but --dtype "
      "implies it")("kernels", po::bool_switch(&flags.kernels),
                    "print the kernels that --stack makes of the function on --device, with what "
                    "each reads and writes")("stack", po::value(&flags.stack),
                                             "of --kernels, one of simulate's --list-stacks, or a "
                                             "file that ends in .json [torch-compile]")(
      "device", po::value(&flags.device),
      "of --kernels, a kind of device, or the beginning of its name [a100-80gb]");
  AddPlanFlags(spec.options, PlanForm::kStep, Unpriced(), flags.axes);
  spec.positional.add("input", 1);
  return RunProgram(argc, argv, spec, [&] { return Optimize(flags); });
}

}  // namespace
}  // namespace orrery::tools

int main(int argc, char** argv) { return orrery::tools::Main(argc, argv); }
