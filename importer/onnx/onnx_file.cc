#include "importer/onnx/onnx_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "support/status.h"

namespace orrery::importer {
namespace onnx_file_cc {
namespace {

// Data of a tensor up to this size is kept: the kMaxValues numbers that TensorOf reads.
constexpr uint64_t kMaxDataBytes = 32768;

// All that is kept of a file is parsed at once, which protobuf does up to 2 GiB.
constexpr size_t kMaxKeptBytes = size_t{1} << 30;

// Messages inside messages: protobuf parses no more.
constexpr int kMaxDepth = 100;

// The messages on the way from a model to its weights.
enum class Message { kModel, kFunction, kGraph, kNode, kAttribute, kTensor };

struct Nested {
  Message outer;
  uint32_t field;
  Message inner;
};

// Field numbers of onnx.proto.
constexpr std::array<Nested, 11> kNested = {{{Message::kModel, 7, Message::kGraph},
                                             {Message::kModel, 25, Message::kFunction},
                                             {Message::kFunction, 7, Message::kNode},
                                             {Message::kFunction, 11, Message::kAttribute},
                                             {Message::kGraph, 1, Message::kNode},
                                             {Message::kGraph, 5, Message::kTensor},
                                             {Message::kNode, 5, Message::kAttribute},
                                             {Message::kAttribute, 5, Message::kTensor},
                                             {Message::kAttribute, 6, Message::kGraph},
                                             {Message::kAttribute, 10, Message::kTensor},
                                             {Message::kAttribute, 11, Message::kGraph}}};

// float_data, int32_data, string_data, int64_data, raw_data, double_data, uint64_data.
constexpr std::array<uint32_t, 7> kTensorData = {4, 5, 6, 7, 9, 10, 11};

bool IsTensorData(Message message, uint32_t field) {
  if (message != Message::kTensor) return false;
  for (const uint32_t data : kTensorData) {
    if (data == field) return true;
  }
  return false;
}

// Reads a file from its start to its end. What is skipped is not read: files may be far larger than
// what protobuf's own streams can count.
class ByteReader {
 public:
  explicit ByteReader(int file) : file_(file) {}
  ~ByteReader() { close(file_); }
  ByteReader(const ByteReader&) = delete;
  ByteReader& operator=(const ByteReader&) = delete;

  int64_t position() const { return start_ + at_; }
  void Skip(int64_t size) { MoveTo(position() + size); }

  bool ReadByte(uint8_t& byte) {
    if (at_ == filled_ && !Fill()) return false;
    byte = static_cast<uint8_t>(buffer_[static_cast<size_t>(at_++)]);
    return true;
  }

  // Appends the next `size` bytes to `out`.
  bool Read(int64_t size, std::string& out) {
    while (size > 0) {
      if (at_ == filled_ && !Fill()) return false;
      const int64_t part = std::min(size, filled_ - at_);
      out.append(buffer_.data() + at_, static_cast<size_t>(part));
      at_ += part;
      size -= part;
    }
    return true;
  }

 private:
  void MoveTo(int64_t position) {
    if (position <= start_ + filled_) {
      at_ = position - start_;
      return;
    }
    start_ = position;
    at_ = filled_ = 0;
  }

  bool Fill() {
    MoveTo(start_ + filled_);
    start_ += std::exchange(filled_, 0);
    at_ = 0;
    ssize_t count = 0;
    do {
      count = pread(file_, buffer_.data(), buffer_.size(), start_);
    } while (count < 0 && errno == EINTR);
    filled_ = std::max<int64_t>(count, 0);
    return filled_ > 0;
  }

  int file_;
  std::array<char, 1 << 16> buffer_;
  int64_t start_ = 0;  // of the buffer, in the file
  int64_t at_ = 0, filled_ = 0;
};

void AppendVarint(uint64_t value, std::string& out) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

// Copies the wire format of a model, all but the weights.
class WeightSkipper {
 public:
  explicit WeightSkipper(int file) : in_(file) {}

  // The message that ends at byte `end`.
  bool Copy(Message message, int64_t end, std::string& out) {
    while (in_.position() < end) {
      if (!CopyField(message, end, out)) return false;
      if (out.size() > kMaxKeptBytes) return Fail("holds more than 1 GiB besides its weights");
    }
    return true;
  }

  const std::string& error() const { return error_; }

 private:
  bool Fail(absl::string_view what) {
    if (error_.empty()) error_ = absl::StrCat("byte ", in_.position(), ": ", what);
    return false;
  }

