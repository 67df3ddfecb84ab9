#ifndef ORRERY_SIMULATOR_PARAMETER_SERVER_CONNECTIONS_H_
#define ORRERY_SIMULATOR_PARAMETER_SERVER_CONNECTIONS_H_

#include <cstdint>
#include <vector>

#include "simulator/parameter_server/channels.h"
#include "simulator/parameter_server/training.h"

namespace orrery::simulator::parameter_server {

/// The connections of a training, as Channels number them: from each worker to each server, back,
/// and from each worker to each of its host where these add up.
class Connections {
 public:
  /// `training` must outlive this.
  explicit Connections(const Training& training);

  /// Who is at the ends of one: a worker, the one that pushes and pulls for its host, a server.
  struct Ends {
    int32_t worker = 0;
    int32_t agent = 0;
    int32_t server = 0;
  };
  /// That which a message takes.
  int32_t Of(Message::Way way, const Ends& ends) const;

  /// By number.
  const std::vector<const Route*>& routes() const { return routes_; }
  const Route& route(int32_t connection) const { return *routes_[static_cast<size_t>(connection)]; }
  /// By number, as much as the server at one end has of the keys beside the one that has most;
  /// empty: all are alike.
  std::vector<double> Weights() const;

 private:
  const Training& training_;
  const int32_t workers_, servers_, lanes_;
  std::vector<const Route*> routes_;
};

}  // namespace orrery::simulator::parameter_server

#endif  // ORRERY_SIMULATOR_PARAMETER_SERVER_CONNECTIONS_H_
