#include "tools/parameter_server/server_run.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "simulator/parameter_server/balance.h"
#include "simulator/parameter_server/play_training.h"
#include "support/status.h"
#include "tools/one_plan.h"
#include "tools/terminal/progress.h"
#include "tools/validation/software_stack.h"
#include "transforms/plan/axis.h"

namespace orrery::tools {
namespace server_run_cc {
namespace {

namespace ps = simulator::parameter_server;
using transforms::AxisInfo;

// What a worker is told of; a degree of one says nothing.
constexpr std::array<absl::string_view, 4> kApplies = {"dp", "micro-batches", "recompute", "dtype"};
constexpr std::array<absl::string_view, 4> kDegrees = {"hp", "pp", "cp", "ep"};

absl::Status CheckAxes(const PlanFlags& flags, const search::ParallelPlan& plan) {
  for (const AxisInfo* axis : transforms::AllAxes()) {
    if (flags.Given(*axis) == nullptr || std::ranges::count(kApplies, axis->flag) > 0) continue;
    if (axis->flag == "negatives" && plan.negatives == transforms::ContrastiveNegatives::kLocal) {
      continue;  // as it is anyway
    }
    if (std::ranges::count(kDegrees, axis->flag) > 0) {
      if (axis->degree(plan) == 1) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("--", axis->flag, " ", axis->degree(plan),
                       ": with --update ps a worker is one device; wanted 1, and --dp workers"));
    }
    return absl::InvalidArgumentError(
        absl::StrCat("--", axis->flag,
                     ": says nothing with --update ps, where a worker is one device, pushes "
                     "its gradients and pulls its parameters; wanted it without"));
  }
  return absl::OkStatus();
}

absl::Status CheckModel(const ModelFlags& flags, int64_t workers) {
  if (workers < 1 || workers > cluster::kMaxDevices) {
    return absl::InvalidArgumentError(
        absl::StrCat("--dp ", workers, ": wanted 1 to ", cluster::kMaxDevices, " workers"));
  }
  if (flags.batch_size % workers != 0) {
    return absl::InvalidArgumentError(absl::StrCat("--batch-size ", flags.batch_size,
                                                   ": does not divide over ", workers,
                                                   " workers; wanted a multiple of --dp"));
  }
  if (flags.no_fold) {
    return absl::InvalidArgumentError(
        "--no-fold: with --update ps each worker is simulated anyway; wanted it without");
  }
  if (flags.most_unfolded_tasks != ModelFlags().most_unfolded_tasks) {
    return absl::InvalidArgumentError(
        "--most-unfolded-tasks: with --update ps each worker is simulated anyway; wanted it "
        "without");
  }
  return absl::OkStatus();
}

// The setting of one worker.
absl::StatusOr<search::Setting> WorkerSetting(const ServerRunFlags& flags,
                                              const search::ParallelPlan& plan) {
  ModelFlags model = flags.model;
  model.batch_size /= plan.dp;
  search::ParallelPlan worker = plan;
  worker.dp = 1;
  ORRERY_ASSIGN_OR_RETURN(search::Setting setting, MakeSetting(model, worker));
  PrintWarnings(setting.notes.warnings);
  ORRERY_RETURN_IF_ERROR(
      Annotate(SetStack(flags.stack, StackUseOf(setting.step), setting.lowering), "--stack"));
  if (flags.cuda_graphs) CaptureGraphs(setting.lowering);
  if (setting.cluster.kind_count() > 1) {
    return absl::InvalidArgumentError(
        "--cluster: has several kinds of devices, and with --update ps workers are alike; wanted "
        "one kind, and --slow for workers that are slower");
  }
  setting.lowering.every_link = true;  // kernels are a task each
  setting.lowering.stragglers = false;
  return setting;
}

absl::Status ReadDisturbances(const JitterFlags& flags, int64_t workers, search::Setting& setting,
                              search::StepsQuestion& disturbed) {
  ORRERY_ASSIGN_OR_RETURN(const std::optional<search::StepsQuestion> read,
                          ReadJitterFlags(flags, setting.cluster.topology, workers));
  disturbed.steps = kUsualServerSteps;
  if (!read.has_value()) return absl::OkStatus();
  disturbed = *read;
  if (!flags.steps.has_value()) disturbed.steps = kUsualServerSteps;
  for (const search::DegradedLinks& links : disturbed.links) {
    setting.cluster.topology = setting.cluster.topology.WithSlowerLinks(links.links, links.share);
  }
  return absl::OkStatus();
}

// What `simulate` takes for the same, without the model and the cluster.
std::string FlagsText(const search::ParallelPlan& plan, const ServerQuestion& question) {
  const search::ParallelPlan usual;
  std::string text = absl::StrCat("--dp ", plan.dp);
  for (const absl::string_view flag : kApplies) {
    const AxisInfo* axis = transforms::FindAxis(flag);
    const std::string value = axis->print(plan);
    if (flag == "dp" || value == axis->print(usual)) continue;
    absl::StrAppend(&text, " --", flag, " ", value);
  }
  absl::StrAppend(&text, " --update ps --servers ", question.places.servers);
  for (const search::ServerPlace& place : search::AllServerPlaces()) {
    if (place.kind == question.places.place) {
      absl::StrAppend(&text, " --server-place ", place.name);
    }
  }
  absl::StrAppend(&text, " --sync ", SyncText(question.policy));
  if (question.policy.backup > 0) absl::StrAppend(&text, " --backup ", question.policy.backup);
  if (question.places.adds_up) absl::StrAppend(&text, " --ps-local add");
  return text;
}

// Of each server; workers' devices are told apart.
std::vector<Bytes> MemoryOfServers(const ps::Training& training) {
  std::vector<Bytes> memory(static_cast<size_t>(training.servers));
  const bool sums = training.policy.sync == ps::Sync::kBulk;
  for (const ps::Part& part : training.parts) {
    memory[static_cast<size_t>(part.server)] +=
        part.parameter + part.state + (sums ? part.gradient : Bytes(0));
  }
  return memory;
}

absl::Status CheckWork(const ps::Training& training) {
  if (training.steps < 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("--steps ", training.steps,
                     ": with --update ps a step goes from the end of the one before; wanted at "
                     "least 2"));
  }
  constexpr double kMostEvents = 2e9;
  constexpr double kMostCopies = 5e7;  // of parts at workers
  const double copies =
      static_cast<double>(training.parts.size()) * static_cast<double>(training.workers);
  if (copies > kMostCopies) {
    return absl::InvalidArgumentError(
        absl::StrCat("--ps-part: makes ", training.parts.size(), " parts for ", training.workers,
                     " workers; wanted at most ", static_cast<int64_t>(kMostCopies),
                     " of all: larger parts, or fewer servers"));
  }
  const double events = ps::ExpectedEvents(training);
  if (events <= kMostEvents) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--steps ", training.steps, ": about ", static_cast<int64_t>(events / 1e6),
                   " million events; wanted at most ", static_cast<int64_t>(kMostEvents / 1e6),
                   " million: fewer steps, or larger parts (--ps-part)"));
}

