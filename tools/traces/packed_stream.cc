#include "tools/traces/packed_stream.h"

#include <zlib.h>

#include <array>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "support/status.h"

namespace orrery::tools {

// What does not go to the file at once, so that a failure is told at the end and not piece by
// piece.
class PackedStream::Buffer : public std::streambuf {
 public:
  Buffer(std::unique_ptr<FileWriter> file, bool packs) : file_(std::move(file)), packs_(packs) {
    constexpr int kGzipWindow = 15 + 16;
    if (packs_ && deflateInit2(&stream_, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzipWindow, 8,
                               Z_DEFAULT_STRATEGY) != Z_OK) {
      status_ = absl::InternalError("zlib cannot start");
    }
  }
  ~Buffer() override {
    if (packs_) deflateEnd(&stream_);
  }

  absl::Status Finish() {
    Hand(Z_FINISH);
    return status_.ok() ? file_->Finish() : status_;
  }

 protected:
  std::streamsize xsputn(const char* text, std::streamsize count) override {
    const absl::string_view piece(text, static_cast<size_t>(count));
    absl::StrAppend(&text_, piece);
    if (text_.size() >= kPiece) Hand(Z_NO_FLUSH);
    return status_.ok() ? count : 0;
  }
  int overflow(int c) override {
    if (c == traits_type::eof()) return traits_type::not_eof(c);
    const char one = traits_type::to_char_type(c);
    return xsputn(&one, 1) == 1 ? c : traits_type::eof();
  }

 private:
  static constexpr size_t kPiece = 1 << 16;

  // What has come together goes to the file. Nothing does once something has failed.
  void Hand(int flush) {
    if (!status_.ok()) return;
    if (packs_) {
      Pack(text_, flush);
    } else {
      status_ = file_->Write(text_);
    }
    text_.clear();
  }

  void Pack(absl::string_view piece, int flush) {
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(piece.data()));
    stream_.avail_in = static_cast<uInt>(piece.size());
    do {
      stream_.next_out = reinterpret_cast<Bytef*>(packed_.data());
      stream_.avail_out = static_cast<uInt>(packed_.size());
      if (deflate(&stream_, flush) == Z_STREAM_ERROR) {
        status_ = absl::InternalError("zlib cannot pack it");
      } else {
        status_ = file_->Write({packed_.data(), packed_.size() - stream_.avail_out});
      }
    } while (status_.ok() && stream_.avail_out == 0);
  }

  std::unique_ptr<FileWriter> file_;
  bool packs_ = false;
  z_stream stream_ = {};
  std::string text_;  // not handed on yet
  std::array<char, kPiece> packed_ = {};
  absl::Status status_;
};

PackedStream::PackedStream(std::unique_ptr<Buffer> buffer)
    : std::ostream(buffer.get()), buffer_(std::move(buffer)) {}

PackedStream::~PackedStream() = default;

absl::StatusOr<std::unique_ptr<PackedStream>> PackedStream::Open(const std::string& path) {
  ORRERY_ASSIGN_OR_RETURN(std::unique_ptr<FileWriter> file, FileWriter::Open(path));
  return std::unique_ptr<PackedStream>(
      new PackedStream(std::make_unique<Buffer>(std::move(file), absl::EndsWith(path, ".gz"))));
}

absl::Status PackedStream::Finish() { return buffer_->Finish(); }

}  // namespace orrery::tools
