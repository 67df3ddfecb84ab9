#ifndef ORRERY_TOOLS_EMITTERS_EMITTER_H_
#define ORRERY_TOOLS_EMITTERS_EMITTER_H_

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "search/settings/setting.h"

// A plan in the words of a system that trains: its arguments, or its configuration file. What the
// system cannot be told is a note, never left out.

namespace orrery::tools {

/// What is to be said.
struct EmitQuestion {
  const search::Setting& setting;
  const search::ParallelPlan& plan;
  std::string optimizer = "adam";
};

/// What the system is told.
struct Emitted {
  std::string text;                // whole lines
  std::vector<std::string> notes;  // what it cannot be told, or means there, a line each
};

/// The one record of a system. Its options are those of `source`; tests/data/published_options.json
/// lists them, and a test holds what is emitted to that list.
struct Emitter {
  absl::string_view name;     // of --emit: "megatron"
  absl::string_view summary;  // "arguments of Megatron-LM's pretrain_gpt.py"
  absl::string_view comment;  // what begins a line that the system passes over; empty: none does
  Emitted (*emit)(const EmitQuestion& question) = nullptr;
};

/// What it makes of a plan. Of one whose stages or replicas are not alike nothing but a note: no
/// system has them, and what it has would run as another plan.
Emitted Emit(const Emitter& emitter, const EmitQuestion& question);

#define ORRERY_EMITTER(Name, file) extern const Emitter k##Name##Emitter;
#include "tools/emitters/emitters.def"
#undef ORRERY_EMITTER

/// All systems, in the order of emitters.def.
std::span<const Emitter* const> AllEmitters();
/// That of the name; InvalidArgument lists those that there are.
absl::StatusOr<const Emitter*> FindEmitter(absl::string_view name);
/// "megatron, torchtitan or deepspeed".
std::string EmitterNames();

/// Notes on a plan: each axis that has another value than the default is taken by an emitter, or
/// has a note that says why not.
class EmitNotes {
 public:
  explicit EmitNotes(const search::ParallelPlan& plan) : plan_(plan) {}

  /// The value of the axis is told.
  void Take(absl::string_view flag) { taken_.insert(std::string(flag)); }
  /// It is not, or not as it is: "no counterpart: --zero 2: why".
  void Lack(absl::string_view flag, absl::string_view why);
  /// What is worth to be known besides.
  void Say(absl::string_view text) { notes_.emplace_back(text); }
  /// All of them; axes that nobody has taken have one each, that `system` has no such option.
  std::vector<std::string> All(absl::string_view system);

 private:
  const search::ParallelPlan& plan_;
  std::set<std::string, std::less<>> taken_;
  std::vector<std::string> notes_;
};

/// Says where attention heads do not divide over hp, which systems want that split them.
void SayOfHeads(int64_t heads, int64_t hp, absl::string_view system, EmitNotes& notes);

/// Samples of one microbatch on one replica.
int64_t MicrobatchSize(const EmitQuestion& question);

/// Elements of 16 bits, or of 32 in a step of that type, that a bucket of --bucket-size has.
int64_t BucketElements(const EmitQuestion& question);

/// The type of parameters and activations, in bytes.
int64_t BytesAnElement(const EmitQuestion& question);

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_EMITTERS_EMITTER_H_
