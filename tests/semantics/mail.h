#ifndef ORRERY_TESTS_SEMANTICS_MAIL_H_
#define ORRERY_TESTS_SEMANTICS_MAIL_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ir/mesh.h"
#include "ir/tensor.h"
#include "ir/tensor_parts.h"
#include "ir/type.h"
#include "support/check.h"

// What stages of a pipeline send each other, rank by rank, until it is received.

namespace orrery::semantics {

/// Ranks of a stage, and how they hold a value.
struct MailEnd {
  const ir::TensorType& type;
  const ir::Mesh& mesh;
  const std::vector<int64_t>& ranks;
};

class Mail {
 public:
  /// A value on its way, of all ranks of its stage.
  struct Message {
    size_t from, to;  // stages
    std::string tag;
    int64_t microbatch;
    friend auto operator<=>(const Message&, const Message&) = default;
  };

  /// What rank number `position` of the sender has of it.
  void Send(const Message& message, size_t position, const ir::Tensor& part) {
    const bool fresh = parts_[message].emplace(position, part).second;
    ORRERY_CHECK(fresh) << message.tag << " is sent twice";
  }

  /// That part, to the rank of the same number.
  ir::Tensor Receive(const Message& message, size_t position) {
    const auto found = parts_.find(message);
    ORRERY_CHECK(found != parts_.end()) << message.tag << " is not there";
    auto part = found->second.extract(position);
    ORRERY_CHECK(!part.empty()) << message.tag << " is not there";
    if (found->second.empty()) parts_.erase(found);
    return std::move(part.mapped());
  }

  /// What rank number `position` has of it where the ranks of the two stages are not alike: the
  /// parts of all put together, and cut anew. The last rank takes it out.
  ir::Tensor ReceiveAcross(const Message& message, size_t position, const MailEnd& from,
                           const MailEnd& to, double& disagreement) {
    const auto found = parts_.find(message);
    ORRERY_CHECK(found != parts_.end()) << message.tag << " is not there";
    std::vector<ir::Tensor> parts;
    for (const auto& [of_position, part] : found->second) parts.push_back(part);
    ORRERY_CHECK(parts.size() == from.ranks.size()) << message.tag << " is not sent by all";
    const ir::Tensor whole = ir::Gather(parts, from.type, from.mesh, from.ranks, disagreement);
    if (position + 1 == to.ranks.size()) parts_.erase(found);
    return ir::Scatter(whole, to.type, to.mesh, to.ranks[position]);
  }

  /// Parts that nobody has received.
  int left() const {
    size_t left = 0;
    for (const auto& [message, parts] : parts_) left += parts.size();
    return static_cast<int>(left);
  }

 private:
  std::map<Message, std::map<size_t, ir::Tensor>> parts_;  // by rank of the sender
};

}  // namespace orrery::semantics

#endif  // ORRERY_TESTS_SEMANTICS_MAIL_H_
