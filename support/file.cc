#include "support/file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

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

// The files that are half written; empty names are free. A signal handler may do no more than read
// them. Of more files at a time, and of longer names, it knows nothing.
struct HalfWritten {
  char path[4096] = "";
};
HalfWritten half_written[4];

void Note(const std::string& path) {
  for (HalfWritten& file : half_written) {
    if (file.path[0] != '\0' || path.size() >= sizeof(file.path)) continue;
    std::memcpy(file.path, path.c_str(), path.size() + 1);
    return;
  }
}

void Forget(const std::string& path) {
  for (HalfWritten& file : half_written) {
    if (path == file.path) file.path[0] = '\0';
  }
}

void RemoveAndEnd(int signal) {
  RemoveHalfWritten();
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

// What a chain of links leads to, whether it is there or not; `path` itself where it is no link.
fs::path BehindLinks(const std::string& path) {
  constexpr int kMostLinks = 40;  // as Linux has it
  fs::path file = path;
  std::error_code error;
  for (int i = 0; i < kMostLinks && fs::is_symlink(fs::symlink_status(file, error)); ++i) {
    const fs::path next = fs::read_symlink(file, error);
    if (error) break;
    file = next.is_absolute() ? next : file.parent_path() / next;
  }
  return file;
}

fs::path FolderOf(const fs::path& file) {
  return file.has_parent_path() ? file.parent_path() : fs::path(".");
}

// Neighbours of `file` are named "file.PID.partial"; a long name is cut, to leave room.
std::string PartialStem(const fs::path& file) {
  constexpr size_t kLongest = 200;
  return absl::StrCat(file.filename().string().substr(0, kLongest), ".");
}

bool IsPartialOf(const std::string& name, absl::string_view stem) {
  absl::string_view number = name;
  return absl::ConsumePrefix(&number, stem) && absl::ConsumeSuffix(&number, ".partial") &&
         !number.empty() && std::all_of(number.begin(), number.end(), [](char c) {
           return absl::ascii_isdigit(static_cast<unsigned char>(c));
         });
}

// Removes neighbours of `file` that nobody writes: who writes one holds a lock on it.
void RemoveStalePartials(const fs::path& file) {
  std::error_code error;
  const std::string stem = PartialStem(file);
  for (fs::directory_iterator entry(FolderOf(file), error), end; !error && entry != end;
       entry.increment(error)) {
    if (!IsPartialOf(entry->path().filename().string(), stem)) continue;
    // A pipe of that name would wait for somebody who reads it.
    const int partial = open(entry->path().c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (partial < 0) continue;
    struct stat there = {};
    const bool is_file = fstat(partial, &there) == 0 && S_ISREG(there.st_mode);
    if (is_file && flock(partial, LOCK_EX | LOCK_NB) == 0) unlink(entry->path().c_str());
    close(partial);
  }
}

// A new file that this process alone writes; -1 where it cannot be made.
int OpenPartial(const std::string& path) {
  for (int i = 0; i < 3; ++i) {
    const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file < 0) return -1;
    flock(file, LOCK_EX | LOCK_NB);
    // Before it was locked, another process may have taken it for one that was left behind.
    struct stat made = {};
    if (fstat(file, &made) == 0 && made.st_nlink > 0) return file;
    close(file);
  }
  return -1;
}

bool WriteAll(int file, absl::string_view contents) {
  while (!contents.empty()) {
    const ssize_t written = write(file, contents.data(), contents.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    contents.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

// A replacement looks like what it replaces.
void CopyModeAndOwner(const fs::path& from, int to) {
  struct stat old = {};
  if (stat(from.c_str(), &old) != 0) return;
  struct stat made = {};
  const bool others =
      fstat(to, &made) == 0 && (made.st_uid != old.st_uid || made.st_gid != old.st_gid);
  // Who may not give files away keeps them.
  if (others && fchown(to, old.st_uid, old.st_gid) != 0) errno = 0;
  fchmod(to, old.st_mode & 07777);
}

constexpr char kNoRoom[] = "no space, no permission, or no such folder";

absl::Status CannotWriteNow(const std::string& path, int error) {
  return CannotWrite(path, error == ENOSPC || error == EDQUOT ? kNoRoom : std::strerror(error));
}

// Nothing to rename over: a pipe, a device, or what is open already.
bool IsWrittenInto(const std::string& path) {
  std::error_code error;
  return IsStream(path) || (fs::exists(path, error) && !fs::is_regular_file(path, error));
}

}  // namespace
}  // namespace file_cc

void RemoveHalfWritten() {
  for (const file_cc::HalfWritten& file : file_cc::half_written) {
    if (file.path[0] != '\0') unlink(file.path);
  }
}

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

absl::StatusOr<std::unique_ptr<FileWriter>> FileWriter::Open(const std::string& path) {
  std::error_code error;
  const fs::path file = file_cc::BehindLinks(path);
  if (file.has_parent_path()) fs::create_directories(file.parent_path(), error);
  if (fs::is_directory(path, error)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": is a folder; wanted a file"));
  }
  std::unique_ptr<FileWriter> writer(new FileWriter);
  writer->path_ = path;
  writer->is_shared_ = file_cc::IsStream(path);
  if (file_cc::IsWrittenInto(path)) {
    writer->partial_ = path;
    writer->file_ =
        open(path.c_str(),
             O_WRONLY | O_CREAT | O_CLOEXEC | (file_cc::IsStream(path) ? O_APPEND : O_TRUNC), 0666);
    if (writer->file_ < 0) return file_cc::CannotWrite(path, "the stream failed");
    return writer;
  }
  file_cc::RemoveStalePartials(file);
  writer->target_ = file.string();
  writer->partial_ =
      (file_cc::FolderOf(file) / absl::StrCat(file_cc::PartialStem(file), getpid(), ".partial"))
          .string();
  file_cc::Note(writer->partial_);
  writer->file_ = file_cc::OpenPartial(writer->partial_);
  if (writer->file_ >= 0) return writer;
  file_cc::Forget(writer->partial_);
  return file_cc::CannotWrite(path, file_cc::kNoRoom);
}

