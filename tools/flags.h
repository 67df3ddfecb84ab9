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
#include "search/evaluate.h"
#include "simulator/link_use.h"
#include "tools/stage_flags.h"
#include "transforms/training_step.h"

// What the programs share: flags, how they become a setting, and how a program ends.

namespace orrery::tools {

/// Exit codes, as docs/command_line.md lists them.
inline constexpr int kDone = 0;
inline constexpr int kBadInput = 1;
inline constexpr int kWrongUsage = 2;

/// The flags that every program with a model has, as they were given.
struct ModelFlags {
  std::string model;
  int64_t batch_size = 0;
  std::string dtype;
  std::string optimizer;
  std::string cluster;
  std::string cost_model;
  std::string preset;
  std::string order;
  std::string memory_limit;
  std::string memory_overhead;
  std::string bucket_size;
  std::string algorithm;
  bool blocking = false;
  bool no_fold = false;
  int64_t most_unfolded_tasks = lowering::LoweringOptions().most_unfolded_tasks;
  std::string sharding;
  bool sequence_parallel = false;
  std::string context_attention;
  int64_t offload_prefetch = 1;
  transforms::ZeroOptions zero;  // but its stage, which each program asks for in its own way
  std::vector<std::string> shard;
  std::vector<std::string> symbols;
  std::string freeze;
  transforms::LossChoice loss = {.kind = "", .output = ""};
  bool no_simplify = false;
  StageFlags stages;

  bool distir() const { return preset == "distir"; }
  bool fp8_mixed() const { return dtype == "fp8-mixed"; }
};

/// Adds the flags to `options`, bound to `flags`.
void AddModelFlags(boost::program_options::options_description& options, ModelFlags& flags);

/// Adds those of them that say what the model is and how it becomes a training step.
void AddStepFlags(boost::program_options::options_description& options, ModelFlags& flags);

/// Makes the training step of a model that LoadModel has loaded.
absl::Status MakeTrainingStep(const ModelFlags& flags, ir::Function& function);

/// Loads the model, makes it a training step, and reads the cluster: the setting of a search. What
/// a preset sets, the flags beside it override.
absl::StatusOr<search::Setting> MakeSetting(const ModelFlags& flags);

/// The model as `flags` name it, before it becomes a training step.
absl::StatusOr<ir::Function> LoadModel(const ModelFlags& flags);

/// "2,4,8" as numbers of at least 1; empty text: an empty list.
absl::StatusOr<std::vector<int64_t>> ParseList(absl::string_view flag, absl::string_view text);

/// "0,1,3" as stages of ZeRO.
absl::StatusOr<std::vector<int64_t>> ParseZero(absl::string_view text);
/// An error unless the stages are there, and one of them shares something out where there is a
/// --zero-group.
absl::Status CheckZeroFlags(const ModelFlags& flags, std::span<const int64_t> stages);

/// "1f1b,gpipe" as names of schedules that there are.
absl::StatusOr<std::vector<std::string>> ParseSchedules(absl::string_view text);

/// What a program is: its command line, and what it does once that is read.
struct ProgramSpec {
  absl::string_view usage;    // "simulate --model M …"
  absl::string_view about;    // one sentence
  absl::string_view example;  // a command that works from the root of the repository
  boost::program_options::options_description options;
  boost::program_options::positional_options_description positional = {};
};

/// An error when two files to write have one path; empty ones are not written.
absl::Status CheckOutputs(std::span<const std::string> paths);

/// Reads the command line, answers --help, runs `body`, and turns its status into an exit code with
/// one line on standard error. No exception leaves it.
int RunProgram(int argc, char** argv, const ProgramSpec& spec,
               const std::function<absl::Status()>& body);

/// Writes the Chrome trace of a run; gzipped when the name of the file ends in ".gz".
absl::Status WriteTrace(const search::Run& run, const std::string& path);
/// The same of any program, with what its links carried unless `use` is null.
absl::Status WriteTrace(const simulator::Program& program, const simulator::Trace& trace,
                        const simulator::LinkUse* use, const std::string& path);

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_FLAGS_H_
