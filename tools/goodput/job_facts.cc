#include "tools/goodput/job_facts.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "search/bounds/least_memory.h"
#include "search/evaluate.h"
#include "support/status.h"
#include "support/units.h"
#include "tools/one_plan.h"
#include "tools/validation/software_stack.h"
#include "transforms/plan/mesh.h"
#include "transforms/plan/plan_text.h"

namespace orrery::tools {

using simulator::goodput::JobShape;

namespace job_facts_cc {
namespace {

// Where nothing is known: PCIe 4 x16, and the sum of 8 cards of 400 Gb/s.
constexpr double kHostCopyRate = 25e9, kCardRate = 8 * 50e9;

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
  if (plan.unequal()) {
    return absl::InvalidArgumentError(
        "--stage-meshes, --shares: a run of days shrinks by replicas that are alike; wanted none, "
        "or --step-time of what simulate makes of them");
  }
  ORRERY_RETURN_IF_ERROR(ReadOrders(plan, setting));
  ORRERY_ASSIGN_OR_RETURN(const search::Run run, PlayOne(setting, plan));
  if (!run.report.fits) {
    return absl::FailedPreconditionError(
        absl::StrCat("the step needs ", ToString(run.report.peak_memory),
                     " a device, which none has; wanted a plan that fits: grid_search finds one"));
  }
  JobFacts facts{
      .name = absl::StrCat(setting.model_name, ", batch ", setting.batch_size, ", on ",
                           setting.cluster.name, ": ", transforms::ToString(plan, setting.base)),
      .shape = ShapeOfJob(setting, plan),
      .devices = plan.ranks(),
      .step_s = run.report.step_time.seconds()};
  const int64_t hosts = setting.cluster.size() / setting.cluster.topology.shape().devices_per_node;
  facts.spare_hosts = std::max<int64_t>(hosts - facts.shape.hosts, 0);
  ORRERY_ASSIGN_OR_RETURN(facts.slow_step_s, SlowStep(setting, plan, run));
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

}  // namespace
}  // namespace job_facts_cc

absl::StatusOr<JobFacts> FactsOf(const GoodputFlags& flags) {
  if (!flags.step_time.empty()) return job_facts_cc::GivenFacts(flags);
  return job_facts_cc::PlayedFacts(flags);
}

}  // namespace orrery::tools
