#include "tools/flags.h"

#include <algorithm>
#include <iostream>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "importer/builtin_models.h"
#include "importer/load_model.h"
#include "ir/model_facts.h"
#include "search/settings/model_flops.h"
#include "support/file.h"
#include "support/flag_names.h"
#include "support/heap.h"
#include "support/printable.h"
#include "support/status.h"
#include "tools/common_flags.h"
#include "tools/file_flags.h"
#include "tools/terminal/interrupt.h"
#include "tools/terminal/terminal.h"
#include "transforms/schedules/schedule.h"
#include "transforms/training/microbatch.h"
#include "transforms/training/training_step.h"

namespace orrery::tools {

namespace po = boost::program_options;

namespace flags_cc {
namespace {

// Names of files and values may hold anything; an error is one line that prints, of some length.
std::string ErrorLine(absl::string_view message) {
  std::string line;
  for (const char c : message) {
    if (absl::ascii_iscntrl(static_cast<unsigned char>(c))) {
      absl::StrAppend(&line, absl::CHexEscape(absl::string_view(&c, 1)));
    } else {
      line.push_back(c);
    }
  }
  return OneLine(line);
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

}  // namespace
}  // namespace flags_cc

namespace flags_cc {
namespace {

// What the preset says of that flag; "" where it says nothing.
std::string OfPreset(const ModelFlags& flags, absl::string_view name) {
  const auto preset = FindPreset(flags.preset);
  if (!preset.ok()) return "";
  for (const PresetFlag& flag : (*preset)->flags) {
    if (flag.flag == name) return std::string(flag.value);
  }
  return "";
}

// What a preset says of losses is for models without one; who asks for one wants it. IR files may
// have one: `opt` makes a step of whatever stage of it they hold.
absl::Status CheckLoss(const ModelFlags& flags, const ir::Function& function) {
  const std::string& kind = flags.loss.kind;
  if (kind == "none" && !flags.loss.output.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--output ", flags.loss.output,
                     ": --loss none puts a loss on no output; wanted one of them"));
  }
  const bool asked = !kind.empty() && kind != "auto" && kind != OfPreset(flags, "loss");
  if (absl::EndsWith(flags.model, ".orr") || !transforms::IsTrained(function) ||
      (!asked && flags.loss.output.empty())) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      asked ? absl::StrCat("--loss ", kind) : absl::StrCat("--output ", flags.loss.output), ": ",
      flags.model, " has a loss or gradients of its own; wanted a model without"));
}

}  // namespace
}  // namespace flags_cc

absl::StatusOr<ir::Function> LoadModel(const ModelFlags& flags,
                                       const transforms::ParallelPlan& plan,
                                       importer::ImportNotes* notes) {
  importer::ModelSpec spec;
  spec.notes = notes;
  spec.model = flags.model;
  spec.batch_size = flags.batch_size;
  spec.dtype = transforms::TensorDType(plan.dtype);
  ORRERY_ASSIGN_OR_RETURN(spec.symbols, flags_cc::ParseSymbols(flags.symbols));
  spec.roles = flags.roles;
  ORRERY_ASSIGN_OR_RETURN(ir::Function function, importer::LoadModel(spec));
  // The library writes losses, and of mlp gradients, into its models: they are none of their own.
  const bool forward = flags.loss.kind == "none" && importer::IsBuiltinModel(flags.model);
  if (forward) transforms::KeepForward(function);
  ORRERY_RETURN_IF_ERROR(flags_cc::CheckLoss(flags, function));
  return function;
}

std::vector<std::string> WarningsOf(const ModelFlags& flags, const importer::ImportNotes& notes) {
  std::vector<std::string> warnings;
  if (flags.loss.kind == "none") return warnings;  // a forward by itself is what such files are for
  for (const std::string& warning : notes.warnings) {
    warnings.push_back(OneLine(absl::StrCat("warning: ", flags.model, ": ", warning)));
  }
  return warnings;
}

void PrintWarnings(const std::vector<std::string>& warnings) {
  for (absl::string_view warning : warnings) {
    absl::ConsumePrefix(&warning, "warning: ");
    Warn(warning);
  }
}

namespace flags_cc {
namespace {

// A forward by itself has nothing to update. Presets mean the steps that they are for.
absl::Status CheckOptimizer(const ModelFlags& flags, const ir::Function& function) {
  const std::string& optimizer = flags.optimizer;
  const bool asked =
      !optimizer.empty() && optimizer != "none" && optimizer != OfPreset(flags, "optimizer");
  if (!asked || flags.loss.kind != "none" || transforms::IsTrained(function)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--optimizer ", optimizer,
                   ": --loss none trains nothing; wanted one of them, or --optimizer none"));
}

}  // namespace
}  // namespace flags_cc

