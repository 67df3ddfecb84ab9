#include "search/journal/journal.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <limits>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "support/file.h"
#include "support/status.h"

namespace orrery::search {
namespace journal_cc {
namespace {

constexpr size_t kChecksum = 8;  // digits

std::string Line(absl::string_view payload) {
  const auto* const data = reinterpret_cast<const Bytef*>(payload.data());
  return absl::StrFormat("%08x %s\n", crc32_z(0, data, payload.size()), payload);
}

// What stands behind the checksum of a line with its end; empty where that is another.
absl::string_view Payload(absl::string_view line) {
  if (line.size() < kChecksum + 2) return {};
  const absl::string_view payload = line.substr(kChecksum + 1, line.size() - kChecksum - 2);
  return Line(payload) == line ? payload : absl::string_view();
}

absl::Status CannotUse(const std::string& path, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", what));
}

absl::StatusOr<std::string> ReadWhole(const std::string& path) {
  return ReadFile(path, {.file = std::numeric_limits<int64_t>::max()});
}

// Whether the other header is of this question and part.
absl::Status CheckHeader(const JournalHeader& there, const JournalHeader& here) {
  if (std::string differ = Differences(there.question, here.question); !differ.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("is the journal of another search: ", differ,
                                                   "; wanted one of this search, or a new file"));
  }
  if (there.part == here.part) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("is the journal of part ", ToString(there.part),
                                                 "; wanted that of part ", ToString(here.part),
                                                 ", or a new file"));
}

}  // namespace
}  // namespace journal_cc

absl::StatusOr<JournalContents> ParseJournal(absl::string_view text) {
  JournalContents contents;
  for (size_t begin = 0, end; (end = text.find('\n', begin)) != absl::string_view::npos;
       begin = end + 1) {
    const absl::string_view payload = journal_cc::Payload(text.substr(begin, end + 1 - begin));
    if (begin == 0) {
      ORRERY_ASSIGN_OR_RETURN(contents.header, ParseHeader(payload));
    } else if (payload.empty()) {
      ++contents.damaged;
    } else {
      contents.records.emplace_back(payload);
    }
    contents.whole = end + 1;
  }
  if (contents.whole == 0) return ParseHeader("").status();
  return contents;
}

absl::StatusOr<JournalContents> ReadJournal(const std::string& path) {
  ORRERY_ASSIGN_OR_RETURN(const std::string text, journal_cc::ReadWhole(path));
  return Annotated(ParseJournal(text), path);
}

absl::StatusOr<KnownResults> ResultsOf(const JournalContents& contents, const PlansView& plans) {
  KnownResults known;
  for (const std::string& record : contents.records) {
    ORRERY_ASSIGN_OR_RETURN(CandidateResults done, ParseRecord(record, plans));
    if (!Has(contents.header.part, done.candidate)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "candidate ", done.candidate, " is not of part ", ToString(contents.header.part)));
    }
    known.try_emplace(done.candidate, std::move(done.results));
  }
  return known;
}

absl::StatusOr<Journal> Journal::Open(const std::string& path, const JournalHeader& header) {
  std::error_code ignored;
  if (const auto folder = std::filesystem::path(path).parent_path(); !folder.empty()) {
    std::filesystem::create_directories(folder, ignored);
  }
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0666);
  if (file < 0) {
    return journal_cc::CannotUse(path, absl::StrCat("cannot be written: ", std::strerror(errno)));
  }
  Journal journal(path, file);
  struct stat there = {};
  if (fstat(file, &there) != 0 || !S_ISREG(there.st_mode)) {
    return journal_cc::CannotUse(path, "is no regular file; wanted one to write a journal to");
  }
  if (flock(file, LOCK_EX | LOCK_NB) != 0) {
    return journal_cc::CannotUse(
        path, "another search writes this journal; wait for its end, or try another file");
  }
  ORRERY_ASSIGN_OR_RETURN(const std::string text, journal_cc::ReadWhole(path));
  const std::string first = journal_cc::Line(HeaderText(header));
  // Of a search that was killed before it had written its first line.
  if (absl::StartsWith(first, text) && text.size() < first.size()) {
    if (ftruncate(file, 0) != 0) return journal_cc::CannotUse(path, std::strerror(errno));
    journal.contents_.header = header;
    ORRERY_RETURN_IF_ERROR(journal.Append(HeaderText(header)));
    return journal;
  }
  ORRERY_ASSIGN_OR_RETURN(journal.contents_, Annotated(ParseJournal(text), path));
  ORRERY_RETURN_IF_ERROR(Annotate(journal_cc::CheckHeader(journal.contents_.header, header), path));
  if (journal.contents_.whole < text.size() &&
      ftruncate(file, static_cast<off_t>(journal.contents_.whole)) != 0) {
    return journal_cc::CannotUse(path, std::strerror(errno));
  }
  return journal;
}

Journal::Journal(Journal&& other) noexcept
    : path_(std::move(other.path_)),
      file_(std::exchange(other.file_, -1)),
      contents_(std::move(other.contents_)),
      failed_(std::move(other.failed_)) {}

Journal::~Journal() {
  if (file_ >= 0) close(file_);  // which unlocks it
}

absl::Status Journal::Append(const std::string& record) {
  if (!failed_.ok()) return failed_;
  const std::string line = journal_cc::Line(record);
  const off_t end = lseek(file_, 0, SEEK_END);
  ssize_t written = -1;
  do {
    written = write(file_, line.data(), line.size());
  } while (written < 0 && errno == EINTR);
  if (written == std::ssize(line)) return absl::OkStatus();
  // The part of a line that a full disk has taken would be in the way of what comes later.
  const std::string why = written < 0 ? std::strerror(errno) : "no space";
  if (ftruncate(file_, end) != 0) errno = 0;
  failed_ = absl::UnavailableError(absl::StrCat(path_, ": cannot be written: ", why));
  return failed_;
}

}  // namespace orrery::search
