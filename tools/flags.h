#ifndef ORRERY_TOOLS_FLAGS_H_
#define ORRERY_TOOLS_FLAGS_H_

#include <boost/program_options.hpp>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "importer/import_notes.h"
#include "importer/role_patterns.h"
#include "search/evaluate.h"
#include "tools/listings.h"
#include "tools/plan_flags.h"
#include "tools/presets.h"
#include "transforms/training/training_step.h"

// What the programs share: flags, how they become a setting, and how a program ends.

namespace orrery::tools {

/// Exit codes, as docs/command_line.md lists them. Of a body that ends with CancelledError since a
/// signal came, 128 and its number.
inline constexpr int kDone = 0;
inline constexpr int kBadInput = 1;
inline constexpr int kWrongUsage = 2;

/// The cost model of programs that price a step, where no flag and no preset names one: what
/// machines reach, not what they promise (ADR 18).
inline constexpr absl::string_view kDefaultCostModel = "kernels";

/// The flags that every program with a model has beside those of plans, as they were given.
/// So many fields: a flag each.
struct ModelFlags {
  std::string model;
  int64_t batch_size = 0;
  std::string optimizer;
  std::string cluster;
  std::string cost_model;
  std::string preset;
  std::string memory_limit;
  std::string memory_overhead;
  bool no_fold = false;
  int64_t most_unfolded_tasks = lowering::LoweringOptions().most_unfolded_tasks;
  std::vector<std::string> symbols;
  importer::RolePatterns roles;
  transforms::LossChoice loss = {.kind = "", .output = ""};
  std::string lora;
  std::string frozen_dtype;
  bool no_simplify = false;
};

/// Adds the flags to `options`, bound to `flags`. Where `batch_sizes` is given, --batch-size takes
/// a list (ParseBatchSizes), which that gets, and `flags` the first.
void AddModelFlags(boost::program_options::options_description& options, ModelFlags& flags,
                   std::vector<int64_t>* batch_sizes = nullptr);

/// The flags as a preset has them, for who has no command line: RunProgram fills in what that
/// leaves open. InvalidArgument where there is no such preset.
absl::StatusOr<ModelFlags> PresetFlags(absl::string_view preset);

/// Adds those of them that say what the model is and how it becomes a training step.
void AddStepFlags(boost::program_options::options_description& options, ModelFlags& flags);

/// Makes the training step of a model that LoadModel has loaded.
absl::Status MakeTrainingStep(const ModelFlags& flags, ir::Function& function);

/// Loads the model, makes it a training step, and reads the cluster: the setting of plans whose
/// step is that of `plan`. Of the preset it takes the plan that others are told apart from; its
/// flags are those of PresetFlags, or of RunProgram.
absl::StatusOr<search::Setting> MakeSetting(const ModelFlags& flags,
                                            const transforms::ParallelPlan& plan = {});

/// The model as `flags` name it and with what `plan` says of its step, before it becomes one.
/// `notes` gets what is worth to be known of its file.
absl::StatusOr<ir::Function> LoadModel(const ModelFlags& flags,
                                       const transforms::ParallelPlan& plan = {},
                                       importer::ImportNotes* notes = nullptr);

/// The warnings that concern what `flags` make of the model, each "warning: MODEL: …": none where
/// it is not trained.
std::vector<std::string> WarningsOf(const ModelFlags& flags, const importer::ImportNotes& notes);

/// Prints them on standard error, a line each.
void PrintWarnings(const std::vector<std::string>& warnings);

/// A flag and what stands behind it.
struct FlagText {
  std::string flag;  // "json"
  std::string text;  // of a switch empty
};

/// Gets the flags of a command line as they stand there, and says which others hold, too.
using FurtherFlags =
    std::function<absl::StatusOr<std::vector<FlagText>>(const std::vector<FlagText>& given)>;

/// What a program is: its command line, and what it does once that is read.
struct ProgramSpec {
  absl::string_view usage;    // "simulate --model M …"
  absl::string_view about;    // one sentence
  absl::string_view example;  // a command that works from the root of the repository
  boost::program_options::options_description options;
  boost::program_options::positional_options_description positional = {};
  bool searches = false;  // its flags of plans take lists
  FurtherFlags further = {};
  std::vector<Listing> listings = {};  // beside AllListings()
  /// The flags of another form of the command line, which shells complete as well.
  boost::program_options::options_description other_form = {};
};

/// The files that are there and that the text of a flag names: by itself, in a list, or behind a
/// word, as in measured:FILE,only=H100.
std::vector<std::string> FilesNamedIn(const std::string& text);

/// An error when two files to write are one file; empty ones are not written.
absl::Status CheckOutputs(std::span<const std::string> paths);

/// What is wrong with the files to write that `outputs` name, before there is anything to write: an
/// empty name, two that are one file, one that cannot be written, or a file that a flag of `others`
/// names, to read it: by itself, in a list, or behind a word, as in measured:FILE,only=H100.
absl::Status CheckFiles(std::span<const FlagText> outputs, std::span<const FlagText> others);

/// Whether the command line has the flag, "--program", by any beginning of at least so many
/// letters: of programs whose other flags are then others. Boost takes a flag by any beginning that
/// no other one has, so this does too.
bool GivesFlag(int argc, const char* const* argv, absl::string_view flag, size_t shortest);

/// Reads the command line, checks the files that it is to write, answers --help, runs `body`, and
/// turns its status into an exit code with one line on standard error. No exception leaves it.
int RunProgram(int argc, char** argv, const ProgramSpec& spec,
               const std::function<absl::Status()>& body);

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_FLAGS_H_
