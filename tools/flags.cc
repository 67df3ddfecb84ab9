#include "tools/flags.h"

#include <algorithm>
#include <iostream>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "importer/builtin_models.h"
#include "importer/load_model.h"
#include "search/model_flops.h"
#include "support/file.h"
#include "support/heap.h"
#include "support/status.h"
#include "transforms/microbatch.h"
#include "transforms/schedules/schedule.h"
#include "transforms/training_step.h"

namespace orrery::tools {
namespace {

// Names of files and values may hold anything; an error is one line that prints.
std::string OneLine(absl::string_view message) {
  std::string line;
  for (const char c : message) {
    if (absl::ascii_iscntrl(static_cast<unsigned char>(c))) {
      absl::StrAppend(&line, absl::CHexEscape(absl::string_view(&c, 1)));
    } else {
      line.push_back(c);
    }
  }
  return line;
}

namespace po = boost::program_options;

absl::StatusOr<std::optional<ir::DType>> ParseDTypeFlag(const std::string& text) {
  static const auto& kNames = *new std::map<std::string, ir::DType>{{"fp32", ir::DType::kF32},
                                                                    {"fp16", ir::DType::kF16},
                                                                    {"bf16", ir::DType::kBF16},
                                                                    {"fp8-mixed", ir::DType::kBF16},
                                                                    {"fp8", ir::DType::kF8}};
  if (text.empty()) return std::optional<ir::DType>();
  const auto found = kNames.find(text);
  if (found != kNames.end()) return std::optional<ir::DType>(found->second);
  return absl::InvalidArgumentError(
      absl::StrCat("--dtype '", text, "': wanted fp32, fp16, bf16, fp8-mixed or fp8"));
}

absl::StatusOr<std::map<std::string, int64_t>> ParseSymbols(const std::vector<std::string>& list) {
  std::map<std::string, int64_t> symbols;
  for (const std::string& item : list) {
    const size_t equals = item.rfind('=');
    int64_t value = 0;
    if (equals == std::string::npos || equals == 0 ||
        !absl::SimpleAtoi(item.substr(equals + 1), &value) || value < 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("--symbol '", item, "': wanted NAME=NUMBER, as in batch=8"));
    }
    symbols[item.substr(0, equals)] = value;
  }
  return symbols;
}

// The flag, or what the preset or the default says.
std::string Or(const std::string& given, absl::string_view fallback) {
  return given.empty() ? std::string(fallback) : given;
}

// 0: none.
absl::StatusOr<Bytes> MemoryLimit(absl::string_view text) {
  if (text.empty() || text == "none") return Bytes(0);
  absl::StatusOr<Bytes> limit = ParseBytes(text);
  if (!limit.ok() || *limit == Bytes(0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--memory-limit '", text, "': wanted bytes, such as 40GB, or none"));
  }
  return limit;
}

absl::StatusOr<Bytes> BucketSize(const ModelFlags& flags) {
  if (flags.bucket_size.empty()) return lowering::LoweringOptions().bucket_size;
  if (flags.bucket_size == "none") return Bytes(0);
  absl::StatusOr<Bytes> size = ParseBytes(flags.bucket_size);
  if (size.ok()) return size;
  return absl::InvalidArgumentError(
      absl::StrCat("--bucket-size '", flags.bucket_size,
                   "': wanted bytes, such as 25MiB, or none to reduce each gradient by itself"));
}

// Tokens a sample: the second dimension of an integer input, whose elements are tokens; else 1.
int64_t TokensASample(const ir::Function& step) {
  for (const ir::Input& input : step.inputs()) {
    const ir::TensorType& type = step.type(input.value);
    if (input.role == ir::InputRole::kData && type.dims.size() == 2 && !ir::IsFloat(type.dtype)) {
      return type.dims[1];
    }
  }
  return 1;
}

// Examples, and beside them what they are; those in a column that most fit into.
void PrintClusters() {
  constexpr size_t kColumn = 28;
  for (const cluster::ClusterSpelling& spelling : cluster::ListClusters()) {
    const size_t length = spelling.example.size();
    const std::string gap =
        length < kColumn ? std::string(kColumn - length, ' ') : "\n" + std::string(kColumn, ' ');
    std::cout << spelling.example << gap << spelling.summary << "\n";
  }
}

}  // namespace

void AddStepFlags(po::options_description& options, ModelFlags& flags) {
  options.add_options()(
      "dtype", po::value(&flags.dtype),
      "fp32, fp16, bf16 or fp8: of parameters and activations; fp8-mixed: bf16, and products of "
      "linear layers read 8-bit copies [as the model says]")(
      "optimizer", po::value(&flags.optimizer), "none, sgd, momentum or adam [adam]")(
      "symbol", po::value(&flags.symbols)->composing(),
      "value of a dynamic ONNX dimension: batch=8 (repeat for more)")(
      "loss", po::value(&flags.loss.kind),
      "cross-entropy, mse, sum, none (forward only) or auto: for a model without a loss [auto: "
      "cross-entropy on logits, else mse]")(
      "output", po::value(&flags.loss.output),
      "the output of the model that gets the loss, or several with commas between [the first of "
      "floating point]")(
      "freeze", po::value(&flags.freeze),
      "regular expression: weights of an ONNX file whose names match are not trained")(
      "no-simplify", po::bool_switch(&flags.no_simplify),
      "play the graph op by op as it was written, without fused kernels");
}

void AddModelFlags(po::options_description& options, ModelFlags& flags) {
  options.add_options()(
      "model", po::value(&flags.model)->required(),
      absl::StrCat("FILE.onnx, FILE.orr (text form of the IR), or built in, as in "
                   "mlp:layers=64,dim=8192 or gpt3-175b:seq=1024; opt --list-models tells their "
                   "keys: ",
                   importer::BuiltinModels())
          .c_str())("batch-size", po::value(&flags.batch_size)->required(),
                    "samples in one global batch (one optimizer step)");
  AddStepFlags(options, flags);
  options.add_options()(
      "cluster", po::value(&flags.cluster)->required(),
      "uniform:16@200Gbps; preset and nodes, dgx-a100:4; a topology, fat-tree:1024@50GB/s; or a "
      "cluster file; docs/clusters.md lists them all")(
      "cost-model", po::value(&flags.cost_model), "roofline, distir or measured:FILE [roofline]")(
      "blocking", po::bool_switch(&flags.blocking),
      "communication on the compute stream, no overlap")(
      "preset", po::value(&flags.preset),
      "distir: cost model distir, blocking, schedule distir, sgd, no memory limit, order pp,hp,dp")(
      "order", po::value(&flags.order),
      "mesh axes, neighbouring ranks first: hp,dp,pp in any permutation, with cp and ep where they "
      "are used [hp,cp,ep,dp,pp]")(
      "sharding", po::value(&flags.sharding),
      "what each op does along hp: auto, as is fastest by the cost model, or megatron: column and "
      "row products [auto]")("sequence-parallel", po::bool_switch(&flags.sequence_parallel),
                             "megatron with the residual stream split along the sequence")(
      "context-attention", po::value(&flags.context_attention),
      "how attention gets by with --cp: all-to-all, all-gather, ring, or auto: the fastest "
      "[auto]")(
      "zero-group", po::value(&flags.zero.group),
      "neighbouring dp ranks that share what --zero shares out; other groups hold copies [all]")(
      "offload-prefetch", po::value(&flags.offload_prefetch),
      "layers whose activations --offload copies back ahead of the one that computes [1]")(
      "prefetch", po::value(&flags.zero.prefetch),
      "layers whose weights --zero 3 gathers ahead of the one that computes [1]")(
      "shard", po::value(&flags.shard)->composing(),
      "REGEX=hp@1: axis hp splits dimension 1 of the values whose names match, or hp@whole; the "
      "rest is chosen around it (repeat for more)")(
      "memory-limit", po::value(&flags.memory_limit),
      "bytes a device, such as 40GB, or none [what the device has]")(
      "memory-overhead", po::value(&flags.memory_overhead),
      "what a device holds beside the step: usual (by its record), or as in "
      "framework=1GiB,communicator=240MiB,workspace=64MiB,fragmentation=0.05 [none]")(
      "bucket-size", po::value(&flags.bucket_size),
      "bytes of gradients that are reduced at once while backward still runs, or none: each "
      "gradient by itself; not with --blocking [25MiB]")("no-fold", po::bool_switch(&flags.no_fold),
                                                         "simulate every rank")(
      "algorithm", po::value(&flags.algorithm),
      "of collectives, where it can serve the group: auto, ring, "
      "all-reduce=ring,all-gather=direct; "
      "`collective --help` lists all [auto: the fastest]")(
      "most-unfolded-tasks", po::value(&flags.most_unfolded_tasks),
      "ranks of a stage that are alike are simulated as one; those that are not each, where that "
      "makes at most so many tasks: beyond, one at the pace of the slowest");
  AddStageFlags(options, flags.stages);
}

absl::StatusOr<ir::Function> LoadModel(const ModelFlags& flags) {
  importer::ModelSpec spec;
  spec.model = flags.model;
  spec.batch_size = flags.batch_size;
  ORRERY_ASSIGN_OR_RETURN(spec.dtype, ParseDTypeFlag(flags.dtype));
  ORRERY_ASSIGN_OR_RETURN(spec.symbols, ParseSymbols(flags.symbols));
  spec.freeze = flags.freeze;
  return importer::LoadModel(spec);
}

absl::Status MakeTrainingStep(const ModelFlags& flags, ir::Function& function) {
  // DistIR runs every op as it is written, and knows one loss.
  const transforms::StepOptions options{
      .optimizer = Or(flags.optimizer, flags.distir() ? "sgd" : "adam"),
      .loss = {.kind = Or(flags.loss.kind, flags.distir() ? "mse" : "auto"),
               .output = flags.loss.output},
      .simplify = !flags.no_simplify && !flags.distir()};
  return Annotate(transforms::MakeTrainingStep(function, options), flags.model);
}

namespace {

absl::Status SetSharding(const ModelFlags& flags, search::Setting& setting) {
  const std::string sharding =
      Or(flags.sharding, flags.distir() || flags.sequence_parallel ? "megatron" : "auto");
  if (sharding != "auto" && sharding != "megatron") {
    return absl::InvalidArgumentError(
        absl::StrCat("--sharding '", sharding, "': wanted auto or megatron"));
  }
  if (flags.sequence_parallel && sharding == "auto") {
    return absl::InvalidArgumentError(
        "--sequence-parallel: --sharding auto finds it where it pays; wanted --sharding megatron");
  }
  static const auto& kAttentions = *new std::map<std::string, transforms::ContextAttention>{
      {"", transforms::ContextAttention::kAuto},
      {"auto", transforms::ContextAttention::kAuto},
      {"all-to-all", transforms::ContextAttention::kAllToAll},
      {"all-gather", transforms::ContextAttention::kAllGather},
      {"ring", transforms::ContextAttention::kRing}};
  const auto attention = kAttentions.find(flags.context_attention);
  if (attention == kAttentions.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--context-attention '", flags.context_attention,
                     "': wanted auto, all-to-all, all-gather or ring"));
  }
  setting.sharding.context_attention = attention->second;
  setting.equal_stages = flags.distir();
  setting.shard_by_cost = sharding == "auto" || flags.sequence_parallel;
  setting.sharding.sequence_parallel = flags.sequence_parallel;
  if (flags.zero.group < 0 || flags.zero.prefetch < 0) {
    return absl::InvalidArgumentError(absl::StrCat("--zero-group ", flags.zero.group,
                                                   " --prefetch ", flags.zero.prefetch,
                                                   ": wanted numbers of at least 0"));
  }
  setting.zero = flags.zero;
  if (flags.offload_prefetch < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--offload-prefetch ", flags.offload_prefetch, ": wanted at least 0"));
  }
  setting.offload_prefetch = flags.offload_prefetch;
  for (const std::string& text : flags.shard) {
    ORRERY_ASSIGN_OR_RETURN(transforms::ShardingPin pin,
                            Annotated(transforms::ParseShardingPin(text), "--shard"));
    setting.sharding.pins.push_back(std::move(pin));
  }
  if (setting.sharding.pins.empty() || setting.shard_by_cost) return absl::OkStatus();
  return absl::InvalidArgumentError("--shard: --sharding megatron places all; wanted auto");
}

}  // namespace

