#ifndef ORRERY_TOOLS_PARAMETER_SERVER_SERVER_FLAGS_H_
#define ORRERY_TOOLS_PARAMETER_SERVER_SERVER_FLAGS_H_

#include <boost/program_options.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "search/parameter_server/server_places.h"
#include "simulator/parameter_server/training.h"
#include "tools/listings.h"

// The flags of parameter servers: --update ps and what belongs to it.

namespace orrery::tools {

/// The flags as they were given, by name; empty: not given.
struct ServerFlags {
  std::string update = {}, servers = {}, place = {}, rate = {}, sync = {}, backup = {}, order = {},
              part = {}, overlap = {}, local = {};

  /// Whether gradients go to parameter servers; else they are reduced among workers.
  bool ps() const { return update == "ps"; }
};

/// Adds them to the flags of a program.
void AddServerFlags(boost::program_options::options_description& options, ServerFlags& flags);

/// What they ask of `workers` workers.
struct ServerQuestion {
  search::PlaceQuestion places = {};
  simulator::parameter_server::Policy policy = {};
  Bytes part = Bytes(4 << 20);  // a key is cut into parts of at most so many; 0: not at all
};

/// Reads them. InvalidArgument names the flag: where it is none of its values, where there is no
/// server, a bound is below zero, or no worker is left beside backups. Without --update ps an
/// error where any of them was given.
absl::StatusOr<ServerQuestion> ReadServerFlags(const ServerFlags& flags, int64_t workers);

/// --list-server-places: where servers run.
Listing ServerPlaceListing();

/// "bsp", "asp", "ssp:3".
std::string SyncText(const simulator::parameter_server::Policy& policy);

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_PARAMETER_SERVER_SERVER_FLAGS_H_
