#include "cluster/file/file_position.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "support/check.h"

namespace orrery::cluster {

FilePosition::FilePosition(std::string file, const google::protobuf::Descriptor* message,
                           const Tree* tree)
    : file_(std::move(file)), message_(message), tree_(tree) {}

FilePosition FilePosition::At(absl::string_view name, int index) const {
  ORRERY_CHECK(message_ != nullptr) << path_ << " has no field " << name;
  const auto* field = message_->FindFieldByName(std::string(name));
  ORRERY_CHECK(field != nullptr) << message_->full_name() << " has no field " << name;
  FilePosition position = *this;
  absl::StrAppend(&position.path_, position.path_.empty() ? "" : ".", name);
  if (index >= 0) absl::StrAppend(&position.path_, "[", index, "]");
  position.message_ = field->message_type();
  position.tree_ = nullptr;
  if (tree_ == nullptr) return position;
  const int in_file = field->is_repeated() && index < 0 ? 0 : index;
  const int line = tree_->GetLocation(field, in_file).line;
  if (line >= 0) position.line_ = line;
  const bool is_one = !field->is_repeated() || index >= 0;
  if (position.message_ != nullptr && is_one)
    position.tree_ = tree_->GetTreeForNested(field, in_file);
  return position;
}

absl::Status FilePosition::Error(absl::string_view message) const {
  return absl::InvalidArgumentError(absl::StrCat(file_,
                                                 line_ >= 0 ? absl::StrCat(":", line_ + 1) : "",
                                                 ": ", path_, path_.empty() ? "" : ": ", message));
}

std::string Quotable(absl::string_view text) {
  constexpr size_t kMost = 300;
  std::string quotable;
  for (const char c : text.substr(0, kMost)) {
    const auto byte = static_cast<unsigned char>(c);
    if (absl::ascii_isprint(byte)) {
      quotable.push_back(c);
    } else {
      absl::StrAppend(&quotable, "\\x", absl::Hex(byte, absl::kZeroPad2));
    }
  }
  return absl::StrCat(quotable, text.size() > kMost ? "..." : "");
}

}  // namespace orrery::cluster