absl::StatusOr<search::Setting> MakeSetting(const ModelFlags& flags) {
  if (!flags.preset.empty() && !flags.distir()) {
    return absl::InvalidArgumentError(absl::StrCat("--preset '", flags.preset, "': wanted distir"));
  }
  if (flags.batch_size < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("--batch-size ", flags.batch_size, ": wanted at least 1 sample"));
  }
  search::Setting setting;
  ORRERY_ASSIGN_OR_RETURN(setting.cluster, cluster::ParseCluster(flags.cluster));
  ORRERY_ASSIGN_OR_RETURN(
      setting.cost_model,
      cost_models::MakeCostModel(Or(flags.cost_model, flags.distir() ? "distir" : "roofline")));
  setting.lowering.blocking = flags.blocking || flags.distir();
  setting.lowering.fold = !flags.no_fold;
  ORRERY_ASSIGN_OR_RETURN(
      setting.lowering.algorithms,
      Annotated(cost_models::CollectiveChoice::Parse(flags.algorithm), "--algorithm"));
  setting.lowering.most_unfolded_tasks = flags.most_unfolded_tasks;
  const std::string memory_limit = Or(flags.memory_limit, flags.distir() ? "none" : "");
  ORRERY_ASSIGN_OR_RETURN(setting.lowering.memory_limit, MemoryLimit(memory_limit));
  setting.lowering.device_memory = memory_limit.empty();
  ORRERY_ASSIGN_OR_RETURN(
      setting.lowering.memory_overhead,
      Annotated(cluster::ParseMemoryOverhead(flags.memory_overhead, setting.cluster.device.name),
                "--memory-overhead"));
  ORRERY_ASSIGN_OR_RETURN(setting.lowering.bucket_size, BucketSize(flags));
  setting.order = Or(flags.order, flags.distir() ? "pp,hp,dp" : "hp,dp,pp");
  ORRERY_RETURN_IF_ERROR(SetSharding(flags, setting));
  using transforms::StagesBy;
  ORRERY_ASSIGN_OR_RETURN(
      setting.stages,
      MakeStageChoice(flags.stages, flags.distir() ? StagesBy::kFlops : StagesBy::kCost));
  ORRERY_ASSIGN_OR_RETURN(setting.step, LoadModel(flags));
  ORRERY_RETURN_IF_ERROR(MakeTrainingStep(flags, setting.step));
  setting.fp8_mixed = flags.fp8_mixed();
  setting.model_name = flags.model;
  setting.batch_size = flags.batch_size;
  setting.tokens_a_sample = TokensASample(setting.step);
  setting.model_flops = search::CountModelFlops(setting.step);
  return setting;
}

