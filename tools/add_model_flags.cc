#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "support/word_list.h"
#include "tools/flags.h"
#include "tools/search_lists.h"
#include "transforms/training/quantize_frozen.h"

namespace orrery::tools {

namespace po = boost::program_options;

namespace add_model_flags_cc {
namespace {

// "roofline, distir, kernels or measured:FILE".
std::string CostModelNames() {
  std::vector<absl::string_view> names;
  for (const cost_models::CostModelInfo* info : cost_models::AllCostModels()) {
    names.push_back(info->name);
  }
  names.push_back("kernels:FILE");
  names.push_back("measured:FILE");
  return ListWords(names, " or ");
}

}  // namespace
}  // namespace add_model_flags_cc

void AddStepFlags(po::options_description& options, ModelFlags& flags) {
  options.add_options()("optimizer", po::value(&flags.optimizer),
                        absl::StrCat(transforms::OptimizerNames(), " [adam]").c_str())(
      "symbol", po::value(&flags.symbols)->composing(),
      "value of a dynamic ONNX dimension: batch=8 (repeat for more)")(
      "loss", po::value(&flags.loss.kind),
      absl::StrCat("for a model without a loss: ", transforms::LossNames(),
                   ", which is forward only [auto: cross-entropy on logits, else mse]")
          .c_str())(
      "output", po::value(&flags.loss.output),
      "the output of the model that gets the loss, or several with commas between [the first of "
      "floating point]")(
      "freeze", po::value(&flags.roles.freeze),
      "regular expression: weights of an ONNX file whose names match are not trained")(
      "lora", po::value(&flags.lora),
      "train low-rank adapters alone: rank=16, or as in rank=16,alpha=32,match=REGEX (of names of "
      "weights or products, the last key) [all products with a weight but the last]")(
      "frozen-dtype", po::value(&flags.frozen_dtype),
      absl::StrCat("how matrices that are not trained are stored: ", transforms::FrozenDTypeNames(),
                   " [none: as all weights]")
          .c_str())(
      "parameters", po::value(&flags.roles.parameters),
      "regular expression: inputs of an ONNX file whose names match are parameters [those that are "
      "read as weights and have no batch]")(
      "data", po::value(&flags.roles.data),
      "regular expression: inputs of an ONNX file whose names match are data, and no parameters")(
      "no-simplify", po::bool_switch(&flags.no_simplify),
      "play the graph op by op as it was written, without fused kernels");
}

namespace add_model_flags_cc {
namespace {

// What is no list of numbers is wrong usage, as what is no number is.
void AddBatchSizes(po::options_description& options, ModelFlags& flags,
                   std::vector<int64_t>& batch_sizes) {
  const auto take = [&](const std::string& text) {
    const absl::StatusOr<std::vector<int64_t>> sizes = ParseBatchSizes(text);
    if (!sizes.ok()) throw po::error(absl::StrCat("--batch-size ", sizes.status().message()));
    batch_sizes = *sizes;
    flags.batch_size = batch_sizes.front();
  };
  options.add_options()(
      "batch-size", po::value<std::string>()->required()->notifier(take),
      "samples in one global batch (one optimizer step); or several, with commas between");
}

}  // namespace
}  // namespace add_model_flags_cc

void AddModelFlags(po::options_description& options, ModelFlags& flags,
                   std::vector<int64_t>* batch_sizes) {
  options.add_options()(
      "model", po::value(&flags.model)->required(),
      "FILE.onnx, FILE.orr (text form of the IR), or built in, as in mlp:layers=64,dim=8192 or "
      "gpt3-175b:seq=1024: one of --list-models; opt --list-models tells their keys");
  if (batch_sizes != nullptr) {
    add_model_flags_cc::AddBatchSizes(options, flags, *batch_sizes);
  } else {
    options.add_options()("batch-size", po::value(&flags.batch_size)->required(),
                          "samples in one global batch (one optimizer step)");
  }
  AddStepFlags(options, flags);
  options.add_options()(
      "cluster", po::value(&flags.cluster)->required(),
      "uniform:16@200Gbps; preset and nodes, dgx-a100:4; a topology, fat-tree:1024@50GB/s; or a "
      "cluster file: --list-clusters names all")(
      "cost-model", po::value(&flags.cost_model),
      absl::StrCat(add_model_flags_cc::CostModelNames(), " [", kDefaultCostModel, "]").c_str())(
      "preset", po::value(&flags.preset), PresetsHelp().c_str())(
      "memory-limit", po::value(&flags.memory_limit),
      "bytes a device, such as 40GB, or none [what the device has]")(
      "memory-overhead", po::value(&flags.memory_overhead),
      "what a device holds beside the step: usual (by its record), or as in "
      "framework=1GiB,communicator=240MiB,workspace=64MiB,fragmentation=0.05 [none]")(
      "no-fold", po::bool_switch(&flags.no_fold), "simulate every rank")(
      "most-unfolded-tasks", po::value(&flags.most_unfolded_tasks),
      "ranks of a stage that are alike are simulated as one; those that are not each, where that "
      "makes at most so many tasks: beyond, one at the pace of the slowest");
}

}  // namespace orrery::tools