absl::Status MakeTrainingStep(const ModelFlags& flags, ir::Function& function) {
  ORRERY_RETURN_IF_ERROR(flags_cc::CheckOptimizer(flags, function));
  transforms::StepOptions options{
      .optimizer = flags_cc::Or(flags.optimizer, "adam"),
      .loss = {.kind = flags_cc::Or(flags.loss.kind, "auto"), .output = flags.loss.output},
      .frozen_dtype = flags.frozen_dtype,
      .simplify = !flags.no_simplify};
  if (!flags.lora.empty()) {
    ORRERY_ASSIGN_OR_RETURN(options.lora, transforms::ParseLora(flags.lora));
  }
  return Annotate(transforms::MakeTrainingStep(function, options), flags.model);
}

absl::StatusOr<search::Setting> MakeSetting(const ModelFlags& flags,
                                            const transforms::ParallelPlan& plan) {
  search::Setting setting;
  ORRERY_ASSIGN_OR_RETURN(setting.base, PresetPlan(flags.preset));
  if (flags.batch_size < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("--batch-size ", flags.batch_size, ": wanted at least 1 sample"));
  }
  if (flags.most_unfolded_tasks < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--most-unfolded-tasks ", flags.most_unfolded_tasks, ": wanted at least 0 tasks"));
  }
  ORRERY_ASSIGN_OR_RETURN(setting.cluster, cluster::ParseCluster(flags.cluster));
  ORRERY_ASSIGN_OR_RETURN(setting.cost_model, cost_models::MakeCostModel(flags_cc::Or(
                                                  flags.cost_model, kDefaultCostModel)));
  setting.lowering.fold = !flags.no_fold;
  setting.lowering.most_unfolded_tasks = flags.most_unfolded_tasks;
  ORRERY_ASSIGN_OR_RETURN(setting.lowering.memory_limit, flags_cc::MemoryLimit(flags.memory_limit));
  setting.lowering.device_memory = flags.memory_limit.empty();
  ORRERY_ASSIGN_OR_RETURN(
      setting.lowering.memory_overhead,
      Annotated(cluster::ParseMemoryOverhead(flags.memory_overhead, setting.cluster.device.name),
                "--memory-overhead"));
  importer::ImportNotes notes;
  ORRERY_ASSIGN_OR_RETURN(setting.step, LoadModel(flags, plan, &notes));
  setting.notes = {.warnings = WarningsOf(flags, notes), .batch_lost = std::move(notes.batch_lost)};
  ORRERY_RETURN_IF_ERROR(MakeTrainingStep(flags, setting.step));
  setting.made_for = plan;
  setting.model_name = flags.model;
  setting.batch_size = flags.batch_size;
  setting.tokens_a_sample = ir::TokensASample(setting.step);
  setting.model_flops = search::CountModelFlops(setting.step);
  return setting;
}

namespace flags_cc {
namespace {

// What a preset says of `options`, where `values` say nothing.
void StorePreset(const Preset& preset, const po::options_description& options, bool searches,
                 po::variables_map& values) {
  const std::vector<std::string> words = PresetWords(preset, [&](const PresetFlag& flag) {
    return (searches || !flag.of_searches) &&
           options.find_nothrow(std::string(flag.flag), /*approx=*/false) != nullptr;
  });
  po::store(po::command_line_parser(words).options(options).run(), values);
}

// A journal is written, too, and may not be there yet.
absl::Status CheckJournal(std::span<const FlagText> outputs, std::span<const FlagText> others) {
  const auto journal = std::ranges::find(others, "resume", &FlagText::flag);
  if (journal == others.end()) return absl::OkStatus();
  for (const FlagText& output : outputs) {
    if (!AreOneFile(output.text, journal->text)) continue;
    return absl::InvalidArgumentError(absl::StrCat("--", output.flag, " ", output.text,
                                                   ": is the file that --resume writes; wanted "
                                                   "another one"));
  }
  return absl::OkStatus();
}

// What the command line says of files to write, beside all other texts that it has.
absl::Status CheckFileFlags(const po::options_description& all, const po::variables_map& values) {
  std::vector<FlagText> outputs, others;
  const auto add = [&](const std::string& flag, const std::string& text) {
    if (FileUseOf(flag) != FileUse::kWrites) {
      others.push_back({flag, text});
    } else if (const std::string file = WrittenFile(flag, text);
               !file.empty() || !MayWriteNothing(flag)) {
      outputs.push_back({flag, file});
    }
  };
  for (const auto& [flag, value] : values) {
    if (const auto* const text = boost::any_cast<std::string>(&value.value())) {
      add(flag, *text);
    } else if (const auto* const list = boost::any_cast<std::vector<std::string>>(&value.value())) {
      for (const std::string& item : *list) add(flag, item);
    }
  }
  const auto page = std::ranges::find(outputs, "report", &FlagText::flag);
  if (page != outputs.end() && !page->text.empty() && !absl::EndsWith(page->text, ".html")) {
    return absl::InvalidArgumentError(
        absl::StrCat("--report ", page->text, ": wanted a name that ends in .html"));
  }
  for (const FlagText& other : others) {
    const bool takes_text = all.find(other.flag, /*approx=*/false).semantic()->max_tokens() > 0;
    if (!other.text.empty() || !takes_text || values[other.flag].defaulted()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("--", other.flag, " '': wanted a value behind it, or no such flag"));
  }
  ORRERY_RETURN_IF_ERROR(CheckJournal(outputs, others));
  return CheckFiles(outputs, others);
}

}  // namespace
}  // namespace flags_cc

