#include "support/file.h"

#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace orrery {

namespace fs = std::filesystem;

namespace file_cc {
namespace {

absl::Status CannotWrite(const std::string& path, absl::string_view why) {
  return absl::UnavailableError(absl::StrCat(path, ": cannot be written: ", why));
}

// What stands for something that is open already. It may be a regular file ("> report.json"), and
// is still nothing to rename over.
bool IsStream(absl::string_view path) {
  return path == "/dev/stdout" || path == "/dev/stderr" || absl::StartsWith(path, "/dev/fd/") ||
         absl::StartsWith(path, "/proc/");
}

absl::Status WriteInto(const std::string& path, absl::string_view contents) {
  std::ofstream out(path, std::ios::binary | (IsStream(path) ? std::ios::app : std::ios::trunc));
  out.write(contents.data(), static_cast<std::streamsize>(contents.size()));
  out.flush();
  return out.good() ? absl::OkStatus() : CannotWrite(path, "the stream failed");
}

// The file that is half written; empty when none is. A signal handler may do no more than read it.
char half_written[4096] = "";

void Note(const std::string& path) {
  half_written[0] = '\0';
  if (path.size() < sizeof(half_written)) std::memcpy(half_written, path.c_str(), path.size() + 1);
}

void RemoveAndEnd(int signal) {
  if (half_written[0] != '\0') unlink(half_written);
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

}  // namespace
}  // namespace file_cc

void CleanUpOnSignals() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) std::signal(signal, file_cc::RemoveAndEnd);
}

absl::StatusOr<std::string> ReadFile(const std::string& path, const ReadLimits& limits) {
  std::error_code error;
  if (!fs::exists(path, error)) return absl::NotFoundError(absl::StrCat(path, ": no such file"));
  if (fs::is_directory(path, error)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": is a folder; wanted a file"));
  }
  constexpr size_t kPiece = 1 << 16;
  const bool regular = fs::is_regular_file(path, error);
  const int64_t most = regular ? limits.file : limits.stream;
  std::ifstream in(path, std::ios::binary);
  if (!in.is_open()) return absl::DataLossError(absl::StrCat(path, ": cannot be read"));
  std::string contents;
  while (in.good()) {
    const size_t size = contents.size();
    contents.resize(size + kPiece);
    in.read(contents.data() + size, kPiece);
    contents.resize(size + static_cast<size_t>(in.gcount()));
    if (std::ssize(contents) <= most) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": ", regular ? "is too large" : "does not end", "; at most ", most,
                     " bytes are read of ", regular ? "a file" : "what is no regular file"));
  }
  if (!in.eof()) return absl::DataLossError(absl::StrCat(path, ": cannot be read"));
  return contents;
}

absl::Status WriteFile(const std::string& path, absl::string_view contents) {
  std::error_code error;
  const fs::path folder = fs::path(path).parent_path();
  if (!folder.empty()) fs::create_directories(folder, error);
  if (fs::is_directory(path, error)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": is a folder; wanted a file"));
  }
  if (file_cc::IsStream(path) || (fs::exists(path, error) && !fs::is_regular_file(path, error))) {
    return file_cc::WriteInto(path,
                              contents);  // a pipe or /dev/stdout: there is nothing to rename over
  }
  const std::string temporary = absl::StrCat(path, ".", getpid(), ".partial");
  file_cc::Note(temporary);
  if (!file_cc::WriteInto(temporary, contents).ok()) {
    fs::remove(temporary, error);
    file_cc::Note("");
    return file_cc::CannotWrite(path, "no space, no permission, or no such folder");
  }
  fs::rename(temporary, path, error);
  file_cc::Note("");
  if (!error) return absl::OkStatus();
  const std::string why = error.message();
  fs::remove(temporary, error);
  return file_cc::CannotWrite(path, why);
}

}  // namespace orrery