FileWriter::~FileWriter() {
  if (file_ < 0) return;
  if (!target_.empty()) unlink(partial_.c_str());
  close(file_);
  if (!target_.empty()) file_cc::Forget(partial_);
}

absl::Status FileWriter::Write(absl::string_view piece) {
  if (file_cc::WriteAll(file_, piece)) return absl::OkStatus();
  return target_.empty() ? file_cc::CannotWrite(path_, "the stream failed")
                         : file_cc::CannotWriteNow(path_, errno);
}

absl::Status FileWriter::Finish() {
  int error = 0;
  if (!target_.empty()) {
    file_cc::CopyModeAndOwner(target_, file_);
    if (rename(partial_.c_str(), target_.c_str()) != 0) error = errno;
  }
  // A lock is held until here: nobody takes the neighbour for one that was left behind.
  const bool closed = close(file_) == 0;
  file_ = -1;
  if (target_.empty()) {
    return closed ? absl::OkStatus() : file_cc::CannotWrite(path_, "the stream failed");
  }
  if (error != 0) unlink(partial_.c_str());
  file_cc::Forget(partial_);
  if (error != 0) return file_cc::CannotWriteNow(path_, error);
  return closed ? absl::OkStatus() : file_cc::CannotWrite(path_, file_cc::kNoRoom);
}

absl::Status WriteFile(const std::string& path, absl::string_view contents) {
  absl::StatusOr<std::unique_ptr<FileWriter>> writer = FileWriter::Open(path);
  if (!writer.ok()) return writer.status();
  const absl::Status written = (*writer)->Write(contents);
  return written.ok() ? (*writer)->Finish() : written;
}

absl::Status CheckWritable(const std::string& path) {
  std::error_code error;
  if (fs::is_directory(path, error) || absl::EndsWith(path, "/") || path.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": is a folder; wanted a file"));
  }
  if (file_cc::IsWrittenInto(path)) {
    if (access(path.c_str(), W_OK) == 0) return absl::OkStatus();
    return file_cc::CannotWrite(path, std::strerror(errno));
  }
  const fs::path file = file_cc::BehindLinks(path);
  struct stat there = {};
  const bool exists = stat(file.c_str(), &there) == 0;
  if ((!exists && errno == ENAMETOOLONG) || (exists && access(file.c_str(), W_OK) != 0)) {
    return file_cc::CannotWrite(path, std::strerror(errno));
  }
  fs::path folder = file_cc::FolderOf(file);
  while (!fs::exists(folder, error) && folder.has_parent_path() && folder != folder.parent_path()) {
    folder = folder.parent_path();  // WriteFile makes what is missing
  }
  if (!fs::exists(folder, error)) folder = ".";
  const std::string probe = (folder / absl::StrCat(".orrery.", getpid(), ".partial")).string();
  const int made = open(probe.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (made < 0) return file_cc::CannotWrite(path, std::strerror(errno));
  close(made);
  unlink(probe.c_str());
  return absl::OkStatus();
}

bool AreOneFile(const std::string& a, const std::string& b) {
  struct stat file = {}, other = {};
  const bool there = stat(a.c_str(), &file) == 0;
  if (there != (stat(b.c_str(), &other) == 0)) return false;
  if (there) return file.st_dev == other.st_dev && file.st_ino == other.st_ino;
  const auto spelled = [](const std::string& path) {
    std::error_code error;
    const fs::path whole = fs::absolute(file_cc::BehindLinks(path), error);
    const fs::path one = fs::weakly_canonical(whole, error);
    return error ? whole : one;
  };
  return spelled(a) == spelled(b);
}

}  // namespace orrery
