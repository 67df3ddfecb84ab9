#include <span>

#include "cluster/level.h"
#include "cluster/topologies.h"

// Every device has a `port` to each of its two neighbours, and messages go the shorter way round;
// or with `one_way` to the next alone.
//
//     device0 - device1 - device2 - device3 - (device0)

namespace orrery::cluster {
namespace ring_cc {
namespace {

Level Line(const TopologyShape& shape) {
  return {.size = shape.devices,
          .speed = shape.port,
          .kind = shape.one_way ? LevelKind::kOneWayRing : LevelKind::kRing};
}

absl::Status Check(const TopologyShape& shape) {
  return shape.devices == 1 ? absl::OkStatus() : CheckRate("port", shape.port);
}

int64_t LinkCount(const TopologyShape& shape) {
  const Level line = Line(shape);
  return ProductLinkCount(std::span(&line, 1));
}

Link LinkAt(const TopologyShape& shape, LinkNumber link) {
  const Level line = Line(shape);
  return ProductLinkAt(std::span(&line, 1), link);
}

void AppendRoute(const TopologyShape& shape, DeviceId from, DeviceId to,
                 std::vector<LinkNumber>& route) {
  const Level line = Line(shape);
  AppendProductRoute(std::span(&line, 1), from, to, route);
}

PathInfo Path(const TopologyShape& shape, DeviceId from, DeviceId to) {
  const Level line = Line(shape);
  return ProductPath(std::span(&line, 1), from, to);
}

void AppendDestinations(const TopologyShape& shape, DeviceId from, std::vector<DeviceSet>& sets) {
  const Level line = Line(shape);
  AppendProductDestinations(std::span(&line, 1), from, sets);
}

// A ring is cut in two places; of a one-way ring, or of two devices, one of them leads out.
std::optional<Bandwidth> Bisection(const TopologyShape& shape) {
  if (shape.devices == 1) return Bandwidth(0);
  return Aggregate(shape.port.rate, shape.one_way || shape.devices == 2 ? 1 : 2);
}

}  // namespace
}  // namespace ring_cc

constinit const TopologyKind kRingTopology = {
    .name = "ring",
    .summary = "Every device is linked with its two neighbours, or one way with the next.",
    .parameters = "port one_way",
    .spelling = SizeSpelling::kDevices,
    .example = "ring:8@50GB/s,latency=500ns",
    .check = ring_cc::Check,
    .link_count = ring_cc::LinkCount,
    .link_at = ring_cc::LinkAt,
    .append_route = ring_cc::AppendRoute,
    .path = ring_cc::Path,
    .bisection = ring_cc::Bisection,
    .rotations =
        [](const TopologyShape& shape) { return std::vector<Rotation>{{.size = shape.devices}}; },
    .append_destinations = ring_cc::AppendDestinations,
};

}  // namespace orrery::cluster
