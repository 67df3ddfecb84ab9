#include "importer/external_data.h"

#include <filesystem>
#include <fstream>

#include "absl/strings/numbers.h"
#include "importer/tensor_values.h"

namespace orrery::importer {
namespace {

struct Place {
  std::string location;
  int64_t offset = 0;
};

std::optional<Place> PlaceOf(const onnx::TensorProto& tensor) {
  Place place;
  for (const onnx::StringStringEntryProto& entry : tensor.external_data()) {
    if (entry.key() == "location") place.location = entry.value();
    if (entry.key() == "offset" && !absl::SimpleAtoi(entry.value(), &place.offset)) {
      return std::nullopt;
    }
  }
  if (place.location.empty() || place.offset < 0) return std::nullopt;
  return place;
}

// Whether the path stays in the folder that it starts from.
bool StaysBelow(const std::filesystem::path& path) {
  if (path.is_absolute()) return false;
  for (const std::filesystem::path& part : path) {
    if (part == "..") return false;
  }
  return true;
}

}  // namespace

absl::StatusOr<std::optional<ir::Tensor>> ExternalTensorOf(const onnx::TensorProto& tensor,
                                                           const ir::TensorType& type,
                                                           const std::string& folder) {
  const int64_t count = ir::ElementCount(type.dims);
  const std::optional<Place> place = PlaceOf(tensor);
  if (count > kMaxValues || !place.has_value() || !StaysBelow(place->location)) {
    return std::nullopt;
  }
  const std::filesystem::path path = std::filesystem::path(folder) / place->location;
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return std::nullopt;  // a pipe would wait
  std::ifstream in(path, std::ios::binary);
  std::string raw(static_cast<size_t>(count * ir::SizeOf(type.dtype)), '\0');
  if (!in.seekg(place->offset) || !in.read(raw.data(), static_cast<std::streamsize>(raw.size()))) {
    return std::nullopt;
  }
  onnx::TensorProto copy;
  copy.set_data_type(tensor.data_type());
  *copy.mutable_dims() = tensor.dims();
  copy.set_raw_data(std::move(raw));
  return TensorOf(copy, type);
}

}  // namespace orrery::importer
