#ifndef ORRERY_TOOLS_TEAM_TEAM_H_
#define ORRERY_TOOLS_TEAM_TEAM_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

// Processes that were started together, and messages between them: all that a search wants of MPI.

namespace orrery::tools {

/// Texts from one process to another, in the order in which it sent them. One thread at a time.
class Team {
 public:
  virtual ~Team() = default;
  /// From 0 to size() - 1.
  virtual int32_t rank() const = 0;
  virtual int32_t size() const = 0;
  /// Sends a text that is not empty; returns once it may be forgotten.
  virtual void Send(int32_t to, const std::string& text) = 0;

  /// A text and who sent it.
  struct Message {
    int32_t from = -1;
    std::string text = {};  // empty: none was there
  };
  /// The next message, from whomever; waits `most_ms` for one, in sleep.
  virtual Message Receive(int32_t most_ms) = 0;

  /// Ends all processes now, this one with `code`.
  virtual void Abort(int code) = 0;
};

/// The team that mpirun has started this process in; null where it has not, or in no company. What
/// asks it is the environment: MPI is not even loaded before. An error where this build has none.
absl::StatusOr<std::unique_ptr<Team>> FindTeam();

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_TEAM_TEAM_H_
