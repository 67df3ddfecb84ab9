#include "tools/parameter_server/server_flags.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "support/names/near_names.h"
#include "support/status.h"

namespace orrery::tools {
namespace server_flags_cc {
namespace {

namespace po = boost::program_options;
using simulator::parameter_server::Order;
using simulator::parameter_server::Policy;
using simulator::parameter_server::Sync;

constexpr int64_t kMostServers = 1 << 16;
constexpr int64_t kMostBound = 1'000'000'000;

absl::Status Bad(absl::string_view flag, absl::string_view found, absl::string_view wanted) {
  return absl::InvalidArgumentError(absl::StrCat(flag, " ", found, ": wanted ", wanted));
}

// The flags but --update, with what each says.
std::array<std::pair<absl::string_view, const std::string*>, 9> Others(const ServerFlags& flags) {
  return {{{"--servers", &flags.servers},
           {"--server-place", &flags.place},
           {"--server-rate", &flags.rate},
           {"--sync", &flags.sync},
           {"--backup", &flags.backup},
           {"--ps-order", &flags.order},
           {"--ps-part", &flags.part},
           {"--ps-overlap", &flags.overlap},
           {"--ps-local", &flags.local}}};
}

absl::Status ReadServers(const std::string& text, search::PlaceQuestion& places) {
  int64_t servers = 1;
  if (!text.empty() &&
      (!absl::SimpleAtoi(text, &servers) || servers < 1 || servers > kMostServers)) {
    const bool mixed = places.place == search::ServerPlace::Kind::kMixed;
    return Bad(
        "--servers", text,
        absl::StrCat("1 to ", kMostServers, mixed ? " on hosts of their own" : "", ", such as 8",
                     mixed ? "; with the workers alone they are --server-place workers" : ""));
  }
  places.servers = static_cast<int32_t>(servers);
  return absl::OkStatus();
}

absl::Status ReadPlaces(const ServerFlags& flags, search::PlaceQuestion& places) {
  if (!flags.place.empty()) {
    const auto all = search::AllServerPlaces();
    const auto found = std::ranges::find(all, flags.place, &search::ServerPlace::name);
    if (found == all.end()) {
      return Bad("--server-place", flags.place, "hosts, devices, workers or mixed");
    }
    places.place = found->kind;
  }
  ORRERY_RETURN_IF_ERROR(ReadServers(flags.servers, places));
  if (flags.rate.empty()) return absl::OkStatus();
  ORRERY_ASSIGN_OR_RETURN(places.rate, Annotated(ParseBandwidth(flags.rate), "--server-rate"));
  if (places.rate > Bandwidth(0)) return absl::OkStatus();
  return Bad("--server-rate", flags.rate, "more than 0, such as 200GB/s");
}

absl::Status ReadSync(absl::string_view text, Policy& policy) {
  constexpr absl::string_view kWanted = "bsp, asp, or ssp and its bound, as in ssp:3";
  if (text == "bsp") return absl::OkStatus();
  if (text == "asp") {
    policy.sync = Sync::kAsync;
    return absl::OkStatus();
  }
  absl::string_view bound = text;
  int64_t steps = 0;
  if (!absl::ConsumePrefix(&bound, "ssp:") || !absl::SimpleAtoi(bound, &steps)) {
    return Bad("--sync", text, kWanted);
  }
  if (steps < 0 || steps > kMostBound) {
    return Bad("--sync", text, absl::StrCat("a bound of 0 to ", kMostBound, " steps"));
  }
  policy.sync = Sync::kStale;
  policy.bound = static_cast<int32_t>(steps);
  return absl::OkStatus();
}

absl::Status ReadBackup(const std::string& text, int64_t workers, Policy& policy) {
  int64_t backup = 0;
  if (!absl::SimpleAtoi(text, &backup) || backup < 0) {
    return Bad("--backup", text, "0 or more workers that are not waited for, such as 2");
  }
  if (backup >= workers) {
    return Bad("--backup", text,
               absl::StrCat("fewer than the ", workers, workers == 1 ? " worker" : " workers",
                            " of --dp"));
  }
  if (backup > 0 && policy.sync != Sync::kBulk) {
    return Bad("--backup", text, "it with --sync bsp, as nobody else waits for all workers");
  }
  policy.backup = static_cast<int32_t>(backup);
  return absl::OkStatus();
}

absl::Status ReadLocal(const std::string& text, ServerQuestion& question) {
  if (text != "add" && text != "none") return Bad("--ps-local", text, "add or none");
  question.places.adds_up = text == "add";
  if (!question.places.adds_up) return absl::OkStatus();
  if (question.policy.sync != Sync::kBulk) {
    return Bad("--ps-local", text,
               "it with --sync bsp, as else each gradient is an update by itself");
  }
  if (question.policy.backup == 0) return absl::OkStatus();
  return Bad("--ps-local", text, "it without --backup, as nobody is left out of the sum of a host");
}

absl::Status ReadPolicy(const ServerFlags& flags, int64_t workers, ServerQuestion& question) {
  Policy& policy = question.policy;
  if (!flags.sync.empty()) ORRERY_RETURN_IF_ERROR(ReadSync(flags.sync, policy));
  if (!flags.backup.empty()) ORRERY_RETURN_IF_ERROR(ReadBackup(flags.backup, workers, policy));
  if (!flags.order.empty()) {
    if (flags.order != "need" && flags.order != "fifo") {
      return Bad("--ps-order", flags.order, "need or fifo");
    }
    policy.order = flags.order == "need" ? Order::kNeed : Order::kFifo;
  }
  if (!flags.overlap.empty()) {
    if (flags.overlap != "layers" && flags.overlap != "none") {
      return Bad("--ps-overlap", flags.overlap, "layers or none");
    }
    policy.overlap = flags.overlap == "layers";
  }
  if (!flags.local.empty()) ORRERY_RETURN_IF_ERROR(ReadLocal(flags.local, question));
  if (flags.part.empty()) return absl::OkStatus();
  question.part = Bytes(0);
  if (flags.part == "none") return absl::OkStatus();
  ORRERY_ASSIGN_OR_RETURN(question.part, Annotated(ParseBytes(flags.part), "--ps-part"));
  constexpr Bytes kLeast(4096);
  if (question.part >= kLeast) return absl::OkStatus();
  return Bad("--ps-part", flags.part, "at least 4KiB, such as 4MiB, or none");
}

}  // namespace
}  // namespace server_flags_cc

void AddServerFlags(boost::program_options::options_description& options, ServerFlags& flags) {
  using server_flags_cc::po::value;
  options.add_options()(
      "update", value(&flags.update),
      "how gradients become parameters: all-reduce among the workers, or ps, parameter servers, "
      "which --dp workers push to and pull from (docs/parameter_servers.md) [all-reduce]")(
      "servers", value(&flags.servers), "parameter servers, over which keys are spread [1]")(
      "server-place", value(&flags.place),
      "where they run: hosts or devices of their own behind those of the workers, the hosts of the "
      "workers, or mixed: one on each of these beside --servers on hosts of their own [hosts]")(
      "server-rate", value(&flags.rate),
      "at which a server moves bytes in its memory to add and update, "
      "200GB/s [that of the host's memory, or the device's]")(
      "sync", value(&flags.sync),
      "bsp: an update of all gradients, which all wait for; asp: each by itself; ssp:3: likewise, "
      "but nobody gets more than 3 steps ahead of the slowest [bsp]")(
      "backup", value(&flags.backup),
      "of bsp, so many workers are not waited for, and what comes late is dropped [0]")(
      "ps-order", value(&flags.order),
      "which message of a connection goes first: need, what forward needs first, or fifo [need]")(
      "ps-part", value(&flags.part),
      "keys are cut into parts of at most so many bytes, or none "
      "[4MiB]")(
      "ps-overlap", value(&flags.overlap),
      "layers: pushes run beside backward and pulls beside forward; none: one after another "
      "[layers]")(
      "ps-local", value(&flags.local),
      "add: workers of one host add up their gradients first, push one sum and pull one copy; "
      "none: each pushes and pulls by itself [none]");
}

absl::StatusOr<ServerQuestion> ReadServerFlags(const ServerFlags& flags, int64_t workers) {
  using server_flags_cc::Bad;
  if (!flags.update.empty() && flags.update != "ps" && flags.update != "all-reduce") {
    return Bad("--update", flags.update, "all-reduce or ps");
  }
  if (!flags.ps()) {
    for (const auto& [flag, text] : server_flags_cc::Others(flags)) {
      if (!text->empty()) return Bad(flag, *text, "it beside --update ps");
    }
    return ServerQuestion();
  }
  ServerQuestion question;
  question.places.workers = static_cast<int32_t>(workers);
  ORRERY_RETURN_IF_ERROR(server_flags_cc::ReadPlaces(flags, question.places));
  ORRERY_RETURN_IF_ERROR(server_flags_cc::ReadPolicy(flags, workers, question));
  return question;
}

Listing ServerPlaceListing() {
  return {.flag = "list-server-places",
          .about = "names where parameter servers run",
          .of = {"server-place"},
          .things = [] {
            std::vector<NamedThing> things;
            for (const search::ServerPlace& place : search::AllServerPlaces()) {
              things.push_back({std::string(place.name), std::string(place.summary)});
            }
            return things;
          }};
}

std::string SyncText(const simulator::parameter_server::Policy& policy) {
  using simulator::parameter_server::Sync;
  switch (policy.sync) {
    case Sync::kBulk:
      return "bsp";
    case Sync::kAsync:
      return "asp";
    case Sync::kStale:
      return absl::StrCat("ssp:", policy.bound);
  }
  return "";
}

}  // namespace orrery::tools
