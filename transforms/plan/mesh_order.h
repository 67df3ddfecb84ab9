#ifndef ORRERY_TRANSFORMS_PLAN_MESH_ORDER_H_
#define ORRERY_TRANSFORMS_PLAN_MESH_ORDER_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace orrery::transforms {

/// The axes of a mesh, the one whose neighbours have neighbouring ranks first: hp,dp,pp keeps
/// horizontal groups closest together, as Megatron does.
class MeshOrder {
 public:
  MeshOrder() = default;
  /// "pp,hp,dp", with cp and ep where they are wanted elsewhere than after hp; "tp" is hp. A
  /// literal of the program: CHECKs what Parse refuses.
  MeshOrder(const char* text);  // NOLINT(google-explicit-constructor): reads as the text it is

  /// InvalidArgument unless dp, hp and pp are named once each, cp and ep at most once, nothing
  /// else.
  static absl::StatusOr<MeshOrder> Parse(absl::string_view text);

  /// All five axes: cp and ep stand after hp where they were left out.
  std::vector<std::string> Full() const;
  /// As it was written, with "hp" for "tp".
  std::string ToString() const;

  friend bool operator==(const MeshOrder&, const MeshOrder&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const MeshOrder& order) {
    return H::combine(std::move(h), order.axes_);
  }

 private:
  std::vector<std::string> axes_ = {"hp", "dp", "pp"};
};

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_PLAN_MESH_ORDER_H_
