#ifndef ORRERY_TRANSFORMS_PLAN_AXIS_H_
#define ORRERY_TRANSFORMS_PLAN_AXIS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "transforms/plan/parallel_plan.h"

// The record of an axis: all that anybody wants to know of one of the things that a plan chooses.
// Flags of the programs, texts, columns, search spaces and suggestions follow from these records.

namespace orrery::transforms {

/// A value as a column of a table has it: a number where it is one, else a text.
using AxisCell = std::variant<int64_t, std::string>;

/// What is searched for: on so many devices, so large a batch.
struct SpaceSize {
  int64_t devices = 1;
  int64_t batch_size = 1;      // samples
  int64_t sequence = 0;        // positions of a sample; 0: there are none
  int64_t experts = 0;         // that ranks can share out in every mixture; 0: there are none
  int64_t devices_a_node = 1;  // 1: there are no nodes to tell apart
};

/// What an axis is asked when a search varies it.
struct SpaceQuestion : SpaceSize {
  /// Whether the numbers of microbatches and the schedules wanted are those that cut sequences; not
  /// asked where the numbers are given.
  bool cuts_sequences = false;
  bool open_microbatches = false;  // nobody has given their numbers
  bool saves_memory = false;       // the search chooses what people train with, beside degrees
  bool shares_experts = false;     // among that how experts of a mixture are shared out
  bool full = false;               // the search tries all that applies (--space full)
};

/// How much of each kind of memory is left once a plan is changed, roughly: 0.5 is half.
struct MemoryShares {
  double parameters = 1;
  double gradients = 1;
  double optimizer = 1;
  double activations = 1;
};

/// Beside what else a suggestion is worth a try, where no single change does.
enum class Pairing : uint8_t {
  kAlone,    // nothing
  kAnother,  // one of another axis that is so, too
  kAny,      // any that is not so itself
};

/// A neighbour of a plan that takes less memory. Those of a lower rank are likely to cost less
/// time.
struct Suggestion {
  ParallelPlan plan;
  std::string change;  // "--pp 8", as flags of `simulate`
  MemoryShares shares = {};
  int rank = 0;
  Pairing pairing = Pairing::kAlone;
};

/// For what a neighbour of a plan is wanted.
struct SuggestionQuestion {
  int64_t devices = 1;     // of the cluster
  int64_t batch_size = 1;  // samples
  int64_t sequence = 0;    // positions of a sample; 0: there are none
};

/// Whose flag takes what.
enum class AxisForm : uint8_t {
  kValue,   // --zero 3
  kSwitch,  // --blocking
  kMany,    // --shard … --shard …: values add up
};

/// What reads the value, and so which programs have the flag.
enum class AxisScope : uint8_t {
  kStep,    // how a step is parallelized, without a cluster: opt, and those below
  kRun,     // how it is ordered, priced or played: grid_search, and those below
  kOneRun,  // what is of one shape alone: simulate
};

/// What a search looks through where nobody says which values of an axis.
enum class LeftOpen : uint8_t {
  kPlan,            // that of the plan it starts from
  kDividesDevices,  // what divides the devices; then all of them are used
  kDividesBatch,    // what divides the batch of a replica, or the sequence
  kDividesExperts,  // what divides the experts of a mixture, where degrees are left open
};

/// The one record of an axis of a plan: its flag, its values, its column, and what else a search
/// asks of it. It fills in what it needs of so many fields.
struct AxisInfo {
  absl::string_view flag;        // of the programs, without the dashes: "micro-batches"
  absl::string_view alias = "";  // another that means the same: "tp"
  absl::string_view summary;     // what it chooses; no full stop
  absl::string_view values;      // what it takes, in words: "none, selective, full or every:K"
  /// For docs/command_line.md, in Markdown: all that a user has to know of the value. Empty: made
  /// of `summary` and `values`.
  absl::string_view page = "";
  /// There, the default in words; empty: as `print` has it.
  absl::string_view page_default = "";
  /// Texts that it takes; the first is not the default.
  std::vector<absl::string_view> examples = {};
  /// A text that it does not take, and what its error says; null: it takes all.
  struct Mistake {
    const char* text = nullptr;
    absl::string_view error = "";
  } mistake = {};
  AxisForm form = AxisForm::kValue;
  AxisScope scope = AxisScope::kRun;
  /// Whether a text with commas is a list of values to a search. Not so where values have commas.
  bool lists = true;

  /// Whether values are whole numbers; then those of a search are of at least `least`.
  bool is_number = false;
  int64_t least = 0;

