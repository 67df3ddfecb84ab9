#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>

#include "support/module.h"
#include "tools/team/team.h"

// The one file that knows MPI: the module liborrery_mpi.so.

namespace orrery::tools {
namespace mpi_team_cc {
namespace {

constexpr int kTag = 1;

class MpiTeam : public Team {
 public:
  MpiTeam() {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
  }
  ~MpiTeam() override { MPI_Finalize(); }

  int32_t rank() const override { return rank_; }
  int32_t size() const override { return size_; }

  void Send(int32_t to, const std::string& text) override {
    MPI_Send(text.data(), static_cast<int>(text.size()), MPI_CHAR, to, kTag, MPI_COMM_WORLD);
  }

  // A blocking receive of Open MPI takes a whole core to wait, which candidates need.
  Message Receive(int32_t most_ms) override {
    using Clock = std::chrono::steady_clock;
    const auto begin = Clock::now();
    auto pause = std::chrono::microseconds(1);
    for (;;) {
      int there = 0;
      MPI_Status status;
      MPI_Iprobe(MPI_ANY_SOURCE, kTag, MPI_COMM_WORLD, &there, &status);
      if (there != 0) return Take(status);
      if (Clock::now() - begin > std::chrono::milliseconds(most_ms)) return {};
      std::this_thread::sleep_for(pause);
      pause = std::min(2 * pause, std::chrono::microseconds(500));
    }
  }

  void Abort(int code) override { MPI_Abort(MPI_COMM_WORLD, code); }

 private:
  Message Take(MPI_Status& status) {
    int size = 0;
    MPI_Get_count(&status, MPI_CHAR, &size);
    Message message{.from = status.MPI_SOURCE};
    message.text.resize(static_cast<size_t>(size));
    MPI_Recv(message.text.data(), size, MPI_CHAR, status.MPI_SOURCE, kTag, MPI_COMM_WORLD,
             MPI_STATUS_IGNORE);
    return message;
  }

  int rank_ = 0, size_ = 1;
};

absl::StatusOr<std::unique_ptr<Team>> Start() {
  int provided = 0;
  // One thread at a time, not always the same one.
  if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided) != MPI_SUCCESS ||
      provided < MPI_THREAD_SERIALIZED) {
    return absl::FailedPreconditionError("MPI cannot be used by threads in turn; wanted so");
  }
  return std::make_unique<MpiTeam>();
}

}  // namespace
}  // namespace mpi_team_cc
}  // namespace orrery::tools

ORRERY_MODULE_ENTRY(mpi, orrery::tools::mpi_team_cc::Start)
