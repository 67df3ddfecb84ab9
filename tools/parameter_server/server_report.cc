#include "tools/parameter_server/server_report.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <numeric>
#include <span>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "support/number_text.h"
#include "support/numbers/quantile.h"
#include "tools/jitter/steps_report.h"

namespace orrery::tools {
namespace server_report_cc {
namespace {

namespace ps = simulator::parameter_server;
using Json = nlohmann::ordered_json;
using simulator::ResourceId;

constexpr std::array<absl::string_view, ps::kCauseCount> kCauses = {"push", "others", "server",
                                                                    "pull"};

std::string Line(absl::string_view name, absl::string_view text) {
  return absl::StrFormat("  %-24s %s\n", name, text);
}

std::string Seconds(double seconds) { return ToString(Duration::FromSeconds(seconds)); }

std::string Percent(double share) { return absl::StrFormat("%.1f %%", 100 * share); }

// Of all workers together.
struct Waits {
  double computing_s = 0, waiting_s = 0;
  std::array<double, ps::kCauseCount> by_cause = {};

  double all_s() const { return computing_s + waiting_s; }
};

Waits WaitsOf(const ps::Outcome& outcome) {
  Waits waits;
  for (const ps::WorkerFigures& worker : outcome.workers) {
    waits.computing_s += worker.computing.seconds();
    waits.waiting_s += worker.waiting().seconds();
    for (size_t cause = 0; cause < ps::kCauseCount; ++cause) {
      waits.by_cause[cause] += worker.waits[cause].seconds();
    }
  }
  return waits;
}

// Seconds from one step of a worker to its next, ascending.
std::vector<double> StepSeconds(const ps::Outcome& outcome) {
  std::vector<double> seconds;
  for (const Duration time : outcome.step_times) seconds.push_back(time.seconds());
  std::ranges::sort(seconds);
  return seconds;
}

// Of the steps of all workers, those whose gradients count.
double Share(const ServerRun& run) {
  return 1 - static_cast<double>(run.training.policy.backup) / run.training.workers;
}

// Gradients that count in a second: with backup workers those of the updates.
double StepsThatCount(const ServerRun& run) {
  const int32_t backup = run.training.policy.backup;
  if (backup == 0) return run.outcome.rate();
  return run.outcome.update_rate * (run.training.workers - backup);
}

std::string PlaceText(const ServerRun& run) {
  for (const search::ServerPlace& place : search::AllServerPlaces()) {
    if (place.kind == run.question.places.place) return std::string(place.summary);
  }
  return "";
}

double BytesOf(const ServerRun& run, Bytes ps::Key::*size) {
  double bytes = 0;
  for (const ps::Key& key : run.training.keys) {
    bytes += static_cast<double>((key.*size).count());
  }
  return bytes;
}

std::string SizeText(double bytes) { return ToString(Bytes(static_cast<int64_t>(bytes))); }

// Bytes that each server has of all gradients.
std::vector<Bytes> BytesOfServers(const ServerRun& run) {
  std::vector<Bytes> by_server(static_cast<size_t>(run.training.servers));
  for (const ps::Part& part : run.training.parts) {
    by_server[static_cast<size_t>(part.server)] += part.gradient;
  }
  return by_server;
}

// "169 MiB to 171 MiB each", of some servers.
std::string SpreadText(std::span<const Bytes> servers) {
  const auto [least, most] = std::ranges::minmax_element(servers);
  if (*most == Bytes(0)) return "nothing";
  const std::string low = ToString(*least), high = ToString(*most);
  return absl::StrCat(low == high ? high : absl::StrCat(low, " to ", high),
                      servers.size() == 1 ? "" : " each");
}

std::string ServersText(const ServerRun& run) {
  const std::vector<Bytes> bytes = BytesOfServers(run);
  const std::span<const Bytes> all(bytes);
  const std::string parts =
      absl::StrCat(run.training.keys.size(), " keys in ", run.training.parts.size(), " parts");
  const std::string memory = absl::StrCat("; memory at ", ToString(run.training.rates[0]));
  if (run.question.places.place != search::ServerPlace::Kind::kMixed) {
    return absl::StrCat("on ", PlaceText(run), "; ", parts, ", ", SpreadText(all), memory);
  }
  const auto beside = static_cast<size_t>(run.servers_with_workers);
  return absl::StrCat(beside, beside == 1 ? " with the workers of the host: " : " with workers: ",
                      SpreadText(all.first(beside)), "; ", all.size() - beside,
                      " on hosts of their own: ", SpreadText(all.subspan(beside)), "; ", parts,
                      memory);
}

// The name of where a server stands.
absl::string_view PlaceOf(const ServerRun& run, size_t server) {
  using Kind = search::ServerPlace::Kind;
  const bool beside = server < static_cast<size_t>(run.servers_with_workers);
  Kind kind = run.question.places.place;
  if (kind == Kind::kMixed) kind = beside ? Kind::kWorkers : Kind::kHosts;
  const auto all = search::AllServerPlaces();
  return std::ranges::find(all, kind, &search::ServerPlace::kind)->name;
}

std::string SyncLine(const ServerRun& run) {
  const ps::Policy& policy = run.training.policy;
  std::vector<std::string> parts = {SyncText(policy)};
  if (policy.backup > 0) {
    parts.push_back(absl::StrCat(policy.backup,
                                 policy.backup == 1 ? " backup worker, " : " backup workers, ",
                                 Percent(run.outcome.dropped), " of gradients dropped"));
  }
  if (run.training.adding.lanes > 1) {
    parts.push_back(absl::StrCat(run.training.adding.lanes, " workers of a host add up first"));
  }
  parts.push_back(policy.overlap ? absl::StrCat("beside backward and forward, by ",
                                                policy.order == ps::Order::kNeed ? "need" : "fifo")
                                 : "one after another");
  return absl::StrJoin(parts, "; ");
}

// Which it did, on average.
std::string StepsOfAWorker(const ServerRun& run) {
  int64_t steps = 0;
  for (const ps::WorkerFigures& worker : run.outcome.workers) steps += worker.steps;
  return ShortNumber(static_cast<double>(steps) / run.training.workers);
}

std::string StepLine(const ServerRun& run) {
  const std::vector<double> times = StepSeconds(run.outcome);
  if (times.empty()) return "one alone: no time between two";
  const double mean =
      std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(times.size());
  return absl::StrFormat("%s mean of a worker; p5 %s, p50 %s, p95 %s", Seconds(mean),
                         Seconds(QuantileOf(times, 0.05)), Seconds(QuantileOf(times, 0.5)),
                         Seconds(QuantileOf(times, 0.95)));
}

std::string LinkName(const ServerRun& run, ResourceId link) {
  return link.valid() ? run.training.network.resource(link).name : std::string("no link");
}

std::string ArithmeticLines(const ServerRun& run) {
  const ps::Arithmetic& of = run.arithmetic;
  std::string text =
      Line("by arithmetic",
           absl::StrFormat("compute %s, push %s, add and update %s, pull %s a step of all workers",
                           Seconds(of.compute_s), Seconds(of.push_s), Seconds(of.server_s),
                           Seconds(of.pull_s)));
  const double rate = StepsThatCount(run) / Share(run);
  if (run.training.policy.sync == ps::Sync::kBulk && run.training.policy.backup == 0) {
    const double step = rate > 0 ? run.training.workers / rate : 0;
    text += Line("", absl::StrFormat("the longest %s, all in a row %s; simulated %s",
                                     Seconds(of.least_s()), Seconds(of.sum_s()), Seconds(step)));
  } else if (run.training.policy.backup == 0) {
    text +=
        Line("", absl::StrFormat("at most %s steps/s of all workers in the long run; simulated %s",
                                 ShortNumber(of.most_rate), ShortNumber(rate)));
  }
  return text;
}

std::string WaitsLine(const ServerRun& run) {
  const Waits waits = WaitsOf(run.outcome);
  if (waits.all_s() <= 0) return "nothing was measured";
  std::vector<std::string> parts;
  for (const size_t cause : {size_t{3}, size_t{0}, size_t{1}, size_t{2}}) {
    parts.push_back(
        absl::StrCat("for ", kCauses[cause], " ", Percent(waits.by_cause[cause] / waits.all_s())));
  }
  return absl::StrCat(Percent(waits.waiting_s / waits.all_s()),
                      " of a worker's time: ", absl::StrJoin(parts, ", "));
}

// "0: 12.0 %, 1: 60.1 %, …, 3: 2.0 %", of the steps.
std::string LagsLine(const ServerRun& run) {
  const std::vector<int64_t>& lags = run.outcome.lags;
  const double all = static_cast<double>(std::accumulate(lags.begin(), lags.end(), int64_t{0}));
  constexpr size_t kMost = 8;
  std::vector<std::string> parts;
  for (size_t lag = 0; lag < lags.size(); ++lag) {
    if (lag >= kMost && lag + 1 < lags.size()) continue;
    if (lag >= kMost && lags.size() > kMost + 1) parts.push_back("…");
    parts.push_back(absl::StrCat(lag, ": ", Percent(static_cast<double>(lags[lag]) / all)));
  }
  std::string text = absl::StrCat("steps behind the slowest's, ", absl::StrJoin(parts, ", "));
  if (run.training.policy.sync != ps::Sync::kBulk) {
    absl::StrAppend(&text, "; a gradient is ", absl::StrFormat("%.1f", run.outcome.mean_delay),
                    " updates late, at most ", run.outcome.most_delay);
  }
  return text;
}

std::string LinksLine(const ServerRun& run) {
  const std::vector<double>& use = run.outcome.link_use;
  if (use.empty()) return "none";
  const auto most = std::ranges::max_element(use);
  const auto alike = std::ranges::count_if(use, [&](double each) { return each > *most - 1e-3; });
  return absl::StrCat(LinkName(run, ResourceId(static_cast<int32_t>(most - use.begin()))), " ",
                      Percent(*most), alike > 1 ? absl::StrCat(" and ", alike - 1, " alike") : "",
                      "; servers' memory ",
                      Percent(*std::ranges::max_element(run.outcome.server_use)));
}

Json WaitsJson(const ps::WorkerFigures& worker) {
  Json json;
  for (size_t cause = 0; cause < ps::kCauseCount; ++cause) {
    json[std::string(kCauses[cause]) + "_s"] = worker.waits[cause].seconds();
  }
  return json;
}

Json WorkersJson(const ServerRun& run) {
  Json workers = Json::array();
  for (size_t w = 0; w < run.outcome.workers.size(); ++w) {
    const ps::WorkerFigures& worker = run.outcome.workers[w];
    workers.push_back({{"worker", w},
                       {"steps", worker.steps},
                       {"skipped", worker.skipped},
                       {"steps_per_s", worker.rate},
                       {"computes_s", worker.computing.seconds()},
                       {"waits_s", WaitsJson(worker)}});
  }
  return workers;
}

Json ServersJson(const ServerRun& run) {
  Json servers = Json::array();
  const std::vector<Bytes> bytes = BytesOfServers(run);
  for (size_t s = 0; s < run.server_memory.size(); ++s) {
    servers.push_back({{"server", s},
                       {"place", std::string(PlaceOf(run, s))},
                       {"gradient_bytes", bytes[s].count()},
                       {"bytes_per_s", run.training.rates[s].bytes_per_second()},
                       {"busy", run.outcome.server_use[s]},
                       {"memory_bytes", run.server_memory[s].count()}});
  }
  return servers;
}

Json LinksJson(const ServerRun& run) {
  Json links = Json::array();
  for (int32_t l = 0; l < run.training.network.resource_count(); ++l) {
    links.push_back({{"link", run.training.network.resource(ResourceId(l)).name},
                     {"used", run.outcome.link_use[static_cast<size_t>(l)]}});
  }
  return links;
}

Json ArithmeticJson(const ServerRun& run) {
  const ps::Arithmetic& of = run.arithmetic;
  return {{"compute_s", of.compute_s},
          {"push_s", of.push_s},
          {"push_link", LinkName(run, of.push_link)},
          {"servers_s", of.server_s},
          {"pull_s", of.pull_s},
          {"pull_link", LinkName(run, of.pull_link)},
          {"least_s", of.least_s()},
          {"in_a_row_s", of.sum_s()},
          {"most_steps_per_s", of.most_rate}};
}

Json StepsJsonOf(const ServerRun& run) {
  const std::vector<double> times = StepSeconds(run.outcome);
  Json json = {{"count", times.size()}};
  for (const auto& [name, share] : {std::pair("p5_s", 0.05), std::pair("p50_s", 0.5),
                                    std::pair("p95_s", 0.95), std::pair("p99_s", 0.99)}) {
    json[name] = times.empty() ? Json() : Json(QuantileOf(times, share));
  }
  return json;
}

}  // namespace
}  // namespace server_report_cc

std::string ServerRunText(const ServerRun& run) {
  namespace cc = server_report_cc;
  const double steps = cc::StepsThatCount(run);
  const int32_t workers = run.training.workers, servers = run.training.servers;
  std::string text = absl::StrCat(
      run.title, "\n", run.plan, "\n\n",
      cc::Line(absl::StrCat(workers, workers == 1 ? " worker" : " workers"),
               absl::StrCat("computes ", ToString(run.step.time), " a step of ", run.samples,
                            run.samples == 1 ? " sample" : " samples", "; pushes ",
                            cc::SizeText(cc::BytesOf(run, &cc::ps::Key::gradient)), ", pulls ",
                            cc::SizeText(cc::BytesOf(run, &cc::ps::Key::parameter)))),
      cc::Line(absl::StrCat(servers, servers == 1 ? " server" : " servers"), cc::ServersText(run)),
      cc::Line("synchronized", cc::SyncLine(run)),
      cc::Line(
          "played",
          absl::StrCat(cc::StepsOfAWorker(run), " steps of each worker on average, seed ",
                       run.disturbed.disturbances.seed, ": ", DisturbancesText(run.disturbed))),
      "\n", cc::Line("step", cc::StepLine(run)),
      cc::Line("throughput",
               absl::StrCat(ShortNumber(steps * static_cast<double>(run.samples)), " samples/s")),
      cc::ArithmeticLines(run), cc::Line("waits", cc::WaitsLine(run)),
      cc::Line("staleness", cc::LagsLine(run)), cc::Line("busiest link", cc::LinksLine(run)),
      cc::Line("memory", absl::StrCat("a worker ", ToString(run.step.memory), ", a server ",
                                      ToString(*std::ranges::max_element(run.server_memory)))));
  for (const std::string& note : run.notes) text += cc::Line("note", note);
  return text;
}

std::string ServerRunJson(const ServerRun& run) {
  namespace cc = server_report_cc;
  cc::Json json;
  const double steps = cc::StepsThatCount(run);
  json["run"] = run.title;
  json["plan"] = run.plan;
  json["samples_per_s"] = steps * static_cast<double>(run.samples);
  json["steps_per_s"] = steps;
  json["step_times"] = cc::StepsJsonOf(run);
  json["sync"] = SyncText(run.training.policy);
  json["backup"] = run.training.policy.backup;
  json["workers_adding_up"] = run.training.adding.lanes;
  json["dropped"] = run.outcome.dropped;
  json["steps"] = run.training.steps;
  json["seed"] = run.disturbed.disturbances.seed;
  json["disturbed_by"] = DisturbancesText(run.disturbed);
  json["measured_from_s"] = run.outcome.warm.seconds();
  json["measured_to_s"] = run.outcome.end.seconds();
  json["staleness"] = {{"steps_by_lag", run.outcome.lags},
                       {"mean_updates", run.outcome.mean_delay},
                       {"most_updates", run.outcome.most_delay}};
  json["arithmetic"] = cc::ArithmeticJson(run);
  json["gradient_bytes"] = cc::BytesOf(run, &cc::ps::Key::gradient);
  json["parameter_bytes"] = cc::BytesOf(run, &cc::ps::Key::parameter);
  json["worker_memory_bytes"] = run.step.memory.count();
  json["keys"] = run.training.keys.size();
  json["parts"] = run.training.parts.size();
  json["workers"] = cc::WorkersJson(run);
  json["servers"] = cc::ServersJson(run);
  json["links"] = cc::LinksJson(run);
  json["notes"] = run.notes;
  return json.dump(1) + "\n";
}

}  // namespace orrery::tools