  /// Sets the value that `text` says; InvalidArgument says what was found and wanted, but not
  /// where.
  absl::Status (*parse)(absl::string_view text, ParallelPlan& plan) = nullptr;
  /// What `parse` reads: of equal values the same text. Of a switch "1" or "0".
  std::string (*print)(const ParallelPlan& plan) = nullptr;
  /// Sets the value where nobody gives one and the rest of the plan says it; null: it never does.
  void (*follow)(ParallelPlan& plan) = nullptr;
  /// Copies the value of this axis alone.
  void (*copy)(const ParallelPlan& from, ParallelPlan& to) = nullptr;
  /// A list as texts that `parse` takes one by one; null: it is cut at its commas.
  absl::StatusOr<std::vector<std::string>> (*split)(absl::string_view list) = nullptr;
  /// Whether a plan's text names the value even where it is the default's.
  bool always_printed = false;
  /// Whether the text leaves it out, since another axis says it.
  bool (*hidden)(const ParallelPlan& plan) = nullptr;

  /// Whether the value means something beside the rest of the plan; null: always. One that is given
  /// and does not is an error.
  bool (*applies)(const ParallelPlan& plan) = nullptr;
  absl::string_view needs = "";  // what it applies to: "ZeRO's stage 1, 2 or 3"
  /// InvalidArgument where the value contradicts the rest of the plan; null: it never does.
  absl::Status (*check)(const ParallelPlan& plan) = nullptr;

  /// The values that a search tries beside the axes before this one, of which `plan` has the
  /// values, as plans that differ in this axis. `given`: those that the user lists; empty: it is
  /// left open. Null: those given, or that of `plan`.
  std::vector<ParallelPlan> (*choices)(const SpaceQuestion& question, const ParallelPlan& plan,
                                       std::span<const ParallelPlan> given) = nullptr;
  /// Texts of values that a search of the full space tries beside that of the plan, where the axis
  /// is left open and applies; of an axis without `choices`.
  std::vector<absl::string_view> full = {};
  /// What a search that leaves the axis open tries, too, where a plan does not fit in memory, one
  /// after another until one does; null: nothing.
  std::vector<ParallelPlan> (*relieve)(const ParallelPlan& plan) = nullptr;
  /// Of an axis of the mesh its degree, the size of the axis named `flag`; null: it is none.
  int64_t (*degree)(const ParallelPlan& plan) = nullptr;
  LeftOpen left_open = LeftOpen::kPlan;

  /// Of the column that tables for people have of it, title and width, as printf has widths; a
  /// width of 0: none, and what differs from the default stands behind the figures.
  struct Shown {
    absl::string_view title = "";
    int width = 0;
  } shown = {};
  /// Whether its text says by itself what it is about, so that tables for people leave the flag
  /// out.
  bool names_itself = false;
  /// Of tables; empty: `flag` with underscores.
  absl::string_view column = "";
  /// Where it stands: columns of positive numbers before the figures, in that order.
  int column_position = 0;
  /// What stands there; null: what `print` makes of it.
  AxisCell (*cell)(const ParallelPlan& plan) = nullptr;

  /// Whether it says only how a plan is carried out, so that no bound of time or memory reads it
  /// (search/bounds), nor what says whether another axis means something or contradicts the plan:
  /// of a space that is too large to list, one value stands for all.
  bool detail = false;

  /// Whether plans of other values are of another training step, before it is sharded: a search
  /// over them makes a step for each.
  bool remakes_step = false;

  /// Adds neighbours that take less memory; null: there are none.
  void (*suggest)(const AxisInfo& axis, const SuggestionQuestion& question,
                  const ParallelPlan& plan, std::vector<Suggestion>& suggestions) = nullptr;

  /// `column`, or what stands for it.
  std::string Column() const;
};

/// All axes, in the order of plan_axes.def.
std::span<const AxisInfo* const> AllAxes();

/// Whether two plans have the same value of the axis at that place of AllAxes().
bool HaveSameValue(size_t axis, const ParallelPlan& a, const ParallelPlan& b);

/// The axis whose flag or alias that is; null: there is none.
const AxisInfo* FindAxis(absl::string_view flag);

/// The neighbour `plan` of `from` as a suggestion: its change is the flags that differ, those of
/// `axis` first.
Suggestion Suggest(const AxisInfo& axis, const ParallelPlan& from, const ParallelPlan& plan);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_PLAN_AXIS_H_