absl::StatusOr<ModelFlags> PresetFlags(absl::string_view preset) {
  ORRERY_ASSIGN_OR_RETURN(const Preset* found, FindPreset(preset));
  ModelFlags flags;
  po::options_description options;
  AddModelFlags(options, flags);
  po::variables_map values;
  flags_cc::StorePreset(*found, options, /*searches=*/false, values);
  // Not notify(), which wants a model.
  for (const auto& [flag, value] : values) {
    options.find(flag, /*approx=*/false).semantic()->notify(value.value());
  }
  flags.preset = std::string(preset);
  return flags;
}

namespace flags_cc {
namespace {

// The flags that hold beside those of a command line, as words of one.
absl::StatusOr<std::vector<std::string>> FurtherWords(const ProgramSpec& spec,
                                                      const po::options_description& all,
                                                      const po::parsed_options& read) {
  std::vector<std::string> words;
  if (!spec.further) return words;
  std::vector<FlagText> given;
  for (const po::option& option : read.options) {
    if (option.value.empty()) given.push_back({option.string_key, ""});
    for (const std::string& text : option.value) given.push_back({option.string_key, text});
  }
  ORRERY_ASSIGN_OR_RETURN(const std::vector<FlagText> further, spec.further(given));
  for (const FlagText& flag : further) {
    const po::option_description* const option = all.find_nothrow(flag.flag, /*approx=*/false);
    const bool wants_text = option == nullptr || option->semantic()->min_tokens() > 0;
    if (flag.text.empty() && wants_text) continue;  // as if it were not given
    words.push_back(absl::StrCat("--", flag.flag, flag.text.empty() ? "" : "=", flag.text));
  }
  return words;
}

// The command line, what holds beside it, and the preset.
absl::StatusOr<po::variables_map> ReadCommandLine(int argc, char** argv, const ProgramSpec& spec,
                                                  const po::options_description& all) {
  po::variables_map values;
  const po::parsed_options read =
      po::command_line_parser(argc, argv).options(all).positional(spec.positional).run();
  po::store(read, values);
  if (values.count("help") + values.count("version") > 0) return values;
  ORRERY_ASSIGN_OR_RETURN(const std::vector<std::string> words, FurtherWords(spec, all, read));
  if (!words.empty()) po::store(po::command_line_parser(words).options(all).run(), values);
  if (values.count("preset") > 0) {
    const auto preset = FindPreset(values["preset"].as<std::string>());
    // MakeSetting says which there are.
    if (preset.ok()) StorePreset(**preset, all, spec.searches, values);
  }
  return values;
}

}  // namespace
}  // namespace flags_cc

bool GivesFlag(int argc, const char* const* argv, absl::string_view flag, size_t shortest) {
  return std::any_of(argv + 1, argv + argc, [&](absl::string_view argument) {
    const absl::string_view name = argument.substr(0, argument.find('='));
    return name.size() >= shortest && absl::StartsWith(flag, name);
  });
}

int RunProgram(int argc, char** argv, const ProgramSpec& spec,
               const std::function<absl::Status()>& body) {
  TuneHeap();
  EndWhereMemoryEnds(argv[0]);
  CleanUpOnSignals();
  const po::options_description all = WithCommonFlags(spec);
  const auto fail = [&](absl::string_view message, int code) {
    const std::string text = SpellFlags(message, [&](absl::string_view name) {
      return all.find_nothrow(std::string(name), /*approx=*/false) != nullptr;
    });
    std::cerr << Paint(absl::StrCat(argv[0], ":"), Colour::kRed, ErrorTerminal()) << " "
              << flags_cc::ErrorLine(text) << "\n";
    return code;
  };
  const auto end = [&](const absl::Status& status) {
    std::cout.flush();
    const bool stopped = absl::IsCancelled(status) && CaughtSignal() != 0;
    if (!status.ok()) return fail(status.message(), stopped ? 128 + CaughtSignal() : kBadInput);
    return std::cout.good() ? kDone : fail("standard output cannot be written", kBadInput);
  };
  try {
    absl::StatusOr<po::variables_map> read = flags_cc::ReadCommandLine(argc, argv, spec, all);
    if (!read.ok()) return end(read.status());
    po::variables_map& values = *read;
    const std::optional<absl::Status> answer = AnswerCommonFlags(spec, all, values, argv[0]);
    if (answer.has_value()) return end(*answer);
    po::notify(values);
    const absl::Status files = flags_cc::CheckFileFlags(all, values);
    if (!files.ok()) return end(files);
  } catch (const po::error& error) {
    return fail(UsageError(error, all), kWrongUsage);
  }
  try {
    return end(body());
  } catch (const std::bad_alloc&) {
    return fail("out of memory; try a smaller model, batch or search", kBadInput);
  } catch (const std::exception& error) {
    return fail(error.what(), kBadInput);
  }
}

}  // namespace orrery::tools
