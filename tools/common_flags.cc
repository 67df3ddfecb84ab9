#include "tools/common_flags.h"

#include <algorithm>
#include <iostream>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "support/names/near_names.h"
#include "support/status.h"
#include "tools/completion.h"
#include "tools/file_flags.h"
#include "tools/listings.h"
#include "tools/reports/version.h"
#include "tools/terminal/terminal.h"

namespace orrery::tools {
namespace common_flags_cc {
namespace {

namespace po = boost::program_options;

// Which program has a flag that people look for elsewhere.
constexpr std::pair<absl::string_view, absl::string_view> kHome[] = {
    {"diff", "grid_search"},    {"emit", "grid_search"},  {"explain", "simulate"},
    {"fits-on", "grid_search"}, {"goal", "grid_search"},  {"gpus", "grid_search"},
    {"jitter", "simulate"},     {"price", "grid_search"}, {"samples", "grid_search"},
    {"servers", "simulate"},    {"slow", "simulate"},     {"space", "grid_search"},
    {"steps", "simulate"},      {"sync", "simulate"},     {"timeline", "simulate"},
    {"tokens", "grid_search"},  {"top", "grid_search"},   {"update", "simulate"}};

bool Has(const po::options_description& options, absl::string_view flag) {
  return !flag.empty() && options.find_nothrow(std::string(flag), /*approx=*/false) != nullptr;
}

std::vector<Listing> ListingsOf(const ProgramSpec& spec) {
  std::vector<Listing> listings(AllListings().begin(), AllListings().end());
  listings.insert(listings.end(), spec.listings.begin(), spec.listings.end());
  std::erase_if(listings, [&](const Listing& listing) {
    const auto has = [&](absl::string_view flag) {
      return Has(spec.options, flag) || Has(spec.other_form, flag);
    };
    return !std::ranges::any_of(listing.of, has) && !has(listing.beside);
  });
  return listings;
}

CompletedFlag Completed(const po::option_description& option, std::span<const Listing> listings) {
  CompletedFlag flag = {.name = option.long_name(),
                        .help = option.description(),
                        .takes_value = option.semantic()->max_tokens() > 0};
  if (!flag.takes_value) return flag;
  flag.values = KnownValues(flag.name, listings);
  flag.takes_file = FileUseOf(flag.name) != FileUse::kNone;
  return flag;
}

absl::StatusOr<std::string> Completion(const ProgramSpec& spec, const po::options_description& all,
                                       const std::string& shell, const std::string& command) {
  const std::vector<Listing> listings = ListingsOf(spec);
  CompletedProgram program = {.names = ProgramNames(command)};
  for (const po::options_description* options : {&all, &spec.other_form}) {
    for (const auto& option : options->options()) {
      const bool known = std::ranges::find(program.flags, option->long_name(),
                                           &CompletedFlag::name) != program.flags.end();
      if (!known) program.flags.push_back(Completed(*option, listings));
    }
  }
  if (spec.positional.max_total_count() > 0) {
    CompletedFlag bare = {.takes_value = true, .takes_file = true};
    bare.values = KnownValues(spec.positional.name_for_position(0), listings);
    program.flags.push_back(std::move(bare));
  }
  return CompletionScript(shell, program);
}

}  // namespace
}  // namespace common_flags_cc

namespace po = boost::program_options;

po::options_description WithCommonFlags(const ProgramSpec& spec) {
  namespace own = common_flags_cc;
  const auto columns = static_cast<unsigned>(std::max<size_t>(60, OutputTerminal().columns));
  po::options_description all("Flags", columns);
  for (const auto& option : spec.options.options()) all.add(option);
  const auto add = [&](absl::string_view flag, absl::string_view help) {
    if (own::Has(spec.options, flag)) return;
    all.add_options()(std::string(flag).c_str(), std::string(help).c_str());
  };
  all.add_options()("help,h", "this text")("version", "the version of Orrery")(
      "completion", po::value<std::string>(),
      "print a script that completes flags and their values: of bash or zsh");
  add("progress", "show progress on standard error even when that is no terminal");
  add("quiet", "results and warnings only: no progress, notes and charts");
  for (const Listing& listing : own::ListingsOf(spec)) add(listing.flag, listing.about);
  return all;
}

std::optional<absl::Status> AnswerCommonFlags(const ProgramSpec& spec,
                                              const po::options_description& all,
                                              const po::variables_map& values,
                                              const std::string& command) {
  namespace own = common_flags_cc;
  SetManner({.quiet = values.count("quiet") > 0, .progress = values.count("progress") > 0});
  if (values.count("help") > 0) {
    std::cout << WrapLines(spec.about, 0, OutputTerminal()) << "\n\n"
              << WrapLines(absl::StrCat("Usage: ", spec.usage), 7, OutputTerminal()) << "\n\n"
              << all << "\nExample:\n  " << spec.example << "\n";
    return absl::OkStatus();
  }
  if (values.count("version") > 0) {
    std::cout << "orrery " << Version() << "\n";
    return absl::OkStatus();
  }
  if (values.count("completion") > 0) {
    const absl::StatusOr<std::string> script =
        own::Completion(spec, all, values["completion"].as<std::string>(), command);
    if (script.ok()) std::cout << *script;
    return script.status();
  }
  for (const Listing& listing : own::ListingsOf(spec)) {
    const std::string flag(listing.flag);
    if (own::Has(spec.options, flag) || values.count(flag) == 0) continue;
    std::cout << WrapLines(ListingText(listing), 28, OutputTerminal());
    return absl::OkStatus();
  }
  return std::nullopt;
}

std::string UsageError(const po::error& error, const po::options_description& all) {
  namespace own = common_flags_cc;
  if (const auto* const unknown = dynamic_cast<const po::unknown_option*>(&error)) {
    const std::string written = unknown->get_option_name();
    const size_t begin = written.find_first_not_of('-');
    std::vector<absl::string_view> names;
    for (const auto& option : all.options()) names.emplace_back(option->long_name());
    if (begin != std::string::npos) {
      for (const auto& [flag, home] : own::kHome) {
        if (written.substr(begin) != flag) continue;
        return absl::StrCat(error.what(), "; ", home, " has it: try --help there, or here");
      }
      std::vector<std::string> meant;
      for (const absl::string_view near : NearNames(written.substr(begin), names)) {
        meant.push_back(absl::StrCat("--", near));
      }
      const std::vector<absl::string_view> choices(meant.begin(), meant.end());
      if (!choices.empty()) {
        return absl::StrCat(error.what(), "; did you mean ", Choices(choices),
                            "? --help names all");
      }
    }
  }
  return absl::StrCat(error.what(), "; try --help");
}

}  // namespace orrery::tools
