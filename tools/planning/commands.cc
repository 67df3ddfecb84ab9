#include "tools/planning/commands.h"

#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "support/printable.h"
#include "transforms/plan/axis.h"
#include "transforms/plan/plan_text.h"

namespace orrery::tools {
namespace commands_cc {
namespace {

// Flags of a search that `simulate` has as well, and that are none of plans: those of models are
// asked for, so that new ones are among them.
std::set<std::string> SharedFlags() {
  boost::program_options::options_description options;
  ModelFlags flags;
  AddModelFlags(options, flags);
  std::set<std::string> names = {"stack", "cuda-graphs"};
  for (const auto& option : options.options()) names.insert(option->long_name());
  for (const char* own : {"model", "batch-size", "cluster"}) names.erase(own);
  return names;
}

// "build/bin/simulate" of "build/bin/grid_search"; "orrery-simulate" of an installed one.
std::string Sibling(const std::string& program, const std::string& name) {
  const size_t begin = program.rfind('/') + 1;
  const bool installed = absl::StartsWith(program.substr(begin), "orrery-");
  return absl::StrCat(program.substr(0, begin), installed ? "orrery-" : "",
                      installed ? absl::StrReplaceAll(name, {{"_", "-"}}) : name);
}

// The program, the question, and what else was said of how it is played.
std::string Begin(const AskedCommand& asked, const std::string& name) {
  std::string text = absl::StrCat(
      ShellWord(Sibling(asked.program, name)), " --model ", ShellWord(asked.model.model),
      " --batch-size ", asked.model.batch_size, " --cluster ", ShellWord(asked.model.cluster));
  const std::set<std::string> shared = SharedFlags();
  for (const FlagText& flag : asked.given) {
    if (!shared.contains(flag.flag)) continue;
    absl::StrAppend(&text, " --", flag.flag);
    if (!flag.text.empty()) absl::StrAppend(&text, " ", ShellWord(flag.text));
  }
  return text;
}

// Whether a list of the two values is read as these two.
bool ReadsAsTwo(const transforms::AxisInfo& axis, const std::string& one,
                const std::string& other) {
  if (!axis.lists || axis.form == transforms::AxisForm::kMany) return false;
  const std::string list = absl::StrCat(one, ",", other);
  std::vector<std::string> values = absl::StrSplit(list, ',');
  if (axis.split != nullptr) {
    absl::StatusOr<std::vector<std::string>> split = axis.split(list);
    if (!split.ok()) return false;
    values = *std::move(split);
  }
  return values == std::vector<std::string>{one, other};
}

// Whether lists can say in what the two plans differ.
bool CanList(const search::ParallelPlan& first, const search::ParallelPlan& second) {
  for (const transforms::AxisInfo* axis : transforms::AllAxes()) {
    const std::string one = axis->print(first), other = axis->print(second);
    if (one != other && !ReadsAsTwo(*axis, one, other)) return false;
  }
  return true;
}

}  // namespace
}  // namespace commands_cc

std::string SimulateCommand(const AskedCommand& asked, const search::ParallelPlan& plan) {
  return absl::StrCat(commands_cc::Begin(asked, "simulate"), " ",
                      transforms::ToString(plan, asked.base));
}

std::string CompareCommand(const AskedCommand& asked, const search::ParallelPlan& first,
                           const search::ParallelPlan& second) {
  if (!commands_cc::CanList(first, second)) return SimulateCommand(asked, second);
  std::string text = commands_cc::Begin(asked, "grid_search");
  for (const transforms::AxisInfo* axis : transforms::AllAxes()) {
    const std::string one = axis->print(first), other = axis->print(second);
    if (one == other) {
      const bool usual = one == axis->print(asked.base) && !axis->always_printed;
      const std::string same = usual ? "" : transforms::AxisText(*axis, first);
      if (!same.empty()) absl::StrAppend(&text, " ", same);
      continue;
    }
    const bool is_switch = axis->form == transforms::AxisForm::kSwitch;
    absl::StrAppend(&text, " --", axis->flag, is_switch ? "=" : " ",
                    ShellWord(absl::StrCat(one, ",", other)));
  }
  return absl::StrCat(text, " --no-prune");
}

}  // namespace orrery::tools
