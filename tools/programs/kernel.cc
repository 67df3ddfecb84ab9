#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cost_models/kernels/kernel_choice.h"
#include "cost_models/op_kernels.h"
#include "tools/flags.h"
#include "tools/kernel_loops.h"
#include "tools/kernel_question.h"
#include "tools/model_kernels.h"

// One kernel, how long it takes and what decides that; or all kernels of a model's step.

namespace orrery::tools {
namespace {

namespace po = boost::program_options;

constexpr absl::string_view kExample =
    "build/bin/kernel --shape 4096,12288,12288 --dtype bf16 --device h100";

void AddFlags(po::options_description& options, ModelKernelFlags& flags) {
  AddModelFlags(options, flags.model);
  AddPlanFlags(options, PlanForm::kOne, {}, flags.plan_axes);
  options.add_options()("roofline", po::value(&flags.roofline),
                        "draw the kernels on the device's roofline, to this file (.svg or .pdf)")(
      "csv", po::value(&flags.csv),
      "write the kernels as --cost-model kernels:FILE reads them and examples/profile_gpu.py "
      "--like measures them")("json", po::value(&flags.json), "write the kernels to this file");
}

int OfModel(int argc, char** argv) {
  ModelKernelFlags flags;
  ProgramSpec spec{
      .usage = "kernel --model M --batch-size B --cluster C [flags of plans] [--roofline F.svg]",
      .about =
          "Says which kernels a training step consists of, how long each takes, and what it "
          "reaches of the device's roofline.",
      .example =
          "build/bin/kernel --model gpt3-175b --batch-size 64 --dtype bf16 --cluster dgx-a100:8 "
          "--hp 8 --pp 8 --micro-batches 64 --roofline out/roofline.svg",
      .options = po::options_description("Flags")};
  AddFlags(spec.options, flags);
  return RunProgram(argc, argv, spec, [&] { return AnswerModel(flags); });
}

int Main(int argc, char** argv) {
  constexpr size_t kShortest = 4;  // "--m" could be another one
  if (GivesFlag(argc, argv, "--model", kShortest)) return OfModel(argc, argv);
  KernelFlags flags;
  std::string model;  // for --help: with it, OfModel has taken over
  ModelKernelFlags of_model;
  ProgramSpec spec{
      .usage = "kernel --shape SIZES --device NAME [flags]",
      .about = "Says how long a kernel takes by the cost model `kernels`, and what decides that.",
      .example = kExample,
      .options = po::options_description("Flags")};
  spec.options.add_options()("op", po::value(&flags.op)->default_value(flags.op),
                             "matmul: a product of matrices; grouped: those of experts; attention: "
                             "a fused one; elementwise: one that moves bytes")(
      "shape", po::value(&flags.shape),
      "of matmul m,n,k or batch,m,n,k: [m,k] times [k,n]; of grouped experts,m,n,k, m being the "
      "rows of each expert; of attention batch,heads,queries,width "
      "and, where there are others, keys; of elementwise the bytes that are read and written")(
      "dtype", po::value(&flags.dtype)->default_value(flags.dtype),
      "bf16, f16, f32, f8, f8b (with a scale for each 128 elements) or f4")(
      "layout", po::value(&flags.layout)->default_value(flags.layout),
      absl::StrCat("of products, along which rows the sum runs: of both operands, of the first, of "
                   "neither: ",
                   cost_models::kProductLayoutNames.List(" or "))
          .c_str())(
      "device", po::value(&flags.device)->required(),
      "kind of device, as h100-80gb, the beginning of its name, as h100, or a file of one")(
      "print-device", po::bool_switch(&flags.print_device),
      "print the device as a file, with its rates, instead")(
      "cost-model", po::value(&flags.cost_model)->default_value(flags.cost_model),
      "kernels:FILE: also what a table of measured kernels says, and the nearest of them")(
      "kernel-each", po::bool_switch(&flags.kernel_each),
      "of grouped, a kernel for each expert, as TransformerEngine has them, in place of one")(
      "backward", po::bool_switch(&flags.backward), "of attention, its gradients")(
      "all-keys", po::bool_switch(&flags.all_keys), "of attention, without a causal mask")(
      "attention", po::value(&flags.attention)->default_value(flags.attention),
      absl::StrCat("class of attention's kernel: ",
                   absl::StrJoin(cost_models::kAttentionClassNames, ", "))
          .c_str())("json", po::value(&flags.json), "write the figures to this file")(
      "model", po::value(&model),
      "in place of one kernel, those of a training step of this model: with --batch-size, "
      "--cluster, flags of plans, and --roofline F.svg (kernel --model M --help lists them)");
  AddKernelLoopFlags(spec.options, flags.loops);
  AddFlags(spec.other_form, of_model);
  return RunProgram(argc, argv, spec, [&] { return AnswerKernel(flags); });
}

}  // namespace
}  // namespace orrery::tools

int main(int argc, char** argv) { return orrery::tools::Main(argc, argv); }
