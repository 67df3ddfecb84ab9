#include "tests/golden/calculon_played.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "search/evaluate.h"
#include "simulator/report/memory.h"
#include "tools/flags.h"
#include "transforms/plan/plan_text.h"

namespace orrery::golden {
namespace calculon_played_cc {
namespace {

using simulator::MemoryKind;
using simulator::MemoryUse;
using simulator::RankClassId;
using simulator::TaskId;
using transforms::StepKind;

constexpr RankClassId kFirst(0);

// The small vocabulary leaves blocks and nothing else; only the dropout behind the embedding stays.
transforms::ParallelPlan PlanOf(const CalculonCase& c, int64_t zero) {
  return {
      .dp = c.optimizer_sharding ? c.dp : 1,
      .hp = c.hp,
      .pp = c.pp,
      .microbatches = 2 * c.pp,
      .schedule = c.chunks > 1 ? "interleaved" : "1f1b",
      .chunks = c.chunks > 1 ? c.chunks : 0,
      .zero = c.optimizer_sharding ? zero : 0,
      .recompute =
          transforms::ParseRecomputePolicy(c.attention_only() ? "selective" : c.recompute).value(),
      .offload = {.activations = c.activation_offload,
                  .optimizer = c.optimizer_offload,
                  .pattern = c.activation_offload ? "." : ""},
      .sharding = transforms::ShardingMethod::kMegatron,
      .sequence_parallel = c.sequence_parallel ? transforms::SequenceParallel::kOn
                                               : transforms::SequenceParallel::kOff,
      .stages_by = transforms::StagesBy::kLayers,
      .dtype = transforms::StepDType::kF16};
}

search::Setting SettingOf(const CalculonCase& c, const transforms::ParallelPlan& plan) {
  tools::ModelFlags flags;
  flags.model =
      absl::StrCat("gpt:layers=", c.layers, ",hidden=", c.hidden, ",heads=", c.heads,
                   ",seq=", c.seq, ",vocab=64,position=none,tied_embeddings=0,dropout=0.1");
  flags.batch_size = c.microbatch_size * plan.microbatches * plan.dp;
  flags.cluster = absl::StrCat("dgx-a100:", (plan.ranks() + 7) / 8);
  flags.memory_limit = "none";
  auto setting = tools::MakeSetting(flags, plan);
  EXPECT_TRUE(setting.ok()) << setting.status();
  setting->lowering.every_link = true;  // kernel by kernel: a run of them tells only its peak
  if (!c.training) setting->step = tools::LoadModel(flags, plan).value();
  return *std::move(setting);
}

struct Span {
  Time begin, end;
};

// When the compute stream of the first rank runs the tasks of a step.
Span SpanOf(const search::Run& run, const lowering::LoweredStep& step) {
  Span span = {.begin = run.trace.makespan, .end = Time()};
  for (TaskId task = step.begin; task != step.end; task = TaskId(task.index() + 1)) {
    const auto& stream = run.program.stream(run.program.streams_of(task)[0]);
    if (stream.rank != kFirst || stream.kind != simulator::StreamKind::kCompute) continue;
    span.begin = std::min(span.begin, run.trace.start_of(task));
    span.end = std::max(span.end, run.trace.finish_of(task));
  }
  return span;
}

struct FirstBackward {
  Time last_forward;  // its end, of what comes before
  Span span;
};

FirstBackward Find(const search::Run& run) {
  FirstBackward found = {.last_forward = Time(), .span = {.begin = run.trace.makespan, .end = {}}};
  std::vector<Span> forwards;
  for (const lowering::LoweredStep& step : run.steps) {
    const Span span = SpanOf(run, step);
    if (span.begin >= span.end) continue;
    if (step.step.kind == StepKind::kForward) {
      forwards.push_back(span);
    } else if (span.begin < found.span.begin) {
      found.span = span;
    }
  }
  for (const Span& forward : forwards) {
    if (forward.begin < found.span.begin) {
      found.last_forward = std::max(found.last_forward, forward.end);
    }
  }
  return found;
}

bool IsBackward(const search::Run& run, const MemoryUse& use) {
  if (!use.task.valid()) return false;
  const simulator::TaskLabel label = run.program.label(run.program.label_of(use.task));
  return label.phase == simulator::Phase::kBackward && label.kind == simulator::TaskKind::kCompute;
}

PlayedMemory MemoryOf(const search::Run& run, bool training) {
  const FirstBackward first = Find(run);
  PlayedMemory memory;
  bool begun = false;
  const auto timelines = simulator::MemoryTimeline(run.program, run.trace);
  const auto most = [](double& value, Bytes bytes) {
    value = std::max(value, static_cast<double>(bytes.count()));
  };
  for (const MemoryUse& use : timelines[kFirst]) {
    most(memory.weights, use.of(MemoryKind::kParameters));
    most(memory.gradients, use.of(MemoryKind::kGradients));
    most(memory.optimizer, use.of(MemoryKind::kOptimizer));
    begun = begun || IsBackward(run, use);
    const Bytes activations = use.of(MemoryKind::kActivations);
    const auto bytes = static_cast<double>(activations.count());
    if (!begun) {
      memory.saved = use.time <= first.last_forward ? bytes : std::min(memory.saved, bytes);
    }
    if (!training || (begun && use.time <= first.span.end)) most(memory.at_work, activations);
  }
  const simulator::RankReport& rank = run.report.ranks[kFirst];
  memory.device = static_cast<double>(rank.memory.total.count());
  memory.host = static_cast<double>(rank.host_memory.count());
  return memory;
}

}  // namespace
}  // namespace calculon_played_cc

const PlayedMemory& Played(const CalculonCase& c, int64_t zero) {
  static auto& known = *new std::map<std::string, PlayedMemory>;
  const transforms::ParallelPlan plan = calculon_played_cc::PlanOf(c, zero);
  const std::string key = absl::StrCat(c.model, " ", c.microbatch_size,
                                       c.training ? " " : " inference ", ToString(plan));
  if (const auto found = known.find(key); found != known.end()) return found->second;
  const search::Setting setting = calculon_played_cc::SettingOf(c, plan);
  const auto run = search::Play(setting, plan);
  EXPECT_TRUE(run.ok()) << key << ": " << run.status();
  return known
      .emplace(key, run.ok() ? calculon_played_cc::MemoryOf(*run, c.training) : PlayedMemory())
      .first->second;
}

}  // namespace orrery::golden
