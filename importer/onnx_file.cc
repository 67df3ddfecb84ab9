#include "importer/onnx_file.h"

#include <fcntl.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <limits>

#include "absl/strings/str_cat.h"
#include "support/status.h"

namespace orrery::importer {
namespace {

namespace io = google::protobuf::io;

// Data of a tensor up to this size is kept: the kMaxValues numbers that TensorOf reads.
constexpr uint32_t kMaxDataBytes = 32768;

// The messages on the way from a model to its weights.
enum class Message { kModel, kGraph, kNode, kAttribute, kTensor };

struct Nested {
  Message outer;
  uint32_t field;
  Message inner;
};

// Field numbers of onnx.proto.
constexpr std::array<Nested, 5> kNested = {{{Message::kModel, 7, Message::kGraph},
                                            {Message::kGraph, 1, Message::kNode},
                                            {Message::kGraph, 5, Message::kTensor},
                                            {Message::kNode, 5, Message::kAttribute},
                                            {Message::kAttribute, 5, Message::kTensor}}};

// float_data, int32_data, string_data, int64_data, raw_data, double_data, uint64_data.
constexpr std::array<uint32_t, 7> kTensorData = {4, 5, 6, 7, 9, 10, 11};

bool IsTensorData(Message message, uint32_t field) {
  if (message != Message::kTensor) return false;
  for (const uint32_t data : kTensorData) {
    if (data == field) return true;
  }
  return false;
}

void AppendVarint(uint64_t value, std::string& out) {
  uint8_t buffer[10];
  const uint8_t* end = io::CodedOutputStream::WriteVarint64ToArray(value, buffer);
  out.append(reinterpret_cast<const char*>(buffer), static_cast<size_t>(end - buffer));
}

// Copies the wire format of a model, all but the weights.
class WeightSkipper {
 public:
  explicit WeightSkipper(io::CodedInputStream& in) : in_(in) {}

  bool Copy(Message message, uint32_t size, std::string& out) {
    const auto limit = in_.PushLimit(static_cast<int>(size));
    while (in_.BytesUntilLimit() > 0) {
      if (!CopyField(message, out)) return false;
    }
    in_.PopLimit(limit);
    return true;
  }

  const std::string& error() const { return error_; }

 private:
  bool Fail(absl::string_view what) {
    if (error_.empty()) error_ = absl::StrCat("byte ", in_.CurrentPosition(), ": ", what);
    return false;
  }

  bool CopyField(Message message, std::string& out) {
    const uint32_t tag = in_.ReadTag();
    const uint32_t field = tag >> 3;
    if (field == 0) return Fail("found no field of a message");
    switch (tag & 7) {
      case 0:
        AppendVarint(tag, out);
        return CopyVarint(out);
      case 1:
        AppendVarint(tag, out);
        return CopyBytes(8, out);
      case 2:
        return CopyLengthDelimited(message, tag, out);
      case 5:
        AppendVarint(tag, out);
        return CopyBytes(4, out);
      default:
        return Fail("found a field of a kind that ONNX has not");
    }
  }

  bool CopyVarint(std::string& out) {
    uint64_t value = 0;
    if (!in_.ReadVarint64(&value)) return Fail("found half a number");
    AppendVarint(value, out);
    return true;
  }

  bool CopyBytes(uint32_t size, std::string& out) {
    if (static_cast<int64_t>(size) > in_.BytesUntilLimit()) {
      return Fail(absl::StrCat("a field claims ", size, " bytes where ", in_.BytesUntilLimit(),
                               " are left"));
    }
    std::string bytes;
    if (!in_.ReadString(&bytes, static_cast<int>(size))) return Fail("cannot be read");
    out += bytes;
    return true;
  }

  bool CopyLengthDelimited(Message message, uint32_t tag, std::string& out) {
    uint32_t size = 0;
    if (!in_.ReadVarint32(&size)) return Fail("found half a length");
    if (static_cast<int64_t>(size) > in_.BytesUntilLimit()) return CopyBytes(size, out);  // says so
    if (IsTensorData(message, tag >> 3) && size > kMaxDataBytes) {
      return in_.Skip(static_cast<int>(size)) || Fail("cannot be skipped");
    }
    AppendVarint(tag, out);
    for (const Nested& nested : kNested) {
      if (nested.outer != message || nested.field != tag >> 3) continue;
      std::string inner;
      if (!Copy(nested.inner, size, inner)) return false;
      AppendVarint(inner.size(), out);
      out += inner;
      return true;
    }
    AppendVarint(size, out);
    return CopyBytes(size, out);
  }

  io::CodedInputStream& in_;
  std::string error_;
};

absl::Status Bad(const std::string& path, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", what));
}

// The size of a regular file.
absl::StatusOr<uint32_t> FileSize(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) return absl::NotFoundError(absl::StrCat(path, ": no such file"));
  if (fs::is_directory(status)) return Bad(path, "is a folder; wanted an ONNX file");
  if (!fs::is_regular_file(status)) return Bad(path, "is no regular file; wanted an ONNX file");
  const uintmax_t size = fs::file_size(path, error);
  if (error) return Bad(path, absl::StrCat("cannot be read: ", error.message()));
  if (size == 0) return Bad(path, "is empty; wanted an ONNX model");
  if (size > std::numeric_limits<int32_t>::max()) {
    return Bad(path,
               "is larger than 2 GiB; wanted an ONNX model, exported with its weights in a "
               "file of their own");
  }
  return static_cast<uint32_t>(size);
}

}  // namespace

absl::StatusOr<onnx::ModelProto> ReadOnnxFile(const std::string& path) {
  ORRERY_ASSIGN_OR_RETURN(const uint32_t size, FileSize(path));
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return Bad(path, absl::StrCat("cannot be read: ", std::strerror(errno)));
  io::FileInputStream stream(file);
  stream.SetCloseOnDelete(true);
  io::CodedInputStream in(&stream);
  in.SetTotalBytesLimit(std::numeric_limits<int32_t>::max());
  WeightSkipper skipper(in);
  std::string bytes;
  if (!skipper.Copy(Message::kModel, size, bytes)) {
    return Bad(path,
               absl::StrCat(skipper.error(), "; the file is cut short, damaged or no ONNX model"));
  }
  onnx::ModelProto model;
  if (!model.ParseFromString(bytes)) return Bad(path, "is damaged or no ONNX model");
  if (!model.has_graph()) return Bad(path, "holds no graph; wanted an ONNX model");
  return model;
}

}  // namespace orrery::importer
