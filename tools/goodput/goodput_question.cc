#include "tools/goodput/goodput_question.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "search/bounds/least_memory.h"
#include "search/evaluate.h"
#include "support/status.h"
#include "support/units.h"
#include "tools/validation/software_stack.h"
#include "transforms/plan/mesh.h"
#include "transforms/plan/plan_text.h"

namespace orrery::tools {

using simulator::goodput::CheckpointTier;
using simulator::goodput::JobShape;
using simulator::goodput::Loss;
using simulator::goodput::PlayManner;
using simulator::goodput::RunSpec;
using simulator::goodput::WhenShort;

namespace goodput_question_cc {
namespace {

// Where nothing is known: PCIe 4 x16; the sum of 8 cards of 400 Gb/s; a file system as that of
// Llama 3 (2 TB/s for 2,048 hosts); one NVMe drive.
constexpr double kHostCopyRate = 25e9, kCardRate = 8 * 50e9;
constexpr double kPfsRateOfHost = 1e9, kDiskRate = 5e9;
// What software adds to a checkpoint of files that is written in the background: 7B parameters on
// 128 devices stood still for 6.3 s, of which copying is a tenth of a second (Pasqualin et al.,
// Reducing Model Checkpointing Times by Over 10x with PyTorch Distributed Asynchronous
// Checkpointing, 2024).
constexpr double kFilesOverhead = 6;
constexpr double kDay = 86'400;

// The plan with dp as it fills the cluster, where nobody says what it is.
absl::StatusOr<search::ParallelPlan> FullPlan(const GoodputFlags& flags, int64_t devices) {
  ORRERY_ASSIGN_OR_RETURN(search::ParallelPlan plan, ReadPlan(flags.plan_axes, {}));
  if (flags.plan_axes.Has("dp")) return plan;
  const int64_t replica = plan.ranks() / plan.dp;
  if (replica > 0 && replica <= devices) plan.dp = devices / replica;
  return plan;
}

// The step where what leaves nodes has half the rate: checkpoints that are written have the other.
absl::StatusOr<double> SlowStep(search::Setting& setting, const search::ParallelPlan& plan,
                                const search::Run& run) {
  const cluster::Topology topology = setting.cluster.topology;
  cluster::TopologyShape shape = topology.shape();
  if (shape.nic.rate == Bandwidth(0) || !setting.cost_model->shares_links()) return 0.0;
  shape.nic.rate = Bandwidth(std::max<int64_t>(shape.nic.rate.bytes_per_second() / 2, 1));
  ORRERY_ASSIGN_OR_RETURN(cluster::Topology slow,
                          cluster::Topology::Create(topology.kind(), shape));
  slow.SetCollectiveProfile(topology.collective_profile());
  setting.cluster.topology = std::move(slow);
  const absl::StatusOr<Duration> step = search::StepTimeOf(setting, plan, run.pipelined);
  setting.cluster.topology = topology;
  if (!step.ok()) return step.status();
  return step->seconds();
}

double CardRate(const cluster::TopologyShape& shape) {
  const auto nic = static_cast<double>(shape.nic.rate.bytes_per_second());
  const int32_t nics = shape.nics_per_node > 0 ? shape.nics_per_node : shape.devices_per_node;
  return nic * nics;
}

absl::StatusOr<double> CheckpointBytes(const GoodputFlags& flags, double usual) {
  if (flags.checkpoint_bytes.empty()) return usual;
  ORRERY_ASSIGN_OR_RETURN(const Bytes bytes,
                          Annotated(ParseBytes(flags.checkpoint_bytes), "--checkpoint-bytes"));
  return static_cast<double>(bytes.count());
}

absl::StatusOr<JobFacts> GivenFacts(const GoodputFlags& flags) {
  JobFacts facts{.name = absl::StrCat("a step of ", flags.step_time), .devices = flags.devices};
  ORRERY_ASSIGN_OR_RETURN(facts.step_s, Annotated(ParseSpan(flags.step_time), "--step-time"));
  if (facts.step_s <= 0) {
    return absl::InvalidArgumentError("--step-time 0: wanted more than 0, as in 5.2s");
  }
  if (flags.devices < 1 || flags.devices > (int64_t{1} << 20)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--devices ", flags.devices, ": wanted 1 to 1048576"));
  }
  if (flags.devices_per_host < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--devices-per-host ", flags.devices_per_host, ": wanted at least 1"));
  }
  const int64_t per_host =
      std::min(flags.devices, flags.devices_per_host > 0 ? flags.devices_per_host : 8);
  const int64_t hosts = (flags.devices + per_host - 1) / per_host;
  // As if samples could be dealt out evenly over any number of replicas, of a host each.
  constexpr int64_t kManyMicrobatches = 1'000;
  facts.shape = {.hosts = hosts,
                 .devices_per_host = per_host,
                 .idle_places = hosts * per_host - flags.devices,
                 .replicas = hosts,
                 .microbatches = kManyMicrobatches};
  ORRERY_ASSIGN_OR_RETURN(facts.checkpoint_bytes, CheckpointBytes(flags, 0));
  facts.host_copy_rate = kHostCopyRate;
  facts.card_rate = kCardRate;
  if (facts.checkpoint_bytes == 0) {
    facts.notes.push_back("checkpoints are of 0 bytes: --checkpoint-bytes says how large they are");
  }
  facts.notes.push_back(
      "of a step that is given nobody knows how much slower it is beside checkpoints");
  return facts;
}

JobShape ShapeOfJob(const search::Setting& setting, const search::ParallelPlan& plan) {
  const cluster::TopologyShape& shape = setting.cluster.topology.shape();
  const int64_t per_host = std::min<int64_t>(shape.devices_per_node, plan.ranks());
  const int64_t hosts = (plan.ranks() + per_host - 1) / per_host;
  return {.hosts = hosts,
          .devices_per_host = per_host,
          .idle_places = hosts * per_host - plan.ranks(),
          .replicas = plan.dp,
          .microbatches = std::max<int64_t>(plan.microbatches, 1),
          .stages = plan.pp};
}

absl::StatusOr<JobFacts> PlayedFacts(const GoodputFlags& flags) {
  ORRERY_ASSIGN_OR_RETURN(const cluster::Cluster cluster,
                          cluster::ParseCluster(flags.model.cluster));
  ORRERY_ASSIGN_OR_RETURN(const search::ParallelPlan plan, FullPlan(flags, cluster.size()));
  ORRERY_ASSIGN_OR_RETURN(search::Setting setting, MakeSetting(flags.model, plan));
  PrintWarnings(setting.notes.warnings);
  ORRERY_RETURN_IF_ERROR(
      Annotate(SetStack(flags.stack, StackUseOf(setting.step), setting.lowering), "--stack"));
  ORRERY_RETURN_IF_ERROR(transforms::MakeMesh(plan).status());
  ORRERY_RETURN_IF_ERROR(CheckFlags(flags.plan_axes, plan, setting.base));
  const absl::StatusOr<search::Run> run = search::Play(setting, plan);
  if (!run.ok()) {
    const auto infeasible = AsInfeasible(run.status());
    if (!infeasible.has_value()) return run.status();
    return absl::FailedPreconditionError(
        absl::StrCat("infeasible (", ToString(infeasible->reason), "): ", infeasible->detail));
  }
  if (!run->report.fits) {
    return absl::FailedPreconditionError(
        absl::StrCat("the step needs ", ToString(run->report.peak_memory),
                     " a device, which none has; wanted a plan that fits: grid_search finds one"));
  }
  JobFacts facts{
      .name = absl::StrCat(setting.model_name, ", batch ", setting.batch_size, ", on ",
                           setting.cluster.name, ": ", transforms::ToString(plan, setting.base)),
      .shape = ShapeOfJob(setting, plan),
      .devices = plan.ranks(),
      .step_s = run->report.step_time.seconds()};
  const int64_t hosts = setting.cluster.size() / setting.cluster.topology.shape().devices_per_node;
  facts.spare_hosts = std::max<int64_t>(hosts - facts.shape.hosts, 0);
  ORRERY_ASSIGN_OR_RETURN(facts.slow_step_s, SlowStep(setting, plan, *run));
  const search::WeightBytes weights = search::SumWeights(setting);
  ORRERY_ASSIGN_OR_RETURN(facts.checkpoint_bytes,
                          CheckpointBytes(flags, weights.parameters + weights.states));
  const auto copy = static_cast<double>(setting.cluster.device.host.rate.bytes_per_second());
  facts.host_copy_rate = copy > 0 ? copy : kHostCopyRate;
  const double cards = CardRate(setting.cluster.topology.shape());
  facts.card_rate = cards > 0 ? cards : kCardRate;
  if (flags.stack == "ideal") {
    facts.notes.push_back("the step is what the hardware allows, by --stack ideal");
  }
  return facts;
}

// What a checkpoint of a tier costs.
CheckpointTier MakeTier(const TierText& text, const JobFacts& facts) {
  const auto hosts = static_cast<double>(facts.shape.hosts);
  const double of_host = facts.checkpoint_bytes / hosts;
  const double copy_s =
      of_host / (facts.host_copy_rate * static_cast<double>(facts.shape.devices_per_host));
  CheckpointTier tier{.name = text.name};
  const bool host = text.name == "host", disk = text.name == "disk", pfs = text.name == "pfs";
  tier.survives = pfs ? Loss::kRack : host || disk ? Loss::kProcesses : Loss::kHost;
  double rate = pfs ? kPfsRateOfHost : disk ? kDiskRate : facts.card_rate / 2;
  if (text.bytes_per_second.has_value()) rate = *text.bytes_per_second / (pfs ? hosts : 1);
  const bool over_cards = !host && !disk && !text.own_network;
  // Steps that want the cards, too, leave it half of them.
  if (over_cards) rate = std::min(rate, facts.card_rate / 2);
  const double write_s = text.write_s.value_or(host ? 0 : of_host / rate);
  const double begin_s = disk || pfs ? kFilesOverhead : 0;
  tier.stall_s =
      text.stall_s.value_or(begin_s + (text.blocking ? std::max(copy_s, write_s) : copy_s));
  tier.write_s = text.blocking ? 0 : write_s;
  tier.load_s = text.load_s.value_or(host ? copy_s : std::max(copy_s, write_s));
  if (over_cards && !text.blocking && write_s > 0 && facts.slow_step_s > facts.step_s) {
    const double share = std::min(of_host / write_s / (facts.card_rate / 2), 1.0);
    const double slower = share * (facts.slow_step_s / facts.step_s - 1);
    tier.drag_s = tier.write_s * slower / (1 + slower);
  }
  const double beyond_s = std::max(tier.write_s - tier.stall_s - tier.drag_s, 0.0);
  tier.least_steps =
      std::max<int64_t>(std::llround(std::min(std::ceil(beyond_s / facts.step_s), 1e15)), 1);
  return tier;
}

int64_t StepsOf(const TierText& text, double step_s, double usual_s) {
  if (text.every_steps.has_value()) return *text.every_steps;
  const double steps = text.every_s.value_or(usual_s) / step_s;
  return std::max<int64_t>(std::llround(std::min(steps, 1e15)), 1);
}

// As many as are being repaired at once, on average, and four times their standard deviation more.
int64_t EnoughSpares(const RunSpec& spec) {
  double hosts_away = 0, largest = 0;
  for (const auto& rate : spec.failures) {
    const double hosts =
        rate.component->loss == Loss::kProcesses ? 0
        : rate.component->loss == Loss::kHost
            ? 1
            : static_cast<double>(std::min(spec.job.hosts_per_rack, spec.job.hosts));
    const auto count = static_cast<double>(rate.component->count(spec.job));
    hosts_away += hosts * count / rate.mtbf_s * spec.recovery.repair_s;
    largest = std::max(largest, hosts);
  }
  constexpr double kMost = 1 << 20;
  return static_cast<int64_t>(std::ceil(std::min(
      hosts_away + 4 * std::sqrt(hosts_away * largest) + (hosts_away > 0 ? largest : 0), kMost)));
}

absl::Status ReadRecovery(const GoodputFlags& flags, const JobFacts& facts, RunSpec& spec,
                          bool& enough) {
  auto& recovery = spec.recovery;
  ORRERY_ASSIGN_OR_RETURN(recovery.detect, Annotated(ParseSpread(flags.detect), "--detect"));
  ORRERY_ASSIGN_OR_RETURN(recovery.restart, Annotated(ParseSpread(flags.restart), "--restart"));
  ORRERY_ASSIGN_OR_RETURN(recovery.swap, Annotated(ParseSpread(flags.swap), "--swap"));
  ORRERY_ASSIGN_OR_RETURN(recovery.repair_s, Annotated(ParseSpan(flags.repair), "--repair"));
  ORRERY_ASSIGN_OR_RETURN(recovery.when_short,
                          Annotated(ParseWhenShort(flags.when_short), "--when-short"));
  if (flags.spares < -1 || flags.spares > (int64_t{1} << 20)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--spares ", flags.spares, ": wanted 0 to 1048576 hosts"));
  }
  recovery.spares = flags.spares;
  if (flags.spares >= 0) return absl::OkStatus();
  if (recovery.when_short != WhenShort::kWait) {
    // Who wants to see it shrink has no more hosts than there are.
    recovery.spares = facts.spare_hosts;
    return absl::OkStatus();
  }
  enough = facts.spare_hosts == 0;
  recovery.spares = enough ? EnoughSpares(spec) : facts.spare_hosts;
  return absl::OkStatus();
}

absl::Status ReadStops(const GoodputFlags& flags, RunSpec& spec) {
  if (!flags.maintenance.empty()) {
    ORRERY_ASSIGN_OR_RETURN(
        spec.stops.emplace_back(),
        Annotated(ParseStop(flags.maintenance, {.name = "maintenance", .notice_s = HUGE_VAL}),
                  "--maintenance"));
  }
  if (!flags.preemption.empty()) {
    ORRERY_ASSIGN_OR_RETURN(
        spec.stops.emplace_back(),
        Annotated(ParseStop(flags.preemption, {.name = "preemption", .random = true}),
                  "--preempt"));
  }
  return absl::OkStatus();
}

// Intervals that nobody names, one tier after the other, twice, as each is the best beside others.
void ChooseIntervals(const std::vector<TierText>& texts, size_t safest, const PlayManner& manner,
                     GoodputQuestion& question) {
  std::vector<CheckpointTier>& tiers = question.spec.tiers;
  const auto open = std::ranges::count_if(texts, &TierText::open);
  for (int round = 0; round < (open > 1 ? 2 : 1); ++round) {
    for (size_t i = 0; i < tiers.size(); ++i) {
      if (!texts[i].open()) continue;
      const auto best = FindBestInterval(question.spec, i, manner);
      tiers[i].every_steps = best.steps;
      if (i == safest) question.best = best;
    }
  }
  if (!tiers.empty() && question.best.seconds == 0) {
    question.best = FindBestInterval(question.spec, safest, manner);
  }
}

// What nobody would want, and might not see.
void NoteGaps(const GoodputQuestion& question, const std::vector<CheckpointTier>& tiers,
              std::vector<std::string>& notes) {
  // Of a stop, hosts go.
  Loss largest = question.spec.stops.empty() ? Loss::kProcesses : Loss::kRack;
  for (const auto& rate : question.spec.failures) {
    largest = std::max(largest, rate.component->loss);
  }
  const bool survives = std::ranges::any_of(
      tiers, [&](const CheckpointTier& tier) { return tier.survives >= largest; });
  if (!survives && !(question.spec.failures.empty() && question.spec.stops.empty())) {
    notes.push_back(
        "no checkpoint survives all failures and stops: after one that takes it, the run begins "
        "anew");
  }
}

// A named interval that is far from one of the tier that is due more often.
void NoteRounding(const TierText& text, const CheckpointTier& wanted, const RunSpec& spec,
                  std::vector<std::string>& notes) {
  constexpr double kMuch = 0.1;
  const auto played = std::ranges::find(spec.tiers, text.name, &CheckpointTier::name);
  const double ratio =
      static_cast<double>(played->every_steps) / static_cast<double>(wanted.every_steps);
  if (text.open() || std::abs(ratio - 1) <= kMuch) return;
  notes.push_back(absl::StrCat("checkpoints to ", text.name, " come every ", played->every_steps,
                               " steps in place of ", wanted.every_steps,
                               ": intervals are multiples of each other"));
}

}  // namespace
}  // namespace goodput_question_cc

absl::StatusOr<JobFacts> FactsOf(const GoodputFlags& flags) {
  if (!flags.step_time.empty()) return goodput_question_cc::GivenFacts(flags);
  return goodput_question_cc::PlayedFacts(flags);
}

absl::StatusOr<GoodputQuestion> QuestionOf(const GoodputFlags& flags, const JobFacts& facts,
                                           const PlayManner& manner) {
  using namespace goodput_question_cc;  // NOLINT(google-build-using-namespace)
  GoodputQuestion question{.spec = {.job = facts.shape}, .notes = facts.notes};
  RunSpec& spec = question.spec;
  if (!(flags.days > 0) || flags.days > 36'500) {
    return absl::InvalidArgumentError(
        absl::StrCat("--days ", flags.days, ": wanted more than 0 and at most 36500"));
  }
  if (flags.hosts_per_rack < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("--rack ", flags.hosts_per_rack, ": wanted at least 1 host"));
  }
  spec.job.hosts_per_rack = flags.hosts_per_rack;
  spec.length_s = flags.days * kDay;
  spec.step_s = facts.step_s;
  ORRERY_ASSIGN_OR_RETURN(spec.failures, Annotated(ParseMtbf(flags.mtbf), "--mtbf"));
  ORRERY_RETURN_IF_ERROR(ReadRecovery(flags, facts, spec, question.enough_spares));
  ORRERY_RETURN_IF_ERROR(ReadStops(flags, spec));
  ORRERY_ASSIGN_OR_RETURN(const std::vector<TierText> texts,
                          Annotated(ParseTiers(flags.checkpoint), "--checkpoint"));
  const double per_second = simulator::goodput::FailuresPerSecond(spec);
  size_t safest = 0;
  for (const TierText& text : texts) {
    CheckpointTier& tier = spec.tiers.emplace_back(MakeTier(text, facts));
    const double cost_s = std::max(tier.stall_s + tier.drag_s, 1e-3 * spec.step_s);
    const double usual_s = std::max(
        per_second > 0 ? simulator::goodput::DalyInterval(cost_s, 1 / per_second) : spec.length_s,
        tier.write_s + spec.step_s);
    tier.every_steps = StepsOf(text, spec.step_s, usual_s);
    if (tier.survives >= spec.tiers[safest].survives) safest = spec.tiers.size() - 1;
  }
  ORRERY_RETURN_IF_ERROR(simulator::goodput::CheckRun(spec));
  ChooseIntervals(texts, safest, manner, question);
  if (!spec.tiers.empty()) question.safest_tier = spec.tiers[safest].name;
  const std::vector<CheckpointTier> wanted = spec.tiers;
  simulator::goodput::OrderTiers(spec.tiers);
  for (size_t i = 0; i < texts.size(); ++i) {
    NoteRounding(texts[i], wanted[i], spec, question.notes);
  }
  ORRERY_RETURN_IF_ERROR(simulator::goodput::CheckRun(spec));
  NoteGaps(question, spec.tiers, question.notes);
  return question;
}

}  // namespace orrery::tools
