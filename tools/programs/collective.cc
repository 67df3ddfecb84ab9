#include <algorithm>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "cluster/cluster.h"
#include "cluster/names/device_list.h"
#include "cost_models/collectives/bound.h"
#include "cost_models/collectives/choice.h"
#include "cost_models/collectives/collective_algorithm.h"
#include "cost_models/collectives/collective_kind.h"
#include "cost_models/measured.h"
#include "lowering/network/transfers.h"
#include "simulator/engine/event_queue.h"
#include "support/status.h"
#include "support/word_list.h"
#include "tools/collective_cases.h"
#include "tools/flags.h"
#include "tools/measurements.h"
#include "tools/reports/page.h"
#include "tools/reports/plot_files.h"
#include "tools/terminal/interrupt.h"

// One collective on a cluster: how long it takes, how close to the bound, and over which link.

namespace orrery::tools {
namespace {

namespace po = boost::program_options;
using cluster::DeviceId;
using cost_models::ChosenCollective;

constexpr PlotView kPlotViews[] = {{"bandwidth", "bus bandwidth over sizes beside the bound"}};

// As they are given; so many fields: a flag each.
struct Flags {
  std::string kind = "all-reduce", bytes = "64MiB", sizes, cluster, group, cases;
  std::string algorithm = "auto", network = "fluid", cost_model, measurements, report;
  std::vector<std::string> plot;
  std::string command;  // for the report
  bool every_transfer = false, fit = false, every_point = false;
};

// What is asked for, read.
struct Question {
  cost_models::CollectiveKind kind;
  cost_models::CollectiveChoice choice;
  cluster::Cluster cluster;
  std::vector<DeviceId> group;
  std::optional<cost_models::MeasuredCollectives> measured = std::nullopt;
};

struct Answer {
  ChosenCollective chosen;
  Duration time;  // through the network asked for
  std::optional<Duration> bound;
};

// "64KiB:1GiB" as all powers of two times the first.
absl::StatusOr<std::vector<Bytes>> ParseSizes(const std::string& text) {
  const std::vector<std::string> ends = absl::StrSplit(text, ':');
  if (ends.size() != 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("--sizes '", text, "': wanted FIRST:LAST, as in 64KiB:1GiB"));
  }
  ORRERY_ASSIGN_OR_RETURN(const Bytes first, Annotated(ParseBytes(ends[0]), "--sizes"));
  ORRERY_ASSIGN_OR_RETURN(const Bytes last, Annotated(ParseBytes(ends[1]), "--sizes"));
  if (first == Bytes(0) || first > last || last > Bytes(int64_t{1} << 50)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--sizes '", text, "': wanted the smaller first, more than 0 and at most 1024TiB"));
  }
  std::vector<Bytes> sizes;
  for (Bytes size = first; size <= last; size = size * 2) sizes.push_back(size);
  return sizes;
}

bool PlaysTransfers(const Flags& flags) { return flags.every_transfer || flags.network != "fluid"; }

// The sweeps that --cost-model measured:FILE names.
absl::StatusOr<cost_models::MeasuredCurves> ReadSweeps(const Flags& flags) {
  absl::string_view file = flags.cost_model;
  if (absl::ConsumePrefix(&file, "measured:")) {
    return cost_models::ReadMeasuredCurves(std::string(file));
  }
  return absl::InvalidArgumentError(absl::StrCat(flags.fit ? "--fit with " : "", "--cost-model '",
                                                 flags.cost_model, "': wanted measured:FILE",
                                                 flags.fit ? "" : ", or roofline"));
}

absl::StatusOr<Question> Read(const Flags& flags) {
  Question question;
  if (!flags.cost_model.empty() && flags.cost_model != "roofline") {
    ORRERY_ASSIGN_OR_RETURN(const cost_models::MeasuredCurves curves, ReadSweeps(flags));
    question.measured.emplace(curves);
  }
  ORRERY_ASSIGN_OR_RETURN(question.kind,
                          Annotated(cost_models::FindCollectiveKind(flags.kind), "--kind"));
  ORRERY_ASSIGN_OR_RETURN(
      question.choice,
      Annotated(cost_models::CollectiveChoice::Parse(flags.algorithm), "--algorithm"));
  const bool bare = !absl::StrContains(flags.algorithm, '=') && flags.algorithm != "auto";
  if (bare) {  // nobody wants another algorithm than the one that is named
    ORRERY_RETURN_IF_ERROR(Annotate(
        cost_models::CollectiveChoice::Parse(absl::StrCat(flags.kind, "=", flags.algorithm))
            .status(),
        "--algorithm"));
  }
  if (flags.cluster.empty()) {
    return absl::InvalidArgumentError("--cluster is missing; wanted one, such as dgx-h100:2");
  }
  ORRERY_ASSIGN_OR_RETURN(question.cluster, cluster::ParseCluster(flags.cluster));
  // Transfers pass over wires alone: no library starts them.
  if (PlaysTransfers(flags)) question.cluster.topology.SetCollectiveProfile({});
  ORRERY_ASSIGN_OR_RETURN(
      question.group,
      Annotated(cluster::ParseDevices(flags.group, question.cluster.size()), "--group"));
  ORRERY_RETURN_IF_ERROR(
      Annotate(cost_models::CheckGroup(question.group, question.cluster.topology), "--group"));
  return question;
}

absl::StatusOr<Duration> Simulate(const Flags& flags, const Question& question,
                                  const ChosenCollective& chosen) {
  simulator::Program program;
  lowering::LinkResources links(question.cluster.topology, program);
  ORRERY_RETURN_IF_ERROR(lowering::AddTransfers(chosen.group, chosen.algorithm->rounds(chosen.call),
                                                chosen.call.size, links));
  ORRERY_ASSIGN_OR_RETURN(const std::unique_ptr<simulator::NetworkModel> network,
                          MakeNetwork(flags.network, program));
  ORRERY_ASSIGN_OR_RETURN(const simulator::Trace trace, simulator::RunEvents(program, *network));
  return trace.makespan;
}

absl::StatusOr<Answer> Play(const Flags& flags, const Question& question, Bytes size) {
  Answer answer;
  const cost_models::CollectiveRequest request = {
      .kind = question.kind, .size = size, .group = question.group, .only_busiest = true};
  const cluster::Topology& topology = question.cluster.topology;
  ORRERY_ASSIGN_OR_RETURN(answer.chosen,
                          question.measured.has_value()
                              ? question.measured->Choose(request, topology, question.choice)
                              : cost_models::ChooseCollective(request, topology, question.choice));
  const ChosenCollective& chosen = answer.chosen;
  answer.time = chosen.time;
  if (PlaysTransfers(flags)) {
    ORRERY_ASSIGN_OR_RETURN(answer.time, Simulate(flags, question, chosen));
  }
  const cost_models::CollectiveCall& call = chosen.call;
  answer.bound = cost_models::BandwidthBound(call.kind, call.size, chosen.group, call.ranks_a_node,
                                             {call.node_reduces, call.fabric_reduces}, topology);
  return answer;
}

// nccl-tests' bus bandwidth, in GB/s.
double BusBandwidth(const Question& question, Bytes size, Duration time) {
  const cost_models::Share share = cost_models::GetCollectiveKind(question.kind)
                                       .bus_share(static_cast<int64_t>(question.group.size()));
  if (time == Duration(0)) return 0;
  return static_cast<double>(size.count()) * static_cast<double>(share.numerator) /
         static_cast<double>(share.denominator) / time.seconds() * 1e-9;
}

void Print(const Flags& flags, const Question& question, Bytes size, const Answer& answer) {
  const cost_models::BusiestLink busiest =
      cost_models::BusiestLinkOf(answer.chosen.cost, answer.chosen.call.size);
  std::cout << flags.kind << " of " << size << " over " << question.group.size() << " devices of "
            << question.cluster.name << " by " << answer.chosen.algorithm->name;
  if (!answer.chosen.protocol.ideal()) std::cout << ", " << answer.chosen.protocol.name;
  std::cout << "\n";
  std::cout << absl::StrFormat("time             %s (%.9f s)\n", ToString(answer.time),
                               answer.time.seconds());
  if (answer.bound.has_value()) {
    std::cout << absl::StrFormat("bandwidth bound  %s (%.9f s)\n", ToString(*answer.bound),
                                 answer.bound->seconds());
  }
  std::cout << absl::StrFormat("bus bandwidth    %.3f GB/s\n",
                               BusBandwidth(question, size, answer.time));
  if (busiest.busy > Duration(0)) {
    std::cout << "busiest link     " << question.cluster.topology.LinkName(busiest.link)
              << ", busy for " << busiest.busy << "\n";
  }
}

// What a size takes, beside its bound.
struct SweepRow {
  Bytes size;
  Answer answer;
};

// Bus bandwidth over sizes, and the table.
Document SweepDocument(const Flags& flags, const Question& question,
                       const std::vector<SweepRow>& rows) {
  TableView table{.title = "Sizes",
                  .columns = {{"size", "bytes"},
                              {"algorithm"},
                              {"protocol"},
                              {"time", "s"},
                              {"bound", "s"},
                              {"bus bandwidth", "bytes/s"}}};
  Series found{.name = "bus bandwidth"}, most{.name = "bound"};
  for (const auto& [size, answer] : rows) {
    const double bandwidth = 1e9 * BusBandwidth(question, size, answer.time);
    const Cell bound = answer.bound.has_value() ? Cell(answer.bound->seconds()) : Cell();
    table.rows.push_back({size.count(), std::string(answer.chosen.algorithm->name),
                          std::string(answer.chosen.protocol.name), answer.time.seconds(), bound,
                          bandwidth});
    found.points.emplace_back(size.count(), bandwidth);
    found.texts.emplace_back(answer.chosen.algorithm->name);
    if (!answer.bound.has_value()) continue;
    most.points.emplace_back(size.count(), 1e9 * BusBandwidth(question, size, *answer.bound));
  }
  ChartView chart{.title = "Bus bandwidth, as nccl-tests count it",
                  .x = {"size", "bytes", true},
                  .y = {"bus bandwidth", "bytes/s"},
                  .panels = {{.series = {std::move(found)}}},
                  .name = "bandwidth"};
  if (!most.points.empty()) chart.panels.front().series.push_back(std::move(most));
  return {.title = absl::StrCat(flags.kind, " over ", question.group.size(), " devices of ",
                                question.cluster.name),
          .program = "collective",
          .command = flags.command,
          .sections = {
              {.id = "sizes", .title = "Sizes", .views = {std::move(chart), std::move(table)}}}};
}

absl::Status WriteReport(const Flags& flags, const Question& question,
                         const std::vector<SweepRow>& rows) {
  if (flags.report.empty() && flags.plot.empty()) return absl::OkStatus();
  const Document document = SweepDocument(flags, question, rows);
  if (!flags.report.empty()) ORRERY_RETURN_IF_ERROR(WritePage(document, flags.report));
  ORRERY_ASSIGN_OR_RETURN(const std::vector<PlotFile> plots, ReadPlots(flags.plot, kPlotViews));
  return WritePlots(
      plots, [&](size_t view) { return PictureOf(document.sections, kPlotViews[view].name); });
}

absl::Status Sweep(const Flags& flags, const Question& question) {
  ORRERY_ASSIGN_OR_RETURN(const std::vector<Bytes> sizes, ParseSizes(flags.sizes));
  std::vector<SweepRow> rows;
  std::cout << "bytes,algorithm,time_s,bound_s,bus_bandwidth_GBps\n";
  for (const Bytes size : sizes) {
    ORRERY_ASSIGN_OR_RETURN(const Answer answer, Play(flags, question, size));
    std::cout << size.count() << "," << answer.chosen.algorithm->name
              << absl::StrFormat(",%.9f,", answer.time.seconds())
              << (answer.bound.has_value() ? absl::StrFormat("%.9f", answer.bound->seconds()) : "")
              << absl::StrFormat(",%.3f\n", BusBandwidth(question, size, answer.time));
    rows.push_back({size, answer});
  }
  return WriteReport(flags, question, rows);
}

absl::Status Collective(const Flags& flags) {
  ORRERY_RETURN_IF_ERROR(MakeNetwork(flags.network, simulator::Program()).status());
  ORRERY_RETURN_IF_ERROR(ReadPlots(flags.plot, kPlotViews).status());
  const bool shows = !flags.report.empty() || !flags.plot.empty();
  if (shows && (flags.fit || !flags.cases.empty() || !flags.measurements.empty())) {
    return absl::InvalidArgumentError(
        "--report and --plot are of a collective; wanted them without --cases, --fit and "
        "--measurements");
  }
  if (!flags.cases.empty()) {
    const StopOnSignals signals;
    ORRERY_ASSIGN_OR_RETURN(const std::string csv,
                            PlayCollectiveCases(flags.cases, flags.network == "fluid"));
    std::cout << csv;
    return StoppedBefore("records");
  }
  if (flags.fit) {
    ORRERY_ASSIGN_OR_RETURN(const cost_models::MeasuredCurves curves, ReadSweeps(flags));
    std::cout << cost_models::PrintFits(curves);
    return absl::OkStatus();
  }
  if (!flags.measurements.empty()) {
    ORRERY_ASSIGN_OR_RETURN(const cost_models::MeasuredCurves curves,
                            cost_models::ReadMeasuredCurves(flags.measurements));
    ORRERY_ASSIGN_OR_RETURN(const std::string csv,
                            CompareWithMeasurements(curves, flags.every_point));
    std::cout << csv;
    return absl::OkStatus();
  }
  ORRERY_ASSIGN_OR_RETURN(const Question question, Read(flags));
  if (!flags.sizes.empty()) return Sweep(flags, question);
  ORRERY_ASSIGN_OR_RETURN(const Bytes size, Annotated(ParseBytes(flags.bytes), "--bytes"));
  if (size > Bytes(int64_t{1} << 50)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--bytes '", flags.bytes, "': wanted at most 1024TiB"));
  }
  ORRERY_ASSIGN_OR_RETURN(const Answer answer, Play(flags, question, size));
  Print(flags, question, size, answer);
  return WriteReport(flags, question, {{size, answer}});
}

std::string KindNames() {
  std::vector<absl::string_view> names;
  for (const cost_models::CollectiveKindInfo& info : cost_models::AllCollectiveKinds()) {
    names.push_back(info.name);
  }
  return ListWords(names, " or ");
}

std::string AlgorithmNames() {
  std::vector<absl::string_view> names = {"auto"};
  for (const cost_models::CollectiveAlgorithm* algorithm : cost_models::AllCollectiveAlgorithms()) {
    names.push_back(algorithm->name);
  }
  return ListWords(names, " or ");
}

int Main(int argc, char** argv) {
  Flags flags;
  std::string network;
  ProgramSpec spec{
      .usage = "collective --kind KIND --bytes BYTES --cluster C [flags]",
      .about = "Times one collective operation on a cluster.",
      .example = "build/bin/collective --kind all-reduce --bytes 64MiB --cluster dgx-h100:2",
      .options = po::options_description("Flags")};
  spec.options.add_options()("kind", po::value(&flags.kind),
                             absl::StrCat(KindNames(), " [all-reduce]").c_str())(
      "bytes", po::value(&flags.bytes), "size, as nccl-tests count it [64MiB]")(
      "sizes", po::value(&flags.sizes), "FIRST:LAST instead: doubling, as CSV")(
      "cluster", po::value(&flags.cluster), "uniform:16@200Gbps, dgx-h100:2, or a file")(
      "group", po::value(&flags.group),
      "devices, the root first: 0-7,16, or 0-56:8 for each eighth [all]")(
      "algorithm", po::value(&flags.algorithm),
      absl::StrCat(
          AlgorithmNames(),
          "; for one kind: all-reduce=ring [auto: the fastest of those that NCCL would take]")
          .c_str())("network", po::value(&network),
                    absl::StrCat(NetworkNames(), " [fluid]").c_str())(
      "every-transfer", po::bool_switch(&flags.every_transfer),
      "simulate every message, in place of the closed form")(
      "cost-model", po::value(&flags.cost_model),
      "measured:FILE: the times of sweeps as nccl-tests print them; measured:FILE,only=H100 takes "
      "those with H100 in their id or hw [roofline]")(
      "fit", po::bool_switch(&flags.fit),
      "print how well the lines meet the sweeps of measured:FILE")(
      "measurements", po::value(&flags.measurements),
      "compare the presets with the sweeps of a file (tests/data/measured_collectives.json), as "
      "CSV; FILE,only=H100 too")("every-point", po::bool_switch(&flags.every_point),
                                 "with --measurements: a line for each size")(
      "plot", po::value(&flags.plot)->composing(), PlotHelp(kPlotViews).c_str())(
      "report", po::value(&flags.report),
      "write a page with the bus bandwidth over sizes to this file (.html)")(
      "cases", po::value(&flags.cases),
      "play the records of a file (tests/data/collectives_astrasim.json) and print index, expected "
      "and found nanoseconds; each through the network of its backend, or all through --network "
      "fluid");
  flags.command = CommandText(argc, argv);
  return RunProgram(argc, argv, spec, [&] {
    flags.network = !network.empty() ? network : flags.cases.empty() ? "fluid" : "astra-aware";
    return Collective(flags);
  });
}

}  // namespace
}  // namespace orrery::tools

int main(int argc, char** argv) { return orrery::tools::Main(argc, argv); }
