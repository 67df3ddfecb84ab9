#include <filesystem>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "support/file.h"
#include "support/status.h"
#include "tools/flags.h"

namespace orrery::tools {

namespace outputs_cc {
namespace {

// The parts of a flag's text that may be the name of a file: all of it, and what stands between
// commas, with the word before a colon and without.
std::vector<std::string> NamesIn(const std::string& text) {
  std::vector<std::string> names = {text};
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    names.emplace_back(part);
    const size_t colon = part.find(':');
    if (colon != absl::string_view::npos) names.emplace_back(part.substr(colon + 1));
  }
  const size_t colon = text.find(':');
  if (colon != std::string::npos) names.push_back(text.substr(colon + 1));
  return names;
}

constexpr char kRank[] = "{rank}";

// Whether two paths lead to one file: also one with {rank} in its name, which stands for the files
// of all ranks, and one of these.
bool MayBeOneFile(const std::string& a, const std::string& b) {
  if (AreOneFile(a, b)) return true;
  if (b.find(kRank) != std::string::npos && a.find(kRank) == std::string::npos) {
    return MayBeOneFile(b, a);
  }
  if (a.find(kRank) == std::string::npos) return false;
  // Each number in the other name may be the rank.
  for (size_t begin = 0; begin < b.size(); ++begin) {
    size_t end = begin;
    while (end < b.size() && absl::ascii_isdigit(static_cast<unsigned char>(b[end]))) ++end;
    if (end == begin) continue;
    if (AreOneFile(absl::StrReplaceAll(a, {{kRank, b.substr(begin, end - begin)}}), b)) return true;
  }
  return false;
}

// Terminals, pipes and /dev/null may be read and written.
bool IsFile(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error);
}

absl::Status CheckInputs(const FlagText& output, std::span<const FlagText> others) {
  if (!IsFile(output.text) && output.text.find(kRank) == std::string::npos) {
    return absl::OkStatus();
  }
  for (const FlagText& other : others) {
    for (const std::string& name : FilesNamedIn(other.text)) {
      if (!MayBeOneFile(output.text, name)) continue;
      return absl::InvalidArgumentError(absl::StrCat("--", output.flag, " ", output.text,
                                                     ": is the file that --", other.flag,
                                                     " reads; wanted another one to write"));
    }
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace outputs_cc

std::vector<std::string> FilesNamedIn(const std::string& text) {
  std::vector<std::string> names = outputs_cc::NamesIn(text);
  std::erase_if(names, [](const std::string& name) { return !outputs_cc::IsFile(name); });
  return names;
}

absl::Status CheckOutputs(std::span<const std::string> paths) {
  for (size_t i = 0; i < paths.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (paths[i].empty() || paths[j].empty() || !outputs_cc::MayBeOneFile(paths[i], paths[j])) {
        continue;
      }
      return absl::InvalidArgumentError(
          absl::StrCat(paths[i], ": two outputs go to this file; wanted one each"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckFiles(std::span<const FlagText> outputs, std::span<const FlagText> others) {
  std::vector<std::string> paths;
  for (const FlagText& output : outputs) {
    if (output.text.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--", output.flag, " '': wanted the name of a file to write"));
    }
    paths.push_back(output.text);
  }
  ORRERY_RETURN_IF_ERROR(CheckOutputs(paths));
  for (const FlagText& output : outputs) {
    ORRERY_RETURN_IF_ERROR(outputs_cc::CheckInputs(output, others));
    ORRERY_RETURN_IF_ERROR(CheckWritable(output.text));
  }
  return absl::OkStatus();
}

}  // namespace orrery::tools
