#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "simulator/parameter_server/hosts.h"
#include "simulator/traces/event_text.h"
#include "support/json_text.h"
#include "tools/parameter_server/server_report.h"

namespace orrery::tools {
namespace server_trace_cc {
namespace {

namespace ps = simulator::parameter_server;
using ps::Span;
using simulator::EventText;
using simulator::PositionText;

// Which worker of its host pushes and pulls the part of a message.
int32_t LaneOf(const ServerRun& run, const Span& span) {
  const ps::Hosts hosts(run.training);
  const int32_t lane = run.training.parts[static_cast<size_t>(span.what)].lane;
  return hosts.AgentOf(span.worker, lane) - hosts.FirstOf(span.worker);
}

// Workers come first, then servers; a worker has a thread for its kernels, one a server for what it
// pushes there and one for what it pulls; where workers of a host add up, likewise one for each of
// these.
std::pair<int32_t, int32_t> PlaceOf(const ServerRun& run, const Span& span) {
  switch (span.kind) {
    case Span::Kind::kCompute:
      return {span.worker, 0};
    case Span::Kind::kPush:
      return {span.worker, 1 + span.server};
    case Span::Kind::kPull:
      return {span.worker, 1 + run.training.servers + span.server};
    case Span::Kind::kSum:
    case Span::Kind::kUpdate:
      break;
    case Span::Kind::kAddUp:
      return {span.worker, 1 + 2 * run.training.servers + LaneOf(run, span)};
    case Span::Kind::kSpread:
      return {span.worker,
              1 + 2 * run.training.servers + run.training.adding.lanes + LaneOf(run, span)};
  }
  return {run.training.workers + span.server, 0};
}

std::string NameOf(const ServerRun& run, const Span& span) {
  const auto what = static_cast<size_t>(span.what);
  if (span.kind == Span::Kind::kCompute) return run.training.segments[what].name;
  const ps::Part& part = run.training.parts[what];
  const std::string& key = run.training.keys[static_cast<size_t>(part.key)].name;
  switch (span.kind) {
    case Span::Kind::kPush:
      return absl::StrCat("push ", key);
    case Span::Kind::kPull:
      return absl::StrCat("pull ", key);
    case Span::Kind::kSum:
      return absl::StrCat("add ", key);
    case Span::Kind::kAddUp:
      return absl::StrCat("to its host's sum ", key);
    case Span::Kind::kSpread:
      return absl::StrCat("from its host ", key);
    default:
      return absl::StrCat("update ", key);
  }
}

absl::string_view CategoryOf(Span::Kind kind) {
  constexpr absl::string_view kNames[] = {"compute", "push",   "pull",  "add",
                                          "update",  "add up", "spread"};
  return kNames[static_cast<size_t>(kind)];
}

int64_t BytesOf(const ServerRun& run, const Span& span) {
  const ps::Part& part = run.training.parts[static_cast<size_t>(span.what)];
  const bool comes = span.kind == Span::Kind::kPull || span.kind == Span::Kind::kSpread;
  return (comes ? part.parameter : part.gradient).count();
}

void NameHostThreads(const ServerRun& run, int32_t worker, EventText& events) {
  const ps::Hosts hosts(run.training);
  const int32_t first = hosts.FirstOf(worker), size = hosts.SizeOf(worker);
  for (int32_t i = 0; i < size; ++i) {
    if (first + i == worker) continue;
    const int32_t to = 1 + 2 * run.training.servers + i, from = to + run.training.adding.lanes;
    events.Thread(PositionText(worker, to), absl::StrCat("to worker ", first + i), to);
    events.Thread(PositionText(worker, from), absl::StrCat("from worker ", first + i), from);
  }
}

void NameAll(const ServerRun& run, EventText& events) {
  const int32_t servers = run.training.servers;
  for (int32_t w = 0; w < run.training.workers; ++w) {
    events.Process(w, absl::StrCat("worker ", w));
    events.Thread(PositionText(w, 0), "compute", 0);
    for (int32_t s = 0; s < servers; ++s) {
      events.Thread(PositionText(w, 1 + s), absl::StrCat("push to server ", s), 1 + s);
      events.Thread(PositionText(w, 1 + servers + s), absl::StrCat("pull from server ", s),
                    1 + servers + s);
    }
    NameHostThreads(run, w, events);
  }
  for (int32_t s = 0; s < servers; ++s) {
    events.Process(run.training.workers + s, absl::StrCat("server ", s));
    events.Thread(PositionText(run.training.workers + s, 0), "add and update", 0);
  }
}

}  // namespace
}  // namespace server_trace_cc

void WriteServerTrace(const ServerRun& run, std::ostream& out) {
  namespace cc = server_trace_cc;
  using cc::Span;
  std::vector<Span> spans = run.outcome.spans;
  std::ranges::stable_sort(
      spans, {}, [&](const Span& span) { return std::pair(cc::PlaceOf(run, span), span.start); });
  cc::EventText events(out);
  events.Begin("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[");
  cc::NameAll(run, events);
  for (const Span& span : spans) {
    if (span.end <= span.start) continue;
    const auto [pid, tid] = cc::PlaceOf(run, span);
    const std::string what = span.kind == Span::Kind::kCompute
                                 ? ""
                                 : absl::StrCat(",\"bytes\":", cc::BytesOf(run, span));
    events.Event("{\"name\":", JsonString(cc::NameOf(run, span)), ",\"cat\":\"",
                 cc::CategoryOf(span.kind), "\",\"ph\":\"X\",", cc::PositionText(pid, tid), ",",
                 simulator::SpanText(span.start, span.end), ",\"args\":{\"step\":", span.step,
                 ",\"worker\":", span.worker, what, "}}");
  }
  events.End("\n]}\n");
}

}  // namespace orrery::tools
