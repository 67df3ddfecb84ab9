#include "importer/onnx/external_data.h"

#include <filesystem>
#include <fstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "importer/onnx/tensor_values.h"
#include "support/printable.h"
#include "support/status.h"

namespace orrery::importer {
namespace external_data_cc {
namespace {

struct Position {
  std::string location;
  int64_t offset = 0;
  int64_t length = -1;  // negative: not said
};

absl::StatusOr<Position> PositionOf(const onnx::TensorProto& tensor) {
  Position position;
  for (const onnx::StringStringEntryProto& entry : tensor.external_data()) {
    int64_t* number = entry.key() == "offset"   ? &position.offset
                      : entry.key() == "length" ? &position.length
                                                : nullptr;
    if (entry.key() == "location") position.location = entry.value();
    if (number == nullptr || (absl::SimpleAtoi(entry.value(), number) && *number >= 0)) continue;
    return absl::InvalidArgumentError(absl::StrCat("its external data has ", entry.key(), " ",
                                                   Show(entry.value()),
                                                   "; wanted a number of bytes"));
  }
  if (!position.location.empty()) return position;
  return absl::InvalidArgumentError("its external data names no file");
}

// Whether the path stays in the folder that it starts from.
bool StaysBelow(const std::filesystem::path& path) {
  if (path.is_absolute()) return false;
  for (const std::filesystem::path& part : path) {
    if (part == "..") return false;
  }
  return true;
}

absl::StatusOr<std::string> Read(const Position& position, const std::string& folder,
                                 int64_t size) {
  const auto bad = [&](absl::string_view what) {
    return absl::InvalidArgumentError(
        absl::StrCat("its external data ", Show(position.location), " ", what));
  };
  if (!StaysBelow(position.location)) return bad("is not below the folder of the model");
  if (position.length >= 0 && position.length != size) {
    return bad(absl::StrCat("has ", position.length, " bytes for it; its shape wants ", size));
  }
  const std::filesystem::path path = std::filesystem::path(folder) / position.location;
  std::error_code error;
  if (!std::filesystem::exists(path, error)) {
    return bad("is not there; wanted that file in the folder of the model");
  }
  if (!std::filesystem::is_regular_file(path, error)) {  // a pipe would wait
    return bad("is no regular file");
  }
  std::ifstream in(path, std::ios::binary);
  std::string raw(static_cast<size_t>(size), '\0');
  if (in.seekg(position.offset) && in.read(raw.data(), static_cast<std::streamsize>(size)))
    return raw;
  return bad(absl::StrCat("has no ", size, " bytes from byte ", position.offset, " on"));
}

}  // namespace
}  // namespace external_data_cc

absl::StatusOr<std::optional<ir::Tensor>> ExternalTensorOf(const onnx::TensorProto& tensor,
                                                           const ir::TensorType& type,
                                                           const std::string& folder) {
  const int64_t count = ir::ElementCount(type.dims);
  if (count > kMaxValues) return std::nullopt;
  ORRERY_ASSIGN_OR_RETURN(const external_data_cc::Position position,
                          external_data_cc::PositionOf(tensor));
  ORRERY_ASSIGN_OR_RETURN(std::string raw,
                          external_data_cc::Read(position, folder, count * ir::SizeOf(type.dtype)));
  onnx::TensorProto copy;
  copy.set_data_type(tensor.data_type());
  *copy.mutable_dims() = tensor.dims();
  copy.set_raw_data(std::move(raw));
  return TensorOf(copy, type);
}

}  // namespace orrery::importer