  bool CopyField(Message message, int64_t end, std::string& out) {
    uint64_t tag = 0;
    if (!ReadVarint(end, tag) || tag >> 32 != 0 || tag >> 3 == 0) {
      return Fail("found no field of a message");
    }
    switch (tag & 7) {
      case 0: {
        uint64_t value = 0;
        if (!ReadVarint(end, value)) return Fail("found half a number");
        AppendVarint(tag, out);
        AppendVarint(value, out);
        return true;
      }
      case 1:
        AppendVarint(tag, out);
        return CopyBytes(8, end, out);
      case 2:
        return CopyLengthDelimited(message, tag, end, out);
      case 5:
        AppendVarint(tag, out);
        return CopyBytes(4, end, out);
      default:
        return Fail("found a field of a kind that ONNX has not");
    }
  }

  bool ReadVarint(int64_t end, uint64_t& value) {
    value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      uint8_t byte = 0;
      if (in_.position() >= end || !in_.ReadByte(byte)) return false;
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if ((byte & 0x80) == 0) return true;
    }
    return false;
  }

  bool Fits(uint64_t size, int64_t end) {
    const auto left = static_cast<uint64_t>(end - in_.position());
    return size <= left ||
           Fail(absl::StrCat("a field claims ", size, " bytes where ", left, " are left"));
  }

  bool CopyBytes(uint64_t size, int64_t end, std::string& out) {
    if (!Fits(size, end)) return false;
    if (size > kMaxKeptBytes) return Fail("holds more than 1 GiB besides its weights");
    return in_.Read(static_cast<int64_t>(size), out) || Fail("cannot be read");
  }

  bool CopyLengthDelimited(Message message, uint64_t tag, int64_t end, std::string& out) {
    uint64_t size = 0;
    if (!ReadVarint(end, size)) return Fail("found half a length");
    if (!Fits(size, end)) return false;
    const auto field = static_cast<uint32_t>(tag >> 3);
    if (IsTensorData(message, field) && size > kMaxDataBytes) {
      in_.Skip(static_cast<int64_t>(size));
      return true;
    }
    AppendVarint(tag, out);
    for (const Nested& nested : kNested) {
      if (nested.outer != message || nested.field != field || depth_ >= kMaxDepth) continue;
      std::string inner;
      ++depth_;
      if (!Copy(nested.inner, in_.position() + static_cast<int64_t>(size), inner)) return false;
      --depth_;
      AppendVarint(inner.size(), out);
      out += inner;
      return true;
    }
    AppendVarint(size, out);
    return CopyBytes(size, end, out);
  }

  ByteReader in_;
  int depth_ = 0;
  std::string error_;
};

absl::Status Bad(const std::string& path, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", what));
}

// The size of a regular file.
absl::StatusOr<int64_t> FileSize(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) return absl::NotFoundError(absl::StrCat(path, ": no such file"));
  if (fs::is_directory(status)) return Bad(path, "is a folder; wanted an ONNX file");
  if (!fs::is_regular_file(status)) return Bad(path, "is no regular file; wanted an ONNX file");
  const uintmax_t size = fs::file_size(path, error);
  if (error) return Bad(path, absl::StrCat("cannot be read: ", error.message()));
  if (size == 0) return Bad(path, "is empty; wanted an ONNX model");
  return static_cast<int64_t>(size);
}

}  // namespace
}  // namespace onnx_file_cc

absl::StatusOr<onnx::ModelProto> ReadOnnxFile(const std::string& path) {
  ORRERY_ASSIGN_OR_RETURN(const int64_t size, onnx_file_cc::FileSize(path));
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0)
    return onnx_file_cc::Bad(path, absl::StrCat("cannot be read: ", std::strerror(errno)));
  onnx_file_cc::WeightSkipper skipper(file);
  std::string bytes;
  if (!skipper.Copy(onnx_file_cc::Message::kModel, size, bytes)) {
    return onnx_file_cc::Bad(
        path, absl::StrCat(skipper.error(), "; the file is cut short, damaged or no ONNX model"));
  }
  onnx::ModelProto model;
  if (!model.ParseFromString(bytes)) return onnx_file_cc::Bad(path, "is damaged or no ONNX model");
  if (!model.has_graph()) return onnx_file_cc::Bad(path, "holds no graph; wanted an ONNX model");
  return model;
}

}  // namespace orrery::importer