// Who has what of the keys. Servers of a kind have all alike; of two kinds, as much as makes links
// alike full.
void SpreadOverServers(ServerRun& run) {
  if (run.question.places.place == search::ServerPlace::Kind::kMixed) {
    ps::BalanceShares(run.servers_with_workers, run.training);
  }
  run.training.parts = ps::SpreadKeys(run.training, run.question.part);
}

void AddNotes(const search::Setting& setting, ServerRun& run) {
  if (search::AssumesHostMemory(setting.cluster, run.question.places)) {
    run.notes.push_back(absl::StrCat("servers' memory moves ", ToString(search::kAssumedHostMemory),
                                     ", as no record says it; --server-rate says another"));
  }
  if (run.question.places.adds_up && run.training.adding.lanes == 1) {
    run.notes.push_back("--ps-local add: each worker is alone on its host, where nothing adds up");
  }
  constexpr double kNoise = 1.005;
  if (run.training.policy.sync == ps::Sync::kStale &&
      run.outcome.rate() > kNoise * run.arithmetic.most_rate) {
    run.notes.push_back(
        "in so few steps workers get ahead faster than the bound holds them up: --steps plays "
        "more");
  }
  if (!run.step.fits) run.notes.push_back("the workers need more memory than they have");
  const bool devices = run.question.places.place == search::ServerPlace::Kind::kDevices;
  const Bytes most = *std::ranges::max_element(run.server_memory);
  if (devices && most > setting.cluster.device.memory) {
    run.notes.push_back("a server needs more memory than its device has; more servers need less");
  }
  const std::string doubt = cost_models::DoubtAbout(*setting.cost_model, setting.cluster);
  if (!doubt.empty()) run.notes.push_back(doubt);
}

}  // namespace
}  // namespace server_run_cc

absl::StatusOr<ServerRun> PlayServers(const ServerRunFlags& flags) {
  namespace cc = server_run_cc;
  ORRERY_ASSIGN_OR_RETURN(const search::ParallelPlan plan, ReadPlan(flags.plan_axes, {}));
  ORRERY_RETURN_IF_ERROR(cc::CheckAxes(flags.plan_axes, plan));
  ORRERY_RETURN_IF_ERROR(cc::CheckModel(flags.model, plan.dp));
  ServerRun run;
  ORRERY_ASSIGN_OR_RETURN(run.question, ReadServerFlags(flags.servers, plan.dp));
  ORRERY_ASSIGN_OR_RETURN(search::Setting setting, cc::WorkerSetting(flags, plan));
  ORRERY_RETURN_IF_ERROR(cc::ReadDisturbances(flags.jitter, plan.dp, setting, run.disturbed));
  search::ParallelPlan worker = plan;
  worker.dp = 1;
  run.training.policy = run.question.policy;
  run.training.disturbances = run.disturbed.disturbances;
  run.training.steps = run.disturbed.steps;
  ORRERY_RETURN_IF_ERROR(search::PlaceServers(setting.cluster, run.question.places, run.training));
  ORRERY_ASSIGN_OR_RETURN(const search::Run played, PlayOne(setting, worker));
  ORRERY_ASSIGN_OR_RETURN(run.step,
                          Annotated(search::WorkerStepOf(setting, played), "--update ps"));
  run.training.segments = run.step.segments;
  run.training.keys = run.step.keys;
  run.servers_with_workers = search::ServersWithWorkers(setting.cluster, run.question.places);
  cc::SpreadOverServers(run);
  ORRERY_RETURN_IF_ERROR(cc::CheckWork(run.training));
  run.title = absl::StrCat(setting.model_name, ", batch ", setting.batch_size * plan.dp, ", on ",
                           setting.cluster.name);
  run.plan = cc::FlagsText(plan, run.question);
  run.samples = setting.batch_size;
  run.arithmetic = cc::ps::ArithmeticOf(run.training);
  run.server_memory = cc::MemoryOfServers(run.training);
  {
    const Waiting waiting("playing steps");
    ORRERY_ASSIGN_OR_RETURN(run.outcome,
                            cc::ps::Play(run.training, flags.traced ? kTracedSteps : 0));
  }
  cc::AddNotes(setting, run);
  return run;
}

}  // namespace orrery::tools
