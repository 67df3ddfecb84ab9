#include "tools/goodput/goodput_flags.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tools/goodput/checkpoint_tiers.h"
#include "tools/validation/software_stack.h"

namespace orrery::tools {
namespace goodput_flags_cc {
namespace {

namespace po = boost::program_options;

std::vector<NamedThing> Failures() {
  std::vector<NamedThing> things;
  for (const FailureProfile& profile : AllFailureProfiles()) {
    things.push_back(
        {std::string(profile.name), absl::StrCat(profile.summary, " (", profile.source, ")")});
  }
  return things;
}

std::vector<NamedThing> Components() {
  std::vector<NamedThing> things;
  for (const auto& component : simulator::goodput::AllComponents()) {
    things.push_back({std::string(component.name), std::string(component.summary)});
  }
  return things;
}

std::vector<NamedThing> Tiers() {
  std::vector<NamedThing> things;
  for (const TierKind& kind : AllTierKinds()) {
    things.push_back({std::string(kind.name), std::string(kind.summary)});
  }
  return things;
}

}  // namespace
}  // namespace goodput_flags_cc

namespace po = boost::program_options;

std::vector<Listing> GoodputListings() {
  return {{.flag = "list-failures",
           .about = "names published rates of failures",
           .of = {"mtbf"},
           .things = goodput_flags_cc::Failures},
          {.flag = "list-components",
           .about = "names what can fail",
           .of = {},
           .things = goodput_flags_cc::Components,
           .beside = "mtbf"},
          {.flag = "list-tiers",
           .about = "names what checkpoints go to",
           .of = {"checkpoint"},
           .things = goodput_flags_cc::Tiers}};
}

void AddRunFlags(po::options_description& options, GoodputFlags& flags) {
  options.add_options()("days", po::value(&flags.days), "how long the run is [30]")(
      "mtbf", po::value(&flags.mtbf),
      "mean time between failures of each device, host, link, switch, rack and process "
      "(software), as in device=50000h,host=30000h; or a published one of --list-failures, with "
      "such words behind it; or none [llama3-405b]")(
      "checkpoint", po::value(&flags.checkpoint),
      "where checkpoints go and how often: host, disk, neighbour or pfs, as in 30m, "
      "pfs:every=30m:bandwidth=2TB/s:blocking, host:every=1m,pfs:every=1h, or none [pfs, as often "
      "as is best]")("detect", po::value(&flags.detect),
                     "from a failure until it is known; a range is drawn from: 2m..8m [5m]")(
      "restart", po::value(&flags.restart),
      "from then until processes load a checkpoint; likewise [5m]")(
      "swap", po::value(&flags.swap), "beside that, where a host is replaced; likewise [0]")(
      "repair", po::value(&flags.repair), "of a host, on average [24h]")(
      "spares", po::value(&flags.spares),
      "hosts beside those of the job [those of the cluster, or as many as repairs need]")(
      "when-short", po::value(&flags.when_short),
      "without a spare host: wait for a repair, shrink to fewer replicas, or shrink and keep-batch "
      "[wait]")("rack", po::value(&flags.hosts_per_rack),
                "hosts behind one leaf switch, which fail with it [8]")(
      "maintenance", po::value(&flags.maintenance),
      "stops by the clock, after a checkpoint: every=24h,away=30m")(
      "preempt", po::value(&flags.preemption), "stops at random: every=24h,away=30m,notice=2m")(
      "trials", po::value(&flags.trials), "runs that are played [1000]")(
      "seed", po::value(&flags.seed), "of what is drawn [1]")(
      "threads", po::value(&flags.threads), "0: as many as there are processors [0]");
}

void AddPlayedStepFlags(po::options_description& options, GoodputFlags& flags) {
  AddModelFlags(options, flags.model);
  AddPlanFlags(options, PlanForm::kOne, {}, flags.plan_axes);
  options.add_options()("stack", po::value(&flags.stack), StackHelp().c_str())(
      "checkpoint-bytes", po::value(&flags.checkpoint_bytes),
      "of one checkpoint, in all [weights and state of the optimizer]");
}

void AddGivenStepFlags(po::options_description& options, GoodputFlags& flags) {
  options.add_options()("step-time", po::value(&flags.step_time)->required(),
                        "of a step that is known, in place of a model: 5.2s")(
      "devices", po::value(&flags.devices)->required(), "that it runs on")(
      "devices-per-host", po::value(&flags.devices_per_host), "[8]")(
      "checkpoint-bytes", po::value(&flags.checkpoint_bytes), "of one checkpoint, in all [0]");
}

}  // namespace orrery::tools