absl::StatusOr<std::vector<int64_t>> ParseList(absl::string_view flag, absl::string_view text) {
  std::vector<int64_t> list;
  for (const absl::string_view item : absl::StrSplit(text, ',', absl::SkipEmpty())) {
    int64_t value = 0;
    if (!absl::SimpleAtoi(item, &value) || value < 1 || value > (int64_t{1} << 31)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--", flag, " '", text, "': wanted numbers of at least 1, as in 1,2,4"));
    }
    if (std::find(list.begin(), list.end(), value) == list.end()) list.push_back(value);
  }
  return list;
}

absl::StatusOr<std::vector<int64_t>> ParseZero(absl::string_view text) {
  std::vector<int64_t> stages;
  for (const absl::string_view item : absl::StrSplit(text, ',')) {
    int64_t stage = 0;
    if (!absl::SimpleAtoi(item, &stage) || std::ranges::find(stages, stage) != stages.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--zero '", text, "': wanted stages from 0 to 3, each once, as in 0,1,3"));
    }
    stages.push_back(stage);
  }
  return stages;
}

absl::Status CheckZeroFlags(const ModelFlags& flags, std::span<const int64_t> stages) {
  for (const int64_t stage : stages) {
    if (stage >= 0 && stage <= transforms::ZeroOptions::kLastStage) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("--zero ", stage, ": wanted a stage from 0 to 3"));
  }
  const bool shares = std::ranges::any_of(stages, [](int64_t stage) { return stage > 0; });
  if (flags.zero.group == 0 || shares) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--zero-group ", flags.zero.group, ": wanted --zero 1, 2 or 3 beside it"));
}

absl::StatusOr<std::vector<std::string>> ParseSchedules(absl::string_view text) {
  const std::vector<std::string> names = absl::StrSplit(text, ',', absl::SkipEmpty());
  for (const std::string& name : names) {
    ORRERY_RETURN_IF_ERROR(Annotate(transforms::FindSchedule(name).status(), "--schedule"));
  }
  if (!names.empty()) return names;
  return absl::InvalidArgumentError("--schedule '': wanted the name of a schedule, such as 1f1b");
}

int RunProgram(int argc, char** argv, const ProgramSpec& spec,
               const std::function<absl::Status()>& body) {
  TuneHeap();
  CleanUpOnSignals();
  po::options_description all(spec.options);
  all.add_options()("help,h", "this text");
  if (spec.options.find_nothrow("cluster", /*approx=*/false) != nullptr) {
    all.add_options()("list-clusters", "names all ways to spell --cluster");
  }
  const auto fail = [&](absl::string_view message, int code) {
    std::cerr << argv[0] << ": " << OneLine(message) << "\n";
    return code;
  };
  try {
    po::variables_map values;
    po::store(po::command_line_parser(argc, argv).options(all).positional(spec.positional).run(),
              values);
    if (values.count("help") > 0) {
      std::cout << spec.about << "\n\nUsage: " << spec.usage << "\n\n"
                << all << "\nExample:\n  " << spec.example << "\n";
      return kDone;
    }
    if (values.count("list-clusters") > 0) {
      PrintClusters();
      return kDone;
    }
    po::notify(values);
  } catch (const po::error& error) {
    return fail(absl::StrCat(error.what(), "; try --help"), kWrongUsage);
  }
  try {
    const absl::Status status = body();
    std::cout.flush();
    if (!status.ok()) return fail(status.message(), kBadInput);
    return std::cout.good() ? kDone : fail("standard output cannot be written", kBadInput);
  } catch (const std::bad_alloc&) {
    return fail("out of memory; try a smaller model, batch or search", kBadInput);
  } catch (const std::exception& error) {
    return fail(error.what(), kBadInput);
  }
}

}  // namespace orrery::tools
